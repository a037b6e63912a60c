// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

// Requests of data subjects (docs/sync.md): filing, going on, telling.

extension SyncDecider {
    static let requestsTold = 100
    /// How long after it began a request is expected to be done.
    static let usualDuration: Int64 = 3_600_000
    /// How soon a request is looked at again while other services erase their part, and while others hold what it named.
    static let soon: Int64 = 10_000
    static let later: Int64 = 3_600_000

    private func request(_ id: SubjectRequestID) throws(Rejection) -> SubjectRequestRow {
        guard let row = state.requests[SubjectRequestRow.Key(app: app, id: id)] else {
            throw Rejection(.notFoundError, "There is no request with this id.")
        }
        try authorize(row.kind)
        return row
    }

    /// S210: whoever may erase, and whoever may read.
    private func authorize(_ kind: SubjectRequest.Kind) throws(Rejection) {
        try context.principal.authorize(kind == .erasure ? .userDelete : .support)
    }

    /// S211, S212.
    func file(_ command: FileRequest) throws(Rejection) -> Decision {
        try authorize(command.kind)
        if command.everyHolder == true { try context.principal.authorize(.admin) }
        for identity in command.named where settings.nobody.contains(identity.value.text) {
            throw Self.namesNobody(identity.type)
        }
        let digest = digest(of: command)
        if let known = state.requests[SubjectRequestRow.Key(app: app, id: command.requestId)] {
            guard known.digest == digest else {
                throw Rejection(.invalidRequest, "data.requestId was used for another request.")
            }
            return Decision(.succeeded(result(known)))
        }
        let now = context.now.milliseconds
        var row = SubjectRequestRow(
            app: app, id: command.requestId, kind: command.kind, digest: digest, groupId: command.groupId,
            receivedAt: now, moment: context.moment.milliseconds, startsAt: now + context.app.requests.delay)
        row.mpid = command.mpid
        row.identities = command.named
        row.isEveryHolder = command.everyHolder == true
        row.customerID = command.named.first { $0.type == .customerID }.map { ExternalID($0.value.text) }
        row.askAt = row.startsAt
        let first = meant(by: row)
        (row.first, row.anonymous) = (first.map(\.mpid), first.filter { !$0.isKnown(settings) }.map(\.mpid))
        return Decision(.succeeded(result(row)), changes: [.request(row)], events: [told(row)])
    }

    private func digest(of command: FileRequest) -> TextDigest {
        var parts = [
            app.text, command.kind.rawValue, command.mpid?.description ?? "", command.everyHolder == true ? "all" : "",
            command.regulation ?? "", command.submittedAt?.rfc3339 ?? "", command.groupId ?? "",
        ]
        for identity in command.named { parts += [identity.type.rawValue, identity.value.text] }
        return TextDigest(bytes: Array(context.secrets.bytes("subject-request", parts).prefix(32)))
    }

    func request(_ query: GetRequest) throws(Rejection) -> Decision {
        Decision(.succeeded(result(try request(query.requestId))))
    }

    func requests(_ query: GetRequests) -> Decision {
        let scopes = context.principal.scopes
        let rows = state.requests.values.filter { row in
            row.app == app && row.groupId == query.groupId
                && (context.principal.kind == .service
                    || scopes.contains(row.kind == .erasure ? .userDelete : .support))
        }.sorted { ($1.receivedAt, $0.id) < ($0.receivedAt, $1.id) }.prefix(Self.requestsTold)
        return Decision(.succeeded(SubjectRequestsResult(groupId: query.groupId, requests: rows.map(result))))
    }

    /// S212.
    func cancel(_ command: CancelRequest) throws(Rejection) -> Decision {
        var row = try request(command.requestId)
        switch row.status {
        case .cancelled: return Decision(.succeeded(result(row)))
        case .inProgress, .completed: throw Rejection(.requestStarted)
        case .pending: break
        }
        row.forgetNames()
        (row.status, row.askAt, row.anonymous, row.customerID) = (.cancelled, nil, [], nil)
        return Decision(.succeeded(result(row)), changes: [.request(row)], events: [told(row)])
    }

    /// S216, S217.
    func results(_ query: GetRequestResults) throws(Rejection) -> Decision {
        let row = try request(query.requestId)
        guard row.kind != .erasure else {
            throw Rejection(.notFoundError, "An erasure has no results; its certificate stands in the request.")
        }
        guard row.status == .completed, let until = row.resultsUntil else { throw Rejection(.resultsNotReady) }
        guard context.now.milliseconds < until, row.askAt != nil else { throw Rejection(.resultsGone) }
        let profiles = row.mpids.compactMap { state.profile(app, $0) }.filter { isStill($0, of: row) }
        // Where nobody vouches for devices, only the one that was named.
        let ids = enforces ? profiles.flatMap { $0.values(of: .customerID) }.map { ExternalID($0.value.text) } : []
        return Decision(
            .succeeded(
                RequestResultsResult(
                    requestId: row.id, kind: row.kind, profiles: profiles.map(ownData),
                    externalIds: profiles.isEmpty ? [] : Set(ids + [row.customerID].compactMap(\.self)).sorted())))
    }

    // MARK: Going on

    /// S213 to S215.
    func process(_ command: ProcessRequest) throws(Rejection) -> Decision {
        guard var row = state.requests[SubjectRequestRow.Key(app: app, id: command.requestId)], let askAt = row.askAt
        else { return Decision(.noted) }
        // A clock that is ahead takes nobody the time to cancel.
        let now = min(context.now.milliseconds, context.logged.flatMap { $0.isBrokers ? $0.milliseconds : nil } ?? .max)
        // The delay of when it was decided first counts.
        let start = row.status == .pending ? command.startsAt?.milliseconds : nil
        guard now >= start ?? askAt else {
            row.askAt = max(askAt, context.now.milliseconds + Self.soon)
            return Decision(.noted, changes: [.request(row)])
        }
        switch row.status {
        case .pending: return try begin(row)
        case .inProgress: return try row.reason == .ambiguousIdentity ? begin(row) : goOn(row, since: row)
        case .completed:
            (row.mpids, row.anonymous, row.customerID) = ([], [], nil)
            row.askAt = nil
            return Decision(.noted, changes: [.request(row)])
        case .cancelled:
            return Decision(.noted)
        }
    }

    /// Who is meant by now.
    private func meant(by row: SubjectRequestRow) -> [Profile] {
        if let mpid = row.mpid { return [state.profile(app, mpid)].compactMap(\.self).filter { isStill($0, of: row) } }
        let resolver = Resolver(settings: settings, index: Draft(state, context, .erase))
        // Every holder of each identity, or those whom all of them mean.
        let meant =
            row.isEveryHolder
            ? row.identities.flatMap { resolver.meant(by: [$0]) } : resolver.meant(by: row.identities)
        return Dictionary(meant.map { ($0.mpid, $0) }) { first, _ in first }.values
            .filter { isStill($0, of: row) }.sorted { $0.mpid < $1.mpid }
    }

    /// S213: whoever logs in to an anonymous profile since is another person.
    private func isStill(_ profile: Profile, of row: SubjectRequestRow) -> Bool {
        !profile.isErased && !(row.anonymous.contains(profile.mpid) && profile.isKnown(settings))
    }

    /// Finds whom it is about, and erases them.
    private func begin(_ before: SubjectRequestRow) throws(Rejection) -> Decision {
        var row = before
        let meant = meant(by: row)
        let sure = meant.filter { row.first.contains($0.mpid) || row.mpid == $0.mpid }
        let isSure = row.isEveryHolder || sure.count == meant.count && sure.count <= 1
        let found = isSure ? sure : []
        if row.kind == .erasure { adopt(&row) }
        let draft = Draft(state, context, .erase)
        func holders(_ identities: [Identity]) -> Set<MPID> {
            Set(identities.flatMap(draft.holders)).subtracting(found.map(\.mpid)).subtracting(row.mpids)
        }
        // Whom it meant when it came and does not mean any more: their identities have changed meanwhile.
        let stays = row.first.count == 1 ? Set(row.first).subtracting(found.map(\.mpid) + row.mpids) : []
        let changed = stays.filter { state.profile(app, $0)?.isErased == false }
        let others = holders(row.identities).union(changed)
        row.heldByOthers = others.count
        // Several people may use one device: who has no more in common with the person is somebody else.
        let isOver =
            found.isEmpty && row.mpids.isEmpty
            ? others.isEmpty
            : changed.isEmpty && holders(row.identities.filter { !$0.type.isDevice }).isEmpty || row.kind != .erasure
        row.reason = isOver ? nil : .ambiguousIdentity
        row.profileCount += found.count
        guard row.kind == .erasure, !found.isEmpty else {
            row.mpids += found.map(\.mpid)
            guard row.kind == .erasure, !row.mpids.isEmpty else { return settle(row, since: before, isDone: isOver) }
            guard isOver else {
                // Whoever keeps it open, those who were certain go everywhere (S215).
                let settled = settle(row, since: before, isDone: false)
                guard let stuck = stuck(unfinished(row)), var decision = try askAgain(row, stuck)
                else { return settled }
                decision.changes += settled.changes
                decision.events += settled.events
                return decision
            }
            row.forgetNames()
            row.status = .inProgress
            return try goOn(row, since: before)
        }
        var decision = try erase(found, of: row)
        row.mpids += found.map(\.mpid)
        if isOver { row.forgetNames() }
        row.status = .inProgress
        row.askAt = context.now.milliseconds + Self.soon
        decision.changes.append(.request(row))
        decision.events += news(row, since: before)
        return decision
    }

    /// Whom somebody else has erased is erased by it, too: it is over when all have done that (S215).
    private func adopt(_ row: inout SubjectRequestRow) {
        let erased = Set(row.first + [row.mpid].compactMap(\.self)).sorted().filter { mpid in
            !row.mpids.contains(mpid) && state.certificates[Profile.Key(app: app, id: mpid)] != nil
        }
        row.mpids += erased
        row.profileCount += erased.count
    }

    /// As `sync.erase-profile` does.
    private func erase(_ profiles: [Profile], of row: SubjectRequestRow) throws(Rejection) -> Decision {
        let draft = Draft(state, context, .erase)
        let others = Set(row.identities.flatMap(draft.holders)).subtracting(profiles.map(\.mpid))
        let users = profiles.compactMap(\.mark).filter { $0.linkedAt <= row.moment }.map(\.userID)
        let named = ErasedProfiles(
            moment: row.moment, profiles: profiles, identities: row.identities, others: others, users: users)
        let which: EraseProfile.Persons = enforces ? .byCustomerId : .marked
        var all = profiles.flatMap { persons($0, of: named, which) }
        if let id = row.customerID, !all.contains(where: { $0.externalId == id }) {
            all.append(ForgetPerson(externalId: id, erasedAt: Timestamp(milliseconds: row.moment)))
        }
        return try begin(named, .erase, persons: all)
    }

    /// Whether the others have done their part; if one could not, it is asked again.
    private func goOn(
        _ changed: SubjectRequestRow, since before: SubjectRequestRow
    ) throws(Rejection) -> Decision {
        var row = changed
        let open = unfinished(row)
        if open.isEmpty { return settle(row, since: before, isDone: true) }
        let stuck = stuck(open)
        row.reason = stuck == nil ? nil : .serverError
        row.askAt = context.now.milliseconds + (stuck == nil ? Self.soon : Self.later)
        var decision = Decision(.noted)
        if let stuck { decision = try askAgain(row, stuck) ?? decision }
        decision.changes.append(.request(row))
        decision.events += news(row, since: before)
        return decision
    }

    /// What is not done in all services.
    private func unfinished(_ row: SubjectRequestRow) -> [ErasureCertificate] {
        certificates(of: row).filter { $0.completedAt == nil }
    }

    /// Of these the first that no service is still at, whatever the others wait for (S215).
    private func stuck(_ unfinished: [ErasureCertificate]) -> ErasureCertificate? {
        let running = state.erasures.values.filter { $0.command.app == app && !$0.isStuck }
        return unfinished.first { certificate in
            !running.contains { $0.certificate.subject.mpids.contains(where: certificate.subject.mpids.contains) }
        }
    }

    /// Has the services asked again that could not do their part.
    /// - Returns: `nil` where the certificate names nobody whom the request has erased.
    private func askAgain(_ row: SubjectRequestRow, _ certificate: ErasureCertificate) throws(Rejection) -> Decision? {
        guard let mpid = certificate.subject.mpids.first(where: row.mpids.contains),
            let profile = state.profile(app, mpid), profile.isErased
        else { return nil }
        return try eraseAgain(ErasedProfiles(moment: row.moment, profiles: [profile]))
    }

    private func settle(_ changed: SubjectRequestRow, since before: SubjectRequestRow, isDone: Bool) -> Decision {
        var row = changed
        if isDone {
            row.forgetNames()
            row.reason = nil
            row.status = .completed
            if row.kind == .erasure { row.customerID = nil }
            row.completedAt = context.now.milliseconds
            row.askAt = row.resultsUntil ?? (context.now.milliseconds + SubjectRequestRow.resultsKept)
        } else {
            row.status = .inProgress
            row.askAt = context.now.milliseconds + Self.later
        }
        return Decision(.noted, changes: [.request(row)], events: news(row, since: before))
    }

    // MARK: Telling

    /// S217.
    private func news(_ row: SubjectRequestRow, since before: SubjectRequestRow) -> [any EventMessage] {
        (row.status, row.reason) == (before.status, before.reason) ? [] : [told(row)]
    }

    private func certificates(of row: SubjectRequestRow) -> [ErasureCertificate] {
        guard row.kind == .erasure else { return [] }
        var requests: Set<CommandID> = []
        return row.mpids.compactMap { state.certificates[Profile.Key(app: app, id: $0)]?.certificate }
            .filter { requests.insert($0.requestId).inserted }
    }

    private func result(_ row: SubjectRequestRow) -> SubjectRequestResult {
        let certificates = certificates(of: row)
        return SubjectRequestResult(
            requestId: row.id, kind: row.kind, status: row.status, reason: row.reason, groupId: row.groupId,
            receivedAt: Timestamp(milliseconds: row.receivedAt), startsAt: Timestamp(milliseconds: row.startsAt),
            expectedAt: Timestamp(milliseconds: row.completedAt ?? (row.startsAt + Self.usualDuration)),
            completedAt: row.completedAt.map(Timestamp.init(milliseconds:)),
            resultsUntil: row.resultsUntil.map(Timestamp.init(milliseconds:)), profileCount: row.profileCount,
            heldByOthers: row.status == .pending || row.status == .cancelled ? nil : row.heldByOthers,
            certificates: row.kind == .erasure && !certificates.isEmpty ? certificates : nil)
    }

    private func told(_ row: SubjectRequestRow) -> RequestChanged {
        RequestChanged(requestId: row.id, kind: row.kind, status: row.status, reason: row.reason)
    }
}

extension FileRequest {
    var named: [Identity] {
        identities.compactMap { name, value in
            IdentityType(rawValue: name).map { Identity($0, IdentityValue(value)) }
        }.sorted { $0.type < $1.type }
    }
}
