// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto

@testable import Runtime
@testable import Sync

extension NaiveSyncModel {
    /// What a command did, in the order in which it did it.
    struct Deeds {
        struct Change {
            var mpid: MPID
            var reason: IdentitiesChanged.Reason
            var added: [Identity] = []
            var removed: [Identity] = []
        }

        var changes: [Change] = []
        /// Who lost the last identity, and to whom.
        var emptied: [(mpid: MPID, heir: MPID?)] = []
        var warnings: [ValueTooCommon] = []
        var alias: (any EventMessage)?
        /// Two who were known, of whom support says that they are one.
        var joined: [(source: MPID, heir: MPID)] = []
        /// Aliases that waited for somebody who was erased.
        var dropped: [AliasDropped] = []
        /// What the other services are asked to erase.
        var asked: [AnyHashable] = []
        /// By what those who were erased are known again.
        var told: [Memory] = []
        /// And who of the link service's users went.
        var toldUsers: [UserID] = []
        /// Who stays another user's without the name.
        var kept: Set<MPID> = []
        /// What of a request somebody may not have.
        var left: Set<IdentityType> = []
        /// What is told of people who were taken apart.
        var repair: (any EventMessage)?
        /// Whose sessions count no longer, because a name went by which they may have been verified.
        var unproved: MPID?
        /// The devices that went along.
        var followers: Set<DeviceID> = []
        /// Erasures that ended.
        var settled: [Settled] = []
        /// The numbers of the moves that the command was to devices.
        var turns: [DeviceID: Int64] = [:]

        mutating func note(
            _ mpid: MPID, _ reason: IdentitiesChanged.Reason, added: [Identity] = [], removed: [Identity] = []
        ) {
            let place = changes.firstIndex { $0.mpid == mpid && $0.reason == reason }
            if place == nil { changes.append(Change(mpid: mpid, reason: reason)) }
            changes[place ?? changes.count - 1].added += added
            changes[place ?? changes.count - 1].removed += removed
        }
    }

    func digest(_ id: Identity) -> String {
        SHA256.hash(data: Array(folded(id).value.text.utf8)).hex
    }

    /// What is told of a step: who came to be, what changed, who is an orphan, which values too many have; then of
    /// devices, and of the erased.
    func events(since before: NaiveSyncModel, by command: SyncCommand, _ rule: SyncRule?) -> [any EventMessage] {
        if let alias = deeds.alias { return [alias] }
        guard let cause = command.toldCause else { return [] }
        if case .importProfiles(let list) = command, list.events == false {
            // But of devices that had moved before.
            return devices(since: before, by: command, cause, rule).filter { event in
                guard let changed = event as? CurrentUserChanged else { return false }
                return before.devices[changed.deviceId]?.moved ?? before.mostMoved > 0
            }
        }
        let new = people.filter { before.person($0.mpid) == nil }
        var told: [any EventMessage] = new.map { person in
            ProfileCreated(
                mpid: person.mpid, cause: cause, rule: rule ?? .createdForLink, isLoggedIn: isKnown(person),
                identities: person.ids)
        }
        for change in deeds.changes {
            guard before.person(change.mpid) != nil, let person = person(change.mpid) else { continue }
            told.append(
                IdentitiesChanged(
                    mpid: change.mpid, cause: cause, reason: change.reason, added: change.added,
                    removed: change.removed, isLoggedIn: isKnown(person)))
        }
        var seen: Set<MPID> = []
        for (mpid, heir) in deeds.emptied {
            let isNew = before.person(mpid)?.isOrphan == false && person(mpid)?.isOrphan == true
            guard isNew, seen.insert(mpid).inserted else { continue }
            told.append(ProfileOrphaned(mpid: mpid, cause: cause, takenBy: heir))
        }
        told += deeds.warnings
        told += masters(since: before, cause) as [any EventMessage]
        told += freezes(since: before) as [any EventMessage]
        told += deeds.dropped as [any EventMessage]
        if let repair = deeds.repair { told.append(repair) }
        told += deeds.joined.map { source, heir in
            ProfileJoined(
                sourceMPID: source, destinationMPID: heir, cause: cause, identities: person(source)?.ids ?? [])
        }
        told += erased(since: before, cause)
        return told + devices(since: before, by: command, cause, rule)
    }

    /// Whose users they are: for whom that is another answer than it was, or who has come to be.
    private func masters(since before: NaiveSyncModel, _ cause: SyncCause) -> [LinkedUserChanged] {
        people.filter { !$0.isErased }.sorted { $0.mpid < $1.mpid }.compactMap { person in
            let was = before.person(person.mpid).flatMap(\.user)
            if was == person.user { return nil }
            return LinkedUserChanged(
                mpid: person.mpid, cause: cause, previousUserId: was, userId: person.user, identities: person.ids)
        }
    }

    private func erased(since before: NaiveSyncModel, _ cause: SyncCause) -> [ProfileErased] {
        let gone = people.filter { $0.isErased && before.person($0.mpid)?.isErased == false }
        return gone.map(\.mpid).sorted().map { ProfileErased(mpid: $0, cause: cause) }
    }

    private func devices(
        since before: NaiveSyncModel, by command: SyncCommand, _ cause: SyncCause, _ rule: SyncRule?
    ) -> [any EventMessage] {
        var asked = Array(Set(devices.keys).union(before.devices.keys)).sorted()
        // All whose user it makes known or anonymous (S38), the own one first.
        if case .move(_, let request) = command {
            asked = asked.filter { $0 == request.deviceId } + asked.filter { $0 != request.deviceId }
        }
        asked = asked.filter(deeds.followers.contains) + asked.filter { !deeds.followers.contains($0) }
        return asked.compactMap { id -> (any EventMessage)? in
            let (old, now) = (before.devices[id]?.current, devices[id]?.current)
            guard let now, let person = person(now) else {
                return old.map { CurrentUserErased(deviceId: id, mpid: $0, cause: cause, move: deeds.turns[id] ?? 0) }
            }
            let isUnproved = old == deeds.unproved && old != nil
            guard old != now || isUnproved || before.person(now).map(before.isKnown) != isKnown(person) else {
                return nil
            }
            return CurrentUserChanged(
                deviceId: id, previousMPID: old, mpid: now, cause: cause, rule: rule ?? .named,
                isLoggedIn: isKnown(person), isEphemeral: isEphemeral(person), move: deeds.turns[id] ?? 0)
        }
    }

    /// S86: what a command was to the devices that it does not name.
    mutating func turnOthers(since before: NaiveSyncModel, now: Int64) {
        for (id, device) in devices where deeds.turns[id] == nil {
            guard let user = person(device.current),
                before.devices[id]?.current == deeds.unproved && deeds.unproved != nil
                    || before.person(user.mpid).map(before.isKnown) != isKnown(user)
            else { continue }
            devices[id]?.turn(now)
            deeds.turns[id] = devices[id]?.moved
        }
    }
}

extension SyncCommand {
    /// What its events name as their cause.
    var toldCause: SyncCause? {
        switch self {
        case .move(.identify, _): .identify
        case .move(.login, _): .login
        case .move(.logout, _): .logout
        case .modify: .modify
        case .detach, .allow, .restrict: .detach
        case .importProfiles: .importing
        case .erase, .keepErased, .answered: .erase
        case .forget: .forget
        case .linked, .renamed, .unlinked: .link
        case .expireProfile, .expireDevice: .expire
        case .search, .alias, .applyAlias, .getUsers, .getErasure, .getProfile, .facts, .fileRequest, .getRequest,
            .getRequests, .cancelRequest, .getRequestResults, .processRequest:
            nil
        }
    }
}

extension NaiveSyncModel.Device {
    /// - Parameter isMeant: whoever says nothing of the device means what it said last (S88).
    /// - Returns: what else is meant.
    mutating func speak(_ named: [Identity], _ isMeant: Bool) -> [Identity] {
        let news = named.filter { NaiveSyncModel.isOfDevice($0) }
        if news.isEmpty { return isMeant ? own : [] }
        own = news.sorted { $0.type.rawValue < $1.type.rawValue }
        return []
    }
}
