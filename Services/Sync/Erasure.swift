// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Runtime
import Storage

/// An erasure that waits for other services to erase their part.
public struct Erasure: Sendable, Hashable {
    /// The command that began it.
    public var command: CommandKey
    public var certificate: ErasureCertificate
    /// The ids of the commands that were forwarded and are not answered.
    public var waiting: [CommandID]
    /// Whom the link service was asked to forget and has not, by the id of the command: whoever erases the profile again
    /// asks for them again, for the profile no longer tells who they are (S55).
    var persons: [String: ForgetPerson]
    /// Commands that came while it waited, and are answered with it (S55).
    var also: [CommandKey] = []
    /// More than this many do not wait for one erasure.
    static let mostAlso = 16
    /// One of the others could not do its part.
    public var hasFailed = false

    public init(
        command: CommandKey, certificate: ErasureCertificate, waiting: [CommandID],
        persons: [String: ForgetPerson] = [:]
    ) {
        self.command = command
        self.certificate = certificate
        self.waiting = waiting
        self.persons = persons
    }

    /// Whether it ended without the link service's part.
    var isStuck: Bool { waiting.isEmpty }
}

/// A user of the link service.
public typealias LinkedUser = Scoped<UserID>

/// Another service's answer to a command that was forwarded to it.
public struct ForwardAnswer: Sendable, Hashable {
    public var forwardID: CommandID
    /// The final answer is yet to come.
    public var isPending: Bool
    /// What was done; `nil` when it could not be, or the answer does not say what was.
    public var part: ErasureCertificate?
}

extension ForwardAnswer {
    init(_ reply: ReceivedReply) {
        self.init(
            forwardID: reply.commandId, isPending: reply.status == .pending,
            part: reply.status == .succeeded ? reply.result(as: ErasureCertificate.self) : nil)
    }
}

// MARK: The rules

/// Erasing somebody: here at once, in the other services by commands that each of them answers.
extension SyncDecider {
    /// S53, S93.
    func erase(_ command: EraseProfile) throws(Rejection) -> Decision {
        if let waiting = stillWaiting { return waiting }
        let named = try named(command)
        if let certificate = certificate(ofErased: named) {
            if certificate.completedAt != nil { return Decision(.succeeded(certificate)) }
            return try eraseAgain(named)
        }
        let isEnforced = context.app.verification.mode == .enforce
        let persons = command.persons ?? (isEnforced ? .byCustomerId : .marked)
        return try begin(
            named, .erase, persons: named.profiles.flatMap { self.persons($0, of: named, persons) })
    }

    /// While the first erasure waits, this one waits along. Where that failed, whoever has not been forgotten elsewhere is
    /// asked for again (S55).
    func eraseAgain(_ named: ErasedProfiles) throws(Rejection) -> Decision {
        let before = state.erasures.values.filter { erasure in
            erasure.command.app == app
                && named.profiles.contains { erasure.certificate.subject.mpids.contains($0.mpid) }
        }.sorted { $0.command < $1.command }
        if var running = before.first(where: { !$0.isStuck }) {
            guard running.also.count < Erasure.mostAlso else { throw Rejection(.throttled) }
            running.also.append(context.command)
            return Decision(.pending(nil), changes: [.erasure(running)])
        }
        let persons = before.flatMap { $0.persons.sorted { $0.key < $1.key }.map(\.value) }
        var decision = try begin(named, .erase, persons: persons)
        decision.changes += before.filter(\.isStuck).map { .erasureDone($0.command) }
        return decision
    }

    /// The link service asks for it, so it needs not be asked to do its part (S95).
    func forget(_ command: ForgetProfiles) throws(Rejection) -> Decision {
        if let waiting = stillWaiting { return waiting }
        return try begin(forgotten(command), .forget, persons: [])
    }

    /// S97.
    func erasure(_ query: GetProfileErasure) throws(Rejection) -> Decision {
        guard let row = state.certificates[Profile.Key(app: app, id: query.mpid)] else {
            throw Rejection(.notFoundError, "No profile with this MPID was erased.")
        }
        return Decision(.succeeded(row.certificate))
    }

    /// The certificate of a profile that was erased before.
    private func certificate(ofErased named: ErasedProfiles) -> ErasureCertificate? {
        guard named.profiles.count == 1, let profile = named.profiles.first, profile.isErased else { return nil }
        return state.certificates[profile.key]?.certificate
    }

    /// The same command came before, and the others have not done their part: they were asked, and whatever they answer
    /// ends both (S69).
    var stillWaiting: Decision? {
        let running = state.erasures.values.first { erasure in
            !erasure.isStuck && (erasure.command == context.command || erasure.also.contains(context.command))
        }
        return running.map { Decision(.pending(nil), changes: [.erasure($0)]) }
    }

    /// The link service's persons of a profile. Those who come later, though by the same external id, are others (L64).
    func persons(
        _ profile: Profile, of named: ErasedProfiles, _ which: EraseProfile.Persons
    ) -> [ForgetPerson] {
        let moment = Timestamp(milliseconds: named.moment)
        // The link service knows whether the user still has the external id (L79).
        let marked = (profile.mark.map { [$0] } ?? []).filter { named.users.contains($0.userID) }
            .map { ForgetPerson(userId: $0.userID, externalId: $0.externalID, erasedAt: moment) }
        switch which {
        case .none: return []
        case .marked: return marked
        case .byCustomerId:
            let named = profile.values(of: .customerID).map { ExternalID($0.value.text) }
                .filter { $0 != marked.first?.externalId }
            return marked + named.map { ForgetPerson(externalId: $0, erasedAt: moment) }
        }
    }

    /// S54, S55.
    /// - Parameter persons: those whom the link service is to forget.
    func begin(
        _ named: ErasedProfiles, _ cause: SyncCause, persons: [ForgetPerson]
    ) throws(Rejection) -> Decision {
        let wiped = try wipe(named, cause)
        // Who is gone, whatever is read of them later (S58), the link service says: it may spare whom it is asked for (L79).
        let users = cause == .forget ? named.users : []
        var decision = wiped.decision
        decision.outcome = .pending(nil)
        decision.changes += users.map { .forgotten(LinkedUser(app: app, id: $0)) }
        let certificate = certificate(
            of: named, cause, wiped.counts, others: named.others.subtracting(wiped.mpids).count,
            .init(userIds: users, mpids: wiped.mpids))
        // Of one that is erased again, everybody who went with it: the certificate is theirs too.
        let sessions = ForgetSessions(mpids: certificate.subject.mpids)
        let commands: [any CommandMessage] = [sessions] + persons
        decision.forwards = commands.enumerated().map { Forward(id: context.forwardID($0), command: $1) }
        let erasure = Erasure(
            command: context.command, certificate: certificate, waiting: decision.forwards.map(\.id),
            persons: Dictionary(
                zip(decision.forwards.dropFirst().map(\.id.text), persons), uniquingKeysWith: { first, _ in first }))
        decision.changes.append(.erasure(erasure))
        decision.changes += kept(certificate)
        return decision
    }

    /// What is erased here.
    private struct Wiped {
        var mpids: [MPID]
        var counts: ErasureCertificate.Counts.Sync
        var decision: Decision
    }

    /// S54, S96.
    private func wipe(_ named: ErasedProfiles, _ cause: SyncCause) throws(Rejection) -> Wiped {
        let profiles = (named.profiles + aliasSources(of: named)).sorted { $0.mpid < $1.mpid }
        let mpids = profiles.map(\.mpid)
        var draft = Draft(state, context, cause)
        draft.touch(named.identities)
        leaveAliases(into: mpids, &draft)
        let gone = profiles.filter { !$0.isErased }
        draft.lift(gone.flatMap(\.barriers))
        for profile in gone { draft.erase(profile) }
        let aliases = state.aliases.values.sorted { $0.key < $1.key }.filter { alias in
            alias.key.app == app && (mpids.contains(alias.source) || mpids.contains(alias.destination))
        }
        for alias in aliases {
            draft.tell(
                AliasDropped(
                    aliasId: alias.key.id, sourceMPID: alias.source, destinationMPID: alias.destination, rule: .erased))
        }
        for profile in gone { draft.tell(ProfileErased(mpid: profile.mpid, cause: cause)) }
        let devices = leaveDevices(of: mpids, &draft)
        for var profile in named.spared.compactMap({ draft.profile($0.mpid) }) {
            profile.mark = nil
            draft.put(profile)
        }
        try moveLaterLinks(from: named, gone, &draft)
        var decision = draft.decision(.noted)
        decision.changes += aliases.map { .aliasDone($0.key) }
        decision.due = try keeping(gone, as: named, draft)
        let counts = ErasureCertificate.Counts.Sync(
            profiles: gone.count, identities: gone.map(\.identities.count).reduce(0, +), devices: devices,
            aliases: aliases.count)
        return Wiped(mpids: mpids, counts: counts, decision: decision)
    }

    /// The certificate before anybody else has answered; of one that is erased again, what was done before counts.
    private func certificate(
        of named: ErasedProfiles, _ cause: SyncCause, _ counts: ErasureCertificate.Counts.Sync, others: Int,
        _ subject: ErasureCertificate.Subject
    ) -> ErasureCertificate {
        let own = ErasureCertificate(
            requestId: context.command.id, erasedAt: Timestamp(milliseconds: named.moment), subject: subject,
            done: .init(sync: counts, verification: .init()), heldByOthers: others,
            remains: ErasureCertificate.Remainder.everywhere(inbox: context.inboxForgets))
        guard var whole = certificate(ofErased: named) else {
            var own = own
            if cause == .erase { own.done.answerForAll() }
            return own
        }
        whole.done.answerForAll()
        whole.add(own)
        return whole
    }

    /// Whoever was linked after the erasure was asked for, and was marked on a profile that goes, gets one as if the link had
    /// been read afterwards (S115). Who was linked before had the external id no longer: it was theirs who go.
    private func moveLaterLinks(from named: ErasedProfiles, _ gone: [Profile], _ draft: inout Draft) throws(Rejection) {
        for profile in gone where settings.fromLinks && profile.hasItsName(settings) {
            guard let mark = profile.mark, !named.users.contains(mark.userID), mark.linkedAt > named.moment,
                !state.erasedUsers.contains(LinkedUser(app: app, id: mark.userID))
            else { continue }
            try draft.mark(mark, context)
        }
    }

    /// Beside each tombstone (S97).
    private func kept(_ certificate: ErasureCertificate) -> [SyncState.Change] {
        certificate.subject.mpids.map {
            .certificate(ErasedProfile(key: Profile.Key(app: app, id: $0), certificate: certificate))
        }
    }

    /// No device has any of these as user any more.
    /// - Returns: how many had one.
    private func leaveDevices(of mpids: [MPID], _ draft: inout Draft) -> Int {
        var count = 0
        for device in state.devices.values.sorted(by: { $0.key < $1.key }) where device.key.app == app {
            let users = [device.current, device.anonymous].compactMap { $0 }
            guard users.contains(where: mpids.contains) else { continue }
            var after = device
            if let current = device.current, mpids.contains(current) {
                after.current = nil
                after.countMove(now: draft.now)
                draft.tell(
                    CurrentUserErased(
                        deviceId: device.key.id, mpid: current, cause: draft.cause, move: after.lastMove))
            }
            if device.anonymous.map(mpids.contains) == true { after.anonymous = nil }
            after.users.removeAll { mpids.contains($0.mpid) || draft.profile($0.mpid)?.isErased != false }
            // What it is known by was said of who is erased (S87). Whoever uses it next says it again.
            after.identities = []
            // A device on which nobody else was seen is forgotten with its id, which often is an identity's value.
            // The number of its last move stays with the app (S86).
            if after.isUnused { after.bucket = nil }
            draft.put(after)
            count += 1
        }
        return count
    }

    /// One of the others has done its part, or cannot.
    func take(_ answer: ForwardAnswer) throws(Rejection) -> Decision {
        guard !answer.isPending,
            var erasure = state.erasures.values.first(where: {
                $0.command.app == app && $0.waiting.contains(answer.forwardID)
            })
        else { return Decision(.noted) }
        erasure.waiting.removeAll { $0 == answer.forwardID }
        if let part = answer.part {
            erasure.certificate.add(part)
            erasure.persons[answer.forwardID.text] = nil
        } else {
            erasure.hasFailed = true
        }
        let users = answer.part?.subject.userIds ?? []
        var decision = try eraseLeft(of: users, &erasure)
        decision.due += keeping(users, goneWith: erasure, decision.due.count)
        guard erasure.waiting.isEmpty else {
            decision.changes += [.erasure(erasure)] + kept(erasure.certificate)
            return decision
        }
        if !erasure.hasFailed { erasure.certificate.completedAt = context.now }
        let outcome: Outcome =
            erasure.hasFailed
            ? .rejected(Rejection(.serverError, "Another service could not erase its part; erase again."))
            : .succeeded(erasure.certificate)
        decision.settlements = ([erasure.command] + erasure.also).map { Settlement($0, outcome) }
        erasure.also = []
        decision.changes += [erasure.persons.isEmpty ? .erasureDone(erasure.command) : .erasure(erasure)]
        decision.changes += kept(erasure.certificate)
        return decision
    }

    /// Whom the link service found by a customer id is erased here too: no link of theirs marks anybody any more (S58), and what
    /// one that was read in the meantime has marked goes (S116).
    private func eraseLeft(of users: [UserID], _ erasure: inout Erasure) throws(Rejection) -> Decision {
        let moment = erasure.certificate.erasedAt.milliseconds
        let (left, spared) = marked(with: users, upTo: moment)
        let forgotten = users.map { SyncState.Change.forgotten(LinkedUser(app: app, id: $0)) }
        if left.isEmpty, spared.isEmpty { return Decision(.noted, changes: forgotten) }
        let wiped = try wipe(
            ErasedProfiles(moment: moment, profiles: left, users: users, spared: spared), .erase)
        var decision = wiped.decision
        decision.changes += forgotten
        guard !left.isEmpty else { return decision }
        decision.forwards = [Forward(id: context.forwardID(0), command: ForgetSessions(mpids: wiped.mpids))]
        erasure.waiting += decision.forwards.map(\.id)
        var part = erasure.certificate
        (part.subject, part.done) = (.init(mpids: wiped.mpids), .init(sync: wiped.counts))
        (part.heldByOthers, part.remains) = (0, [])
        erasure.certificate.add(part)
        return decision
    }
}

extension Draft {
    /// Leaves the MPID. No event says what the profile had (S54, S59).
    mutating func erase(_ profile: Profile) {
        for key in Set(profile.identities.flatMap(everyKey)).sorted() {
            release(key, profile.mpid)
        }
        var tombstone = Profile(app: app, mpid: profile.mpid, seen: now)
        tombstone.isOrphaned = true
        tombstone.isErased = true
        put(tombstone)
    }

    /// Leaves its values, and is nothing to anybody (S205).
    mutating func expire(_ profile: Profile) {
        for key in Set(profile.identities.flatMap(everyKey)).sorted() { release(key, profile.mpid) }
    }

    /// Every key under which the value may have been stored: settings and rules of folding change.
    private func everyKey(_ identity: Identity) -> [IdentityEntry.Key] {
        [identity.value.text, identity.value.text.asciiLowercased, identity.value.text.lowercased()].map {
            IdentityEntry.Key(app: app, type: identity.type, value: IdentityValue($0))
        }
    }
}
