// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts

@testable import Runtime
@testable import Sync

/// Taking people apart, and what they may not have since, in the naive model.
extension NaiveSyncModel {
    /// What somebody may not have, because it is somebody else's.
    struct Fence: Hashable {
        var id: Identity
        var mpid: MPID
        var other: MPID
    }

    func isFenced(_ id: Identity, _ mpid: MPID) -> Bool {
        fences.contains { $0.mpid == mpid && same($0.id, id) }
    }

    func areApart(_ one: MPID, _ other: MPID) -> Bool {
        fences.contains { Set([$0.mpid, $0.other]) == [one, other] }
    }

    /// Whoever is called by what the person may not have, before anything that the person has, is somebody else; and so is
    /// whoever is called by it at all, for somebody without a name.
    func isFencedOff(_ person: Person, from ids: [Identity]) -> Bool {
        guard let whole = self.person(person.mpid) else { return false }
        if !isKnown(whole), ids.contains(where: { isLogin($0) && isFenced($0, whole.mpid) }) { return true }
        guard ids.contains(where: { id in whole.ids.contains { same($0, id) } }) else { return false }
        for type in settings.priority {
            for id in ids where id.type == type {
                if whole.ids.contains(where: { same($0, id) }) { return false }
                if isFenced(id, whole.mpid) { return true }
            }
        }
        return false
    }

    mutating func detach(
        _ command: DetachIdentities, taken: [MPID], newMPID: MPID, now: Int64
    ) throws(Refusal) -> DetachResult {
        if !isBelieved { throw Refusal(reason: .verificationRequired) }
        guard let me = person(command.mpid), !me.isErased else { throw Refusal(reason: .notFoundError) }
        let keepers = fences.reversed().filter { $0.mpid == me.mpid }.map(\.other)
        for target in command.toMPID.map({ [$0] }) ?? taken + keepers {
            let isDone = command.named.allSatisfy { id in
                fences.contains { $0.mpid == me.mpid && $0.other == target && same($0.id, id) }
            }
            if isDone {
                return DetachResult(mpid: me.mpid, newMPID: target, moved: [], devices: [], deviceCount: 0)
            }
        }
        if command.toMPID == nil, isOld { throw Refusal(reason: .profileErased) }
        var ids: [Identity] = []
        for named in command.named {
            guard let id = me.ids.first(where: { same($0, named) }) else { throw Refusal(reason: .validationError) }
            if !ids.contains(id) { ids.append(id) }
        }
        if me.ids.allSatisfy(ids.contains) { throw Refusal(reason: .validationError) }
        let (before, commonBefore) = (self, common)
        do throws(Refusal) {
            let heir = try inherit(ids, of: me, command.toMPID, newMPID: newMPID, now: now)
            return part(me, from: heir, ids, command, before, now: now)
        } catch {
            (people, common) = (before.people, commonBefore)
            deeds = before.deeds
            throw error
        }
    }

    private mutating func inherit(
        _ ids: [Identity], of me: Person, _ named: MPID?, newMPID: MPID, now: Int64
    ) throws(Refusal) -> MPID {
        let heir = named ?? newMPID
        if let named {
            guard let known = person(named), !known.isErased else { throw Refusal(reason: .notFoundError) }
            change(named) { $0.isOrphan = false }
        } else {
            people.append(Person(mpid: newMPID, first: now, last: now, isFrozen: me.isFrozen))
        }
        take(ids, from: me.mpid, .detached, heir: heir)
        for id in ids {
            let own = person(heir)?.ids ?? []
            if own.contains(where: { same($0, id) }) { continue }
            if isFenced(id, heir) { throw Refusal(reason: .mergeBarred) }
            let alike = own.filter { $0.type == id.type }
            if isSingle(id.type), !alike.isEmpty { throw Refusal(reason: .validationError) }
            if alike.count >= settings.limits.valuesPerType { throw Refusal(reason: .limitExceeded) }
            give(id, to: heir, .detached)
            change(heir) { $0.named[id] = me.named[id] }
        }
        return heir
    }

    private mutating func part(
        _ me: Person, from heir: MPID, _ ids: [Identity], _ command: DetachIdentities, _ before: NaiveSyncModel,
        now: Int64
    ) -> DetachResult {
        if person(heir)?.user == nil, isAsMarked(me), let customer = me.customer {
            let name = Identity(.customerID, IdentityValue(customer.text))
            if person(heir)?.ids.contains(where: { same($0, name) }) == true {
                change(heir) { ($0.user, $0.customer, $0.linked, $0.own) = (me.user, customer, me.linked, me.own) }
            }
        }
        let kept = me.ids.filter { id in
            !ids.contains(id) && !Self.isOfDevice(id) && person(heir)?.ids.contains { same($0, id) } == false
        }
        let new = ids.map { Fence(id: $0, mpid: me.mpid, other: heir) }
        for fence in new + kept.map({ Fence(id: $0, mpid: heir, other: me.mpid) }) where !fences.contains(fence) {
            fences.append(fence)
        }
        for (id, pair) in aliases.sorted(by: { $0.key < $1.key }) where Set(pair) == [me.mpid, heir] {
            deeds.dropped.append(
                AliasDropped(aliasId: id, sourceMPID: pair[0], destinationMPID: pair[1], rule: .detached))
            aliases[id] = nil
        }
        pairs.removeAll { Set($0.of) == [me.mpid, heir] }
        origins[me.mpid]?.removeAll { $0 == heir }
        origins[heir]?.removeAll { $0 == me.mpid }
        deeds.repair = ProfileDetached(
            fromMPID: me.mpid, toMPID: heir, identities: ids, author: command.author, reason: command.reason)
        let homes = devices.filter { $0.value.current == me.mpid }.keys.sorted()
        for (name, device) in devices {
            let own = device.own.filter { mine in me.ids.contains { same($0, mine) } }
            let goes = !own.isEmpty && own.allSatisfy { mine in ids.contains { same($0, mine) } }
            if goes { bring(name, device, from: me.mpid, to: heir, now: now) }
        }
        if enforces, ids.contains(where: { settings.loginIdentities.contains($0.type) }) { deeds.unproved = me.mpid }
        let isLeft = person(me.mpid).map(isKnown) != isKnown(me)
        let sorted = homes.filter(deeds.followers.contains) + homes.filter { !deeds.followers.contains($0) }
        let told = sorted.map { name in
            let goes = deeds.followers.contains(name)
            return DetachResult.Device(
                deviceId: name, mpid: goes ? heir : me.mpid, endsSession: goes || isLeft || deeds.unproved != nil,
                nextLogin: nextLogin(on: name, me, now: now))
        }
        return DetachResult(
            mpid: me.mpid, newMPID: heir, moved: ids, devices: told, deviceCount: homes.count)
    }

    private mutating func bring(_ name: DeviceID, _ device: Device, from mpid: MPID, to heir: MPID, now: Int64) {
        guard [device.current, device.anonymous].contains(mpid), let person = person(heir) else { return }
        var after = device
        if after.anonymous == mpid { after.anonymous = nil }
        if isKnown(person), device.current == mpid, after.anonymous == heir { after.anonymous = nil }
        if !isKnown(person) { after.anonymous = heir }
        if device.current == mpid {
            for index in after.users.indices where after.users[index].mpid == mpid {
                if self.person(mpid)?.isFrozen != true { after.users[index].last = now }
            }
            let seen = after.users.first { $0.mpid == heir }
            after.users =
                [Seen(mpid: heir, first: seen?.first ?? now, last: person.isFrozen ? seen?.last ?? now : now)]
                + after.users.filter { $0.mpid != heir }
            after.users = Array(after.users.prefix(settings.limits.usersPerDevice))
            after.current = heir
            after.turn(now)
            deeds.turns[name] = after.moved
            deeds.followers.insert(name)
        }
        devices[name] = after
    }

    /// As if somebody logged in who is called as both were.
    private func nextLogin(on name: DeviceID, _ me: Person, now: Int64) -> DetachResult.NextLogin {
        var next = self
        (next.deeds, next.isService) = (Deeds(), true)
        next.settings.throttle.devicePerSecond = 0
        next.settings.throttle.loginPerSecond = 0
        // The oldest of each type.
        var called: [String: String?] = [:]
        let words = me.ids.filter { isLogin($0) } + (devices[name]?.own ?? [])
        for id in words where called[id.type.rawValue] == nil { called[id.type.rawValue] = .some(id.value.text) }
        let request = SyncRequest(deviceId: name, knownIdentities: called)
        guard let stranger = MPID(1), let found = try? next.move(.login, request, newMPID: stranger, now: now) else {
            return DetachResult.NextLogin(mpid: nil, barred: [])
        }
        return DetachResult.NextLogin(mpid: found.mpid == stranger ? nil : found.mpid, barred: found.barred ?? [])
    }

    mutating func allow(_ command: AllowMerge) throws(Refusal) -> AllowResult {
        if !isBelieved { throw Refusal(reason: .verificationRequired) }
        guard let me = person(command.mpid), !me.isErased else { throw Refusal(reason: .notFoundError) }
        let down = fences.filter { fence in
            guard [fence.mpid, fence.other].contains(me.mpid) else { return false }
            if let id = command.identity?.identity { return same(fence.id, id) }
            return command.otherMPID == fence.mpid || command.otherMPID == fence.other
        }
        fences.removeAll { down.contains($0) }
        let allowed = down.map { MergeBarrier(mpid: $0.mpid, identity: $0.id, otherMPID: $0.other) }
        if !allowed.isEmpty {
            deeds.repair = MergeAllowed(
                mpid: me.mpid, allowed: allowed, allowedCount: allowed.count, author: command.author,
                reason: command.reason)
        }
        return AllowResult(mpid: me.mpid, allowed: allowed, allowedCount: allowed.count)
    }
}
