// SPDX-License-Identifier: Apache-2.0

import Contracts

@testable import Link

/// What support does, in the naive model.
extension NaiveLinkModel {
    func look(for query: GetLinkedUser) -> Answer {
        let byName = query.externalId.flatMap { owner(of: $0, app) }
        let byInstall = query.installId.flatMap { installs[$0]?.user }
        guard let user = query.userId ?? byName ?? byInstall, persons[user]?.app == app else {
            return .rejected(.userNotFound)
        }
        // Nobody is on enough installs for a second page.
        return query.after == nil ? .user(card(user)) : .rejected(.invalidRequest)
    }

    private func card(_ user: UserID) -> LinkedUserResult {
        let person = persons[user]
        let rows = installs.filter { $0.value.user == user }.sorted { one, other in
            let times = (one.value.arrived ?? .min, other.value.arrived ?? .min)
            return times.0 == times.1 ? one.key < other.key : times.0 > times.1
        }
        let time = person?.externalID == nil ? nil : person?.named
        return LinkedUserResult(
            userId: user, externalId: person?.externalID, linkedAt: time.map(Timestamp.init(milliseconds:)),
            createdAt: person?.created.map(Timestamp.init(milliseconds:)), isErased: person?.isErased == true,
            installs: rows.map { id, row in
                LinkedUserResult.Install(
                    installId: id, device: row.device, status: row.status,
                    isActive: row.activity == .active && !isFrozen(user), inactiveBecause: reason(id),
                    isUsersFirst: row.isUsersFirst, version: row.version)
            })
    }

    func isFrozen(_ user: UserID?) -> Bool {
        user.flatMap { persons[$0]?.words.values.contains(where: \.isFrozen) } == true
    }

    /// Each profile's last word counts, and one that says so is enough.
    mutating func freeze(_ event: UserRestrictionChanged) -> [AnyHashable] {
        let (user, at) = (event.userId, event.changedAt.milliseconds)
        guard let person = persons[user], person.app == app, !person.isErased,
            person.words[event.mpid].map({ $0.at >= at }) != true
        else { return [] }
        let before = isFrozen(user)
        persons[user]?.words[event.mpid] = Word(isFrozen: event.isRestricted, at: at)
        if before == isFrozen(user) { return [] }
        let mine = installs.filter { $0.value.user == user }.keys.sorted()
        return mine.map { stir($0, before ? .unrestricted : .restricted, nil, since: installs[$0]?.since) }
    }

    /// Nobody has the external id, and somebody had it until a moment ago.
    func isHeld(_ externalID: ExternalID) -> Bool {
        guard let hold = holds[app]?[externalID] else { return false }
        return hold.givenAway == nil && hold.until > now
    }

    /// What was meant before that meant somebody else.
    func givenAway(_ externalID: ExternalID) -> Int64 {
        guard let hold = holds[app]?[externalID], hold.until > now else { return .min }
        return hold.givenAway ?? .min
    }

    /// The later of two names counts, so no two begin at one time.
    mutating func name(_ user: UserID, _ externalID: ExternalID?) {
        let next = persons[user]?.named.map { $0 + 1 } ?? .min
        persons[user]?.named = max(moment, next)
        persons[user]?.externalID = externalID
    }

    /// Something about the person on the install is other than it was.
    mutating func stir(
        _ id: InstallID, _ cause: InstallStatusChanged.Cause, _ command: (any RepairCommand)?, since: Int64? = nil
    ) -> AnyHashable {
        let version = installs[id]?.version ?? -1
        installs[id]?.version += 1
        installs[id]?.since = since
        // It may still be owed its person.
        if cause != .superseded {
            takeovers = takeovers.mapValues { all in
                all.map { one in
                    guard one.loser == id, one.version == version else { return one }
                    return Takeover(winner: one.winner, loser: id, version: version + 1, before: one.before)
                }
            }
        }
        return news(of: id, cause, command)
    }

    private func news(
        of id: InstallID, _ cause: InstallStatusChanged.Cause, _ command: (any RepairCommand)?
    ) -> AnyHashable {
        let result = result(id)
        return InstallStatusChanged(
            installId: id, status: result.status, isActive: result.isActive, userId: result.userId,
            isLinked: result.externalId != nil, cause: cause, inactiveBecause: result.inactiveBecause,
            version: result.version, author: command?.author, reason: command?.reason)
    }

    mutating func makeActive(_ command: MakeInstallActive) -> Told {
        let id = command.installId
        guard let row = installs[id] else { return (.rejected(.installNotFound), []) }
        if row.status == .deleted || isOld(row) { return (.rejected(.installDeleted), []) }
        if row.status == .disabled { return (.rejected(.installDisabled), []) }
        guard let user = row.user, row.arrived ?? .min <= moment else { return (.rejected(.noUser), []) }
        var events: [AnyHashable] = []
        if row.activity != .active {
            installs[id]?.activity = .active
            installs[id]?.version += 1
            events.append(news(of: id, .chosen, command))
        }
        if row.activity != .active { takeovers[user]?.removeAll { $0.winner == id } }
        for loser in losers(of: user, except: id) {
            let before = installs[loser]?.activity ?? .none
            installs[loser]?.activity = .deactivated
            installs[loser]?.isBrought = false
            events.append(stir(loser, .superseded, nil, since: installs[loser]?.since))
            takeovers[user, default: []].append(
                Takeover(winner: id, loser: loser, version: installs[loser]?.version ?? -1, before: before))
        }
        return (.install(result(id)), events)
    }

    private func repaired(_ user: UserID?, _ externalID: ExternalID?) -> Result<UserID, Refusal> {
        guard let id = user ?? externalID.flatMap({ owner(of: $0, app) }), let person = persons[id], person.app == app
        else { return .failure(Refusal(reason: .userNotFound)) }
        return person.isErased ? .failure(Refusal(reason: .userErased)) : .success(id)
    }

    struct Refusal: Error { var reason: ReasonCode }

    mutating func unlink(_ command: UnlinkUser) -> Told {
        switch repaired(command.userId, nil) {
        case .failure(let refusal): return (.rejected(refusal.reason), [])
        case .success(let user):
            guard let externalID = persons[user]?.externalID else { return (.user(card(user)), []) }
            name(user, nil)
            persons[user]?.barred.insert(TextDigest(of: externalID.text))
            let event = ExternalIDRemoved(
                userId: user, externalId: externalID,
                unlinkedAt: Timestamp(milliseconds: persons[user]?.named ?? -1), author: command.author,
                reason: command.reason)
            let mine = installs.filter { $0.value.user == user }.keys.sorted()
            let events = mine.map { stir($0, .unlinked, command, since: moment) }
            return (.user(card(user)), [event] + events)
        }
    }

    mutating func rename(_ command: ChangeExternalID, linkingIsOn: Bool) -> Told {
        let new = command.newExternalId
        if Self.isBad(new) { return (.rejected(.invalidRequest), []) }
        if !linkingIsOn { return (.rejected(.userLinkingNotConfigured), []) }
        switch repaired(command.userId, command.externalId) {
        case .failure(let refusal): return (.rejected(refusal.reason), [])
        case .success(let user):
            let old = persons[user]?.externalID
            // Meant was whoever had it when that was written.
            if command.userId == nil, let named = persons[user]?.named, named > moment {
                return (.rejected(.externalIDChanged), [])
            }
            if old == new { return (.user(card(user)), []) }
            // Support may free it, when others had a minute to hear.
            let isFreed = command.endHold == true && (holds[app]?[new]?.begun ?? 0) + 60_000 <= now
            let isOthers = isHeld(new) && holds[app]?[new]?.user != user && !isFreed
            if owner(of: new, app) != nil || isOthers { return (.rejected(.externalIDTaken), []) }
            name(user, new)
            persons[user]?.barred.remove(TextDigest(of: new.text))
            var past = (persons[user]?.past ?? []).filter { ![old, new].contains($0.externalId) }
            if let old, let end = persons[user]?.named {
                past.append(FormerExternalID(externalId: old, until: Timestamp(milliseconds: end)))
            }
            persons[user]?.past = past.count > 16 ? Array(past.dropFirst()) : past
            let event = ExternalIDChanged(
                userId: user, externalId: new, previousExternalId: old,
                linkedAt: Timestamp(milliseconds: persons[user]?.named ?? -1), author: command.author,
                reason: command.reason)
            if isHeld(new) {
                if holds[app]?[new]?.user == user {
                    holds[app]?[new] = nil
                } else {
                    holds[app]?[new]?.givenAway = persons[user]?.named
                }
            }
            if let old { holds[app, default: [:]][old] = HoldRow(user: user, begun: now, until: now + holdFor) }
            let mine = old == nil ? installs.filter { $0.value.user == user }.keys.sorted() : []
            let news = mine.map { stir($0, .relinked, command) }
            return (.user(card(user)), [event] + news)
        }
    }

    mutating func setStatus(_ command: SetInstallStatus) -> Told {
        guard let row = installs[command.installId] else { return (.rejected(.installNotFound), []) }
        if isOld(row) { return (.rejected(.installDeleted), []) }
        if row.status == command.status { return (.install(result(command.installId)), []) }
        if row.status == .deleted { return (.rejected(.installDeleted), []) }
        installs[command.installId]?.status = command.status
        installs[command.installId]?.version += 1
        switch (row.activity, command.status) {
        case (.active, .disabled): installs[command.installId]?.activity = .suspended
        case (.active, .deleted), (.suspended, .deleted): installs[command.installId]?.activity = .deactivated
        case (.suspended, .enabled):
            let others = activeInstalls(of: row.user ?? "", except: command.installId)
            installs[command.installId]?.activity = others.isEmpty ? .active : .deactivated
        default: break
        }
        let result = result(command.installId)
        return (
            .install(result),
            [
                InstallStatusChanged(
                    installId: command.installId, status: command.status, isActive: result.isActive, userId: row.user,
                    isLinked: result.externalId != nil, cause: .command,
                    inactiveBecause: reason(command.installId), version: row.version + 1)
            ]
        )
    }
}
