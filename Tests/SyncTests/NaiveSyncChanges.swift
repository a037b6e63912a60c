// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts

@testable import Runtime
@testable import Sync

/// Modify, aliases and links in the naive model.
extension NaiveSyncModel {
    mutating func modify(_ command: ModifyIdentities, now: Int64) throws(Refusal) -> SyncResult {
        let logins = command.changes.filter { change in
            settings.loginIdentities.contains { $0.rawValue == change.identityType }
        }
        try believe(command.changes.map(\.identityType))
        guard let start = person(command.mpid), !start.isOrphan else { throw Refusal(reason: .notFoundError) }
        if isKnown(start), !isBelieved { throw Refusal(reason: .verificationRequired) }
        if start.isFrozen { throw Refusal(reason: .restricted) }
        if logins.contains(where: { $0.newValue.map(isNobodys) == true }) { throw Refusal(reason: .validationError) }
        let (before, commonBefore, askedBefore) = (people, common, asked)
        try takeTokens(command.deviceId, newValues(command), now: now)
        var results: [SyncResult.ChangeResult] = []
        do throws(Refusal) {
            for change in command.changes where change.newValue.map(isNobodys) != true {
                let known = people.filter(isKnown)
                let frozen = people.filter(\.isFrozen)
                results += try set(change, command.mpid)
                // Whatever the way: a device's word changes nobody who is somebody.
                if !isBelieved, known.contains(where: { person($0.mpid)?.ids != $0.ids }) {
                    throw Refusal(reason: .verificationRequired)
                }
                if frozen.contains(where: { person($0.mpid) != $0 }) { throw Refusal(reason: .restricted) }
            }
        } catch {
            (people, common, asked) = (before, commonBefore, askedBefore)
            throw error
        }
        orphan(those: before)
        guard let profile = person(command.mpid) else { throw Refusal(reason: .internalError) }
        var answer = result(
            profile, [], nil, SyncRequest(deviceId: "", knownIdentities: [:]), .named, isSearch: true)
        answer.changeResults = results
        return answer
    }

    private func newValues(_ command: ModifyIdentities) -> [Identity] {
        command.changes.compactMap { change in
            guard let type = IdentityType(rawValue: change.identityType) else { return nil }
            return change.newValue.map { Identity(type, IdentityValue($0)) }
        }
    }

    private mutating func set(
        _ change: ModifyIdentities.Change, _ mpid: MPID
    ) throws(Refusal) -> [SyncResult.ChangeResult] {
        guard let type = IdentityType(rawValue: change.identityType), let me = person(mpid) else { return [] }
        let own = me.ids.filter { $0.type == type }
        let new = change.newValue.map { Identity(type, IdentityValue($0)) }
        let named = change.oldValue.flatMap { old in own.first { same($0, Identity(type, IdentityValue(old))) } }
        var gone: [Identity]
        if new == nil {
            gone = named.map { [$0] } ?? own
        } else if isSingle(type) {
            gone = own
        } else {
            gone = named.map { [$0] } ?? []
        }
        var isThere = false
        if let new {
            isThere = own.contains(new)
            gone.removeAll { $0 == new }
            if !isThere { gone += own.filter { same($0, new) && !gone.contains($0) } }
        }
        if gone.isEmpty, new == nil || isThere { return [] }
        if let new, isFenced(new, mpid) { throw Refusal(reason: .mergeBarred) }
        if !own.isEmpty, settings.immutableIdentities.contains(type) { throw Refusal(reason: .validationError) }
        var touched = [mpid]
        take(gone, from: mpid, .modified)
        if let new, !isThere {
            let owners = holders(new)
            if settings.uniqueIdentities.contains(type) {
                if !owners.isEmpty, settings.immutableIdentities.contains(type) {
                    throw Refusal(reason: .validationError)
                }
                for owner in owners {
                    take(owner.ids.filter { same($0, new) }, from: owner.mpid, .taken, heir: mpid)
                    touched.append(owner.mpid)
                }
            } else if owners.count >= settings.limits.profilesPerValue
                || own.count - gone.count >= settings.limits.valuesPerType
            {
                throw Refusal(reason: .limitExceeded)
            }
            give(new, to: mpid, .modified)
        }
        return touched.map { SyncResult.ChangeResult(identityType: type, modifiedMPID: $0) }
    }

    // MARK: Alias and link

    /// - Returns: when it is applied, `nil` for never.
    mutating func alias(_ command: AliasUsers, id: AliasID, now: Int64) throws(Refusal) -> Int64? {
        if aliases[id] != nil { return times[id] }
        guard ["default", "conversion", "link"].contains(settings.strategy.name) else {
            throw Refusal(reason: .aliasingNotProvisioned)
        }
        let earliest = now - Int64(settings.limits.aliasWindowDays) * 24 * 3600 * 1000
        let start = command.startUnixtimeMs ?? earliest
        let end = command.endUnixtimeMs ?? now
        let hour: Int64 = 3600 * 1000
        guard command.sourceMPID != command.destinationMPID, start <= end, start >= earliest - hour,
            start <= now + hour, let source = person(command.sourceMPID),
            let destination = person(command.destinationMPID), !source.isErased, !destination.isErased
        else { throw Refusal(reason: .aliasError) }
        if !isBelieved, !(source.ids + destination.ids).allSatisfy(Self.isOfDevice) {
            throw Refusal(reason: .verificationRequired)
        }
        if source.isFrozen || destination.isFrozen { throw Refusal(reason: .restricted) }
        if areApart(source.mpid, destination.mpid) { throw Refusal(reason: .mergeBarred) }
        let window = [start, max(start, min(end, now))]
        func drop(_ rule: AliasDropped.Rule) -> Int64? {
            deeds.alias = AliasDropped(
                aliasId: id, sourceMPID: source.mpid, destinationMPID: destination.mpid, rule: rule)
            return nil
        }
        if source.sources > 0 { return drop(.sourceWasDestinationBefore) }
        if !destination.windows.isEmpty { return drop(.destinationWasSourceBefore) }
        if source.windows.contains(where: { $0[0] <= window[1] && window[0] <= $0[1] }) {
            return drop(.sourceWasSourceBefore)
        }
        let open = source.windows.filter { $0[1] >= earliest - hour }
        if open.count >= settings.limits.aliasesPerProfile { throw Refusal(reason: .limitExceeded) }
        change(source.mpid) { $0.windows = open + [window] }
        change(destination.mpid) { $0.sources += 1 }
        aliases[id] = [source.mpid, destination.mpid]
        if isBelieved { vouched.insert(id) }
        pairs.append(Pair(alias: id, of: [source.mpid, destination.mpid]))
        origins[destination.mpid, default: []].append(source.mpid)
        times[id] = now + 1000
        coming[id] = Aliased(
            aliasId: id, sourceMPID: source.mpid, destinationMPID: destination.mpid, startUnixtimeMs: window[0],
            endUnixtimeMs: window[1], scope: command.scope ?? .device,
            deviceApplicationStamp: command.deviceApplicationStamp, firstSeen: Timestamp(milliseconds: now))
        return times[id]
    }

    mutating func apply(_ id: AliasID) {
        guard let pair = aliases.removeValue(forKey: id), let source = person(pair[0]) else { return }
        let areNobody = pairs.contains { $0.of == pair } && !pair.compactMap(person).contains(where: isKnown)
        let isFrozen = pair.compactMap(person).contains(where: \.isFrozen)
        if isFrozen || enforces && !vouched.contains(id) && !areNobody {
            pairs.removeAll { $0.alias == id }
            if let place = origins[pair[1]]?.firstIndex(of: pair[0]) { origins[pair[1]]?.remove(at: place) }
            deeds.alias = AliasDropped(
                aliasId: id, sourceMPID: pair[0], destinationMPID: pair[1], rule: isFrozen ? .restricted : .becameKnown)
            return
        }
        change(pair[1]) { $0.since = min($0.first, $0.since ?? .max, source.first, source.since ?? .max) }
        guard var event = coming[id], let since = person(pair[1])?.since else { return }
        event.firstSeen = Timestamp(milliseconds: since)
        deeds.alias = event
    }

    /// - Parameter first: the MPID that the event gives when it is read for the first time.
    mutating func linked(_ event: Linked, first: MPID, newMPID: MPID, now: Int64) {
        guard settings.fromLinks, !gone.contains(event.userId), !isOld else { return }
        if isNobodys(event.externalId.text) { return }
        let since = event.linkedAt?.milliseconds ?? given
        if isExpectedToGo(event.userId, event.externalId, linked: since) { return }
        if since < renamings[event.userId] ?? .min { return }
        mark(event.userId, event.externalId, since: since, own: first, newMPID: newMPID, now: now)
    }

    private func called(_ name: ExternalID?) -> [Person] {
        guard let name else { return [] }
        return holders(Identity(.customerID, IdentityValue(name.text)))
    }

    /// Since when its user is called as it is marked.
    func sinceWhen(_ person: Person) -> Int64 {
        max(person.linked ?? .min, person.user.flatMap { renamings[$0] } ?? .min)
    }

    mutating func renamed(_ event: ExternalIDChanged, first: MPID, newMPID: MPID, now: Int64) {
        let (user, at, name) = (event.userId, event.linkedAt.milliseconds, event.externalId)
        guard settings.fromLinks, !gone.contains(user), !isOld, at > renamings[user] ?? .min else { return }
        defer { renamings[user] = at }
        if isExpectedToGo(user, name, or: event.previousExternalId, linked: at) { return }
        let before = people
        // The user's own profile: by its mark, the old one before others and the new one last; or else by the old name.
        let theirs = people.filter { $0.user == user }
        let nobodys = called(event.previousExternalId).filter { $0.user == nil }
        let ranks = [
            theirs.filter { $0.customer == event.previousExternalId }, theirs.filter { $0.customer != name }, nobodys,
            inherited(event), theirs,
        ]
        let mine = ranks.first { !$0.isEmpty }?.min {
            $0.first == $1.first ? $0.mpid < $1.mpid : $0.first < $1.first
        }
        guard let mine else {
            if isNobodys(name.text) { return }
            return mark(user, name, since: at, own: first, newMPID: newMPID, now: now)
        }
        let rivals = called(name).filter { $0.mpid != mine.mpid }.sorted { $0.mpid < $1.mpid }
        let isLost = rivals.contains { $0.user != nil && $0.user != user && sinceWhen($0) > at } || isNobodys(name.text)
        for rival in rivals where !isLost { merge(rival, into: mine, of: user, name, at) }
        rename(mine, event, isLost: isLost, own: first)
        // The heir begins anew.
        if let heir = mine.user, heir != user, let customer = mine.customer, isAsMarked(mine) {
            mark(heir, customer, since: mine.linked, own: mine.own, newMPID: newMPID, now: now)
        }
        orphan(those: before)
    }

    /// Whose users came by the name when this user had given it up, though they are known by it since before.
    private func inherited(_ event: ExternalIDChanged) -> [Person] {
        guard let name = event.previousExternalId?.text else { return [] }
        let at = event.linkedAt.milliseconds
        return people.filter { person in
            guard person.user != nil, person.linked ?? .min > at, person.customer != event.externalId else {
                return false
            }
            let isKnownSo = person.ids.contains { id in
                same(id, Identity(.customerID, IdentityValue(name))) && person.named[id] ?? .max <= at
            }
            return isKnownSo || person.past.map { $0.name == name && $0.from <= at && $0.to > at } == true
        }
    }

    /// What somebody else may have been called here, before the user was.
    private mutating func recall(_ ids: [Identity], of person: Person, before end: Int64) {
        let older = ids.map {
            NaiveSyncModel.Past(name: $0.value.text, from: person.named[$0] ?? end, to: end)
        }
        change(person.mpid) {
            if let to = $0.past?.to, to > end { $0.past?.to = end }
            $0.past = older.last { $0.from < end } ?? $0.past
        }
    }

    /// One person, of whom two were known.
    private mutating func merge(
        _ rival: Person, into mine: Person, of user: UserID, _ name: ExternalID, _ at: Int64
    ) {
        let lost = rival.ids.filter { same($0, Identity(.customerID, IdentityValue(name.text))) }
        recall(lost, of: rival, before: min(rival.linked ?? at, at))
        take(lost, from: rival.mpid, .taken, heir: mine.mpid)
        if !areApart(rival.mpid, mine.mpid) {
            pairs.append(Pair(alias: nil, of: [rival.mpid, mine.mpid]))
            origins[mine.mpid, default: []].append(rival.mpid)
            deeds.joined.append((rival.mpid, mine.mpid))
        }
        if rival.user != user { deeds.kept.insert(rival.mpid) }
        strip(rival.mpid, heir: mine.mpid)
    }

    private mutating func rename(_ mine: Person, _ event: ExternalIDChanged, isLost: Bool, own: MPID) {
        let (at, name) = (event.linkedAt.milliseconds, event.externalId)
        let new = Identity(.customerID, IdentityValue(name.text))
        if !isLost, !mine.ids.contains(where: { same($0, new) }) {
            fences = fences.filter { $0.mpid != mine.mpid || !same($0.id, new) }
            give(new, to: mine.mpid, .replaced)
            change(mine.mpid) { $0.named[new] = at }
        }
        let past = [event.previousExternalId, mine.customer].compactMap { $0 }.map {
            Identity(.customerID, IdentityValue($0.text))
        }
        let left = mine.ids.filter { id in
            id.type == .customerID && !same(id, new) && (isSingle(.customerID) || past.contains { same($0, id) })
        }
        recall(left, of: mine, before: min(mine.linked ?? at, at))
        take(left, from: mine.mpid, .replaced)
        change(mine.mpid) {
            if !isLost { $0.isOrphan = false }
            if $0.user != event.userId { ($0.linked, $0.own) = (at, own) }
            ($0.user, $0.customer) = (event.userId, name)
        }
        strip(mine.mpid, heir: nil)
    }

    /// Nobody takes over what a person left.
    private mutating func strip(_ mpid: MPID, heir: MPID?) {
        guard let person = person(mpid), !isKnown(person) else { return }
        take(person.ids, from: mpid, .cleared, heir: heir)
    }

    mutating func unlinked(_ event: ExternalIDRemoved) {
        let at = event.unlinkedAt.milliseconds
        guard settings.fromLinks, at > renamings[event.userId] ?? .min else { return }
        renamings[event.userId] = at
        for person in people where person.user == event.userId && (person.linked ?? .min) < at {
            change(person.mpid) { ($0.user, $0.customer, $0.linked, $0.own) = (nil, nil, nil, nil) }
        }
    }

    mutating func mark(
        _ user: UserID, _ customer: ExternalID, since: Int64?, own: MPID?, newMPID: MPID, now: Int64
    ) {
        let newMPID = own.flatMap { person($0) == nil ? $0 : nil } ?? newMPID
        let id = Identity(.customerID, IdentityValue(customer.text))
        let owners = holders(id).sorted { $0.first == $1.first ? $0.mpid < $1.mpid : $0.first < $1.first }
        if owners.isEmpty {
            people.append(Person(mpid: newMPID, first: now, last: now))
            give(id, to: newMPID, .attached)
            // The customer of a link is one since the link.
            let renamed = renamings[user] ?? .min
            if let since { change(newMPID) { $0.named[id] = max(since, renamed) } }
        }
        let past = owners.first.map(sinceWhen) ?? .min
        change(owners.first?.mpid ?? newMPID) {
            if $0.customer == customer, let since, past >= since { return }
            ($0.user, $0.customer, $0.linked, $0.own) = (user, customer, since, own)
        }
    }
}
