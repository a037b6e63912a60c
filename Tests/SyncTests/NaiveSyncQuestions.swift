// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts

@testable import Runtime
@testable import Sync

/// Who is who in the naive model.
extension NaiveSyncModel {
    func sent(_ request: SyncRequest) -> [Identity] {
        IdentityType.allCases.compactMap { type in
            guard let value = request.knownIdentities[type.rawValue] ?? nil else { return nil }
            if let vouched = request.vouchedFor, !vouched.contains(type) { return nil }
            return Identity(type, IdentityValue(value))
        }
    }

    /// A value as it is compared.
    func folded(_ id: Identity) -> Identity {
        guard settings.foldedIdentities.contains(id.type) else { return id }
        let small = id.value.text.unicodeScalars.map { ("A"..."Z").contains($0) ? String($0).lowercased() : String($0) }
        return Identity(id.type, IdentityValue(small.joined()))
    }

    func same(_ a: Identity, _ b: Identity) -> Bool { folded(a) == folded(b) }

    /// S70. By what stands first in the vendor's words: whatever belongs to a piece of hardware, or to an app on it.
    static func isOfDevice(_ id: Identity) -> Bool { isOfDevice(id.type.rawValue) }

    static func isOfDevice(_ type: String) -> Bool {
        ["device_", "ios_", "android_", "fire_", "push_", "roku_", "amp_", "microsoft_"].contains { type.hasPrefix($0) }
    }

    /// Whether the sender's word about people counts.
    var isBelieved: Bool { isService || vouches || !enforces }

    func believe(_ types: [String]) throws(Refusal) {
        if !isBelieved, !types.allSatisfy(Self.isOfDevice) { throw Refusal(reason: .verificationRequired) }
    }

    /// Where verification is enforced, what an anonymous person says of themselves is overheard, but for their devices.
    func heard(_ person: Person) -> Person {
        guard enforces, !isKnown(person) else { return person }
        var person = person
        person.ids.removeAll { !Self.isOfDevice($0) }
        return person
    }

    /// Whether anybody else can have to do with an anonymous person: another device has them, this one never had, or there
    /// is a word about them that is not this login's.
    func isShared(_ person: Person, with id: DeviceID, _ ids: [Identity]) -> Bool {
        if devices.contains(where: { $0.key != id && $0.value.current == person.mpid }) { return true }
        guard let device = devices[id], device.current == person.mpid || device.anonymous == person.mpid else {
            return true
        }
        return person.ids.contains { mine in !Self.isOfDevice(mine) && !ids.contains { same($0, mine) } }
    }

    /// Who somebody is, for support.
    func look(for query: GetProfile) throws(Refusal) -> ProfileResult {
        var found = person(query.mpid).map { [$0] } ?? []
        if let named = query.named {
            if isNobodys(named.value.text) { throw Refusal(reason: .validationError) }
            found = meant([named])
        }
        if found.count > 1 { throw Refusal(reason: .ambiguousIdentity) }
        guard let person = found.first else { throw Refusal(reason: .notFoundError) }
        func time(_ milliseconds: Int64) -> Timestamp { Timestamp(milliseconds: milliseconds) }
        let homes = devices.filter { [$0.value.current, $0.value.anonymous].contains(person.mpid) }
        let seen = homes.compactMap { id, device -> ProfileResult.Device? in
            guard let user = device.users.first(where: { $0.mpid == person.mpid }) else { return nil }
            return ProfileResult.Device(
                deviceId: id, isCurrent: device.current == person.mpid, firstSeen: time(user.first),
                lastSeen: time(user.last))
        }
        let fences = fences.filter { [$0.mpid, $0.other].contains(person.mpid) }
        return ProfileResult(
            mpid: person.mpid,
            identities: Dictionary(grouping: person.ids, by: \.type.rawValue).mapValues { ids in
                ids.map(\.value.text)
            }, identityCount: person.ids.count, isLoggedIn: isKnown(person), firstSeen: time(person.first),
            lastSeen: time(person.last),
            aliasedSince: person.since.map(time), aliasedFrom: Set(origins[person.mpid] ?? []).sorted(),
            aliasedFromCount: Set(origins[person.mpid] ?? []).count, name: person.name, userId: person.user,
            devices: seen.sorted { $0.lastSeen == $1.lastSeen ? $0.deviceId < $1.deviceId : $0.lastSeen > $1.lastSeen },
            deviceCount: seen.count,
            barriers: fences.map { MergeBarrier(mpid: $0.mpid, identity: $0.id, otherMPID: $0.other) },
            barrierCount: fences.count, isRestricted: person.isFrozen, isOrphaned: person.isOrphan,
            isErased: person.isErased)
    }

    func isLogin(_ id: Identity) -> Bool { settings.loginIdentities.contains(id.type) }

    func isNobodys(_ value: String) -> Bool { RandomCommands.nobodies.contains(value) }

    /// What of a request counts.
    func usable(_ request: SyncRequest, _ operation: SyncCommand.Operation) throws(Refusal) -> [Identity] {
        let leaving = operation == .logout && settings.strategy != .bestMatch
        let mayBeSilent = [.logout: true, .identify: isService][operation] ?? false
        let all = sent(request)
        if all.isEmpty, !mayBeSilent { throw Refusal(reason: .lookupError) }
        if isOld { throw Refusal(reason: .profileErased) }
        return try usable(all, leaving: leaving, mayBeSilent: mayBeSilent)
    }

    func usable(_ all: [Identity], leaving: Bool, mayBeSilent: Bool = false) throws(Refusal) -> [Identity] {
        if !leaving {
            try believe(all.map(\.type.rawValue))
            if all.contains(where: { isLogin($0) && isNobodys($0.value.text) }) {
                throw Refusal(reason: .validationError)
            }
        }
        let left = all.filter { isLogin($0) || !isNobodys($0.value.text) }
        if left.isEmpty, !mayBeSilent { throw Refusal(reason: .lookupError) }
        return left.filter { !leaving || !isLogin($0) && (isBelieved || Self.isOfDevice($0)) }
    }

    func person(_ mpid: MPID?) -> Person? { people.first { $0.mpid == mpid } }

    func isKnown(_ person: Person) -> Bool { person.ids.contains { settings.loginIdentities.contains($0.type) } }

    func holders(_ id: Identity) -> [Person] { people.filter { $0.ids.contains { same($0, id) } } }

    func mayBeFound(_ person: Person, by ids: [Identity]) -> Bool {
        isNamed(person, by: ids) && (settings.joinByLowerRank || !isStranger(person, to: ids))
            && !isFencedOff(person, from: ids)
    }

    private func isNamed(_ person: Person, by ids: [Identity]) -> Bool {
        for types in [settings.loginIdentities, settings.immutableIdentities] {
            let own = person.ids.filter { types.contains($0.type) }
            if !own.isEmpty, !own.contains(where: { mine in ids.contains { same($0, mine) } }) { return false }
        }
        return true
    }

    /// Walks down the login identities of the request: who has another value of one, before any that they have in common,
    /// is somebody else. Who has none in common is not known to be anybody.
    func isStranger(_ person: Person, to ids: [Identity]) -> Bool {
        var differs = false
        for type in settings.priority where settings.loginIdentities.contains(type) {
            guard let id = ids.first(where: { $0.type == type }) else { continue }
            let own = person.ids.filter { $0.type == type }
            if own.contains(where: { same($0, id) }) { return differs }
            if !own.isEmpty { differs = true }
        }
        return false
    }

    /// Whether somebody would have been found but for a higher-ranked identity.
    func meetsStranger(_ ids: [Identity]) -> Bool {
        people.contains { person in
            guard person.ids.contains(where: { mine in isLogin(mine) && ids.contains { same($0, mine) } }),
                isNamed(person, by: ids)
            else { return false }
            return isFencedOff(person, from: ids) || !settings.joinByLowerRank && isStranger(person, to: ids)
        }
    }

    /// Keeps only what the best ranked types leave; a type that would leave nobody does not count.
    func find(_ ids: [Identity], current: MPID?) -> (MPID, SyncRule)? {
        var left = people.map(heard).filter { person in
            mayBeFound(person, by: ids)
                && ids.contains { id in settings.priority.contains(id.type) && person.ids.contains { same($0, id) } }
        }
        let byWords = settings.priority.filter { !Self.isOfDevice($0.rawValue) }
        let byDevices = settings.priority.filter { Self.isOfDevice($0.rawValue) }
        for type in enforces ? byWords + byDevices : settings.priority {
            guard let id = ids.first(where: { $0.type == type }) else { continue }
            let kept = left.filter { $0.ids.contains { same($0, id) } }
            if !kept.isEmpty { left = kept }
        }
        guard !left.isEmpty else { return nil }
        if left.count == 1 { return (left[0].mpid, .matched) }
        if let current, left.contains(where: { $0.mpid == current }) { return (current, .tieToCurrentUser) }
        let newest = left.map(\.last).max()
        let best = left.filter { $0.last == newest }
        let smallest = best.map(\.mpid).min() ?? left[0].mpid
        return (smallest, best.count == 1 ? .tieToMostRecent : .tieToSmallest)
    }

    func findPerson(_ ids: [Identity]) -> (MPID, SyncRule)? {
        let userID = ids.first { $0.type == .customerID }
        if let userID, let owner = holders(userID).first { return (owner.mpid, .matched) }
        guard let email = ids.first(where: { $0.type == .email }) else { return nil }
        let free = holders(email).filter { person in
            (userID == nil || !person.ids.contains { $0.type == .customerID }) && !isFencedOff(person, from: ids)
        }
        guard let first = free.map(\.first).min() else { return nil }
        let oldest = free.filter { $0.first == first }.map(\.mpid).min()
        return oldest.map { ($0, free.count == 1 ? .matched : .tieToOldest) }
    }
}
