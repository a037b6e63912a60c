// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts

@testable import Runtime
@testable import Sync

/// Who comes from another system, in the naive model: each of a list for itself, one after the other.
extension NaiveSyncModel {
    private struct No: Error {
        var reason: ImportConflict
        var type: IdentityType?
    }

    mutating func bring(_ list: ImportProfiles, now: Int64) throws(Refusal) -> [ImportResult.Element] {
        if !isBelieved { throw Refusal(reason: .verificationRequired) }
        var done: Set<MPID> = []
        var results: [ImportResult.Element] = []
        for (index, element) in list.profiles.enumerated() {
            guard case .read(let profile) = element, isWhole(profile),
                !done.contains(profile.mpid) || elements[profile.mpid] == profile
            else {
                results.append(.init(index: index, outcome: .invalid))
                continue
            }
            do throws(No) {
                let outcome = try bring(profile, mayAdd: list.upsert == true, now)
                if outcome != .same { done.insert(profile.mpid) }
                results.append(.init(index: index, outcome: outcome))
            } catch {
                results.append(.init(index: index, outcome: .conflict, reason: error.reason, type: error.type))
            }
        }
        return results
    }

    private func ids(_ profile: ImportedProfile) -> [Identity] {
        let all = profile.identities.flatMap { name, values in
            values.values.compactMap { value in IdentityType(rawValue: name).map { Identity($0, IdentityValue(value)) }
            }
        }
        // Those of one type stay in their order.
        var distinct: [Identity] = []
        for type in Set(all.map(\.type)).sorted(by: { $0.rawValue < $1.rawValue }) {
            for id in all where id.type == type && !distinct.contains(where: { same($0, id) }) { distinct.append(id) }
        }
        return distinct
    }

    private func isWhole(_ profile: ImportedProfile) -> Bool {
        let ids = ids(profile)
        return !ids.contains { id in isSingle(id.type) && ids.filter { $0.type == id.type }.count > 1 }
    }

    private mutating func bring(_ profile: ImportedProfile, mayAdd: Bool, _ now: Int64) throws(No) -> ImportOutcome {
        let spans =
            [[profile.firstSeen, profile.lastSeen]] + (profile.devices ?? []).map { [$0.firstSeen, $0.lastSeen] }
        if spans.contains(where: { $0[0] > $0[1] || $0[1].milliseconds - now > 3_600_000 }) {
            throw No(reason: .badTime)
        }
        if let me = person(profile.mpid) {
            if me.isErased { throw No(reason: .profileErased) }
            if elements[profile.mpid] == profile { return .same }
            return try addTo(me, profile, mayAdd, now)
        }
        let ids = try somebodys(profile)
        for id in ids { try room(for: id) }
        try count(ids)
        let taken = (profile.devices ?? []).contains { $0.isCurrent && devices[$0.deviceId]?.current != nil }
        if taken, !mayAdd { throw No(reason: .deviceTaken) }
        people.append(
            Person(
                mpid: profile.mpid, first: profile.firstSeen.milliseconds, last: profile.lastSeen.milliseconds,
                name: profile.name))
        elements[profile.mpid] = profile
        for id in ids { give(id, to: profile.mpid, .attached) }
        for device in profile.devices ?? [] { seat(profile.mpid, device, now) }
        return .created
    }

    private mutating func addTo(
        _ me: Person, _ profile: ImportedProfile, _ mayAdd: Bool, _ now: Int64
    ) throws(No) -> ImportOutcome {
        if me.isFrozen { throw No(reason: .restricted) }
        let news = try somebodys(profile).filter { id in !me.ids.contains { same($0, id) } }
        let seats = (profile.devices ?? []).filter { one in
            devices[one.deviceId]?.users.contains { $0.mpid == me.mpid } != true
        }
        if news.isEmpty, seats.isEmpty, profile.name == nil || profile.name == me.name { return .same }
        if !mayAdd { throw No(reason: .differs) }
        if me.isOrphan { throw No(reason: .immutable) }
        for id in news {
            if isFenced(id, me.mpid) { throw No(reason: .mergeBarred, type: id.type) }
            let hasOne = me.ids.contains { $0.type == id.type }
            if hasOne, settings.immutableIdentities.contains(id.type) { throw No(reason: .immutable, type: id.type) }
            if hasOne, isSingle(id.type) { throw No(reason: .differs, type: id.type) }
            try room(for: id)
        }
        try count(me.ids + news)
        // Another name is not taken.
        if news.isEmpty, seats.isEmpty, me.name != nil { return .same }
        elements[me.mpid] = profile
        change(me.mpid) { $0.name = $0.name ?? profile.name }
        for id in news { give(id, to: me.mpid, .attached) }
        for device in seats { seat(me.mpid, device, now) }
        return .changed
    }

    private func somebodys(_ profile: ImportedProfile) throws(No) -> [Identity] {
        let all = ids(profile)
        if let bad = all.first(where: { isLogin($0) && isNobodys($0.value.text) }) {
            throw No(reason: .valueNamesNobody, type: bad.type)
        }
        return all.filter { !isNobodys($0.value.text) }
    }

    private func room(for id: Identity) throws(No) {
        let count = holders(id).count
        if settings.uniqueIdentities.contains(id.type) {
            if count > 0 { throw No(reason: .identityTaken, type: id.type) }
        } else if count >= settings.limits.profilesPerValue {
            throw No(reason: .limitExceeded, type: id.type)
        }
    }

    private func count(_ ids: [Identity]) throws(No) {
        let many = Set(ids.map(\.type)).filter { type in
            ids.filter { $0.type == type }.count > settings.limits.valuesPerType
        }
        if let type = many.min(by: { $0.rawValue < $1.rawValue }) { throw No(reason: .limitExceeded, type: type) }
    }

    /// Among those who were on the device, the last one first; whose it is, is the first.
    private mutating func seat(_ mpid: MPID, _ one: ImportedProfile.Device, _ now: Int64) {
        guard let me = person(mpid) else { return }
        var device = devices[one.deviceId] ?? Device(moved: mostMoved)
        let seen = Seen(mpid: mpid, first: one.firstSeen.milliseconds, last: one.lastSeen.milliseconds)
        let anonymousLast = device.users.first { $0.mpid == device.anonymous }?.last
        let isItsUser = one.isCurrent && device.current == nil
        if isItsUser {
            device.current = mpid
            device.users = [seen] + device.users
            device.turn(now)
            deeds.turns[one.deviceId] = device.moved
        } else {
            let place = device.users.indices.first {
                !($0 == 0 && device.current != nil) && device.users[$0].last < seen.last
            }
            device.users.insert(seen, at: place ?? device.users.count)
        }
        let isLast = device.anonymous == nil || anonymousLast.map { $0 < seen.last } == true
        if !isKnown(me), isItsUser || isLast { device.anonymous = mpid }
        device.users = Array(device.users.prefix(settings.limits.usersPerDevice))
        devices[one.deviceId] = device
    }
}
