// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts

@testable import Runtime
@testable import Sync

/// The rules of identity sync told a second time, without indexes, rows or drafts: a list of people with their
/// identities, searched from end to end. Slow and plain on purpose.
struct NaiveSyncModel {
    struct Person: Equatable {
        var mpid: MPID
        var ids: [Identity] = []
        var first: Int64
        var last: Int64
        var isOrphan = false
        var isErased = false
        var name: String?
        var user: String?
        var since: Int64?
        var windows: [[Int64]] = []
        var sources = 0
    }

    struct Seen: Equatable {
        var mpid: MPID
        var first: Int64
        var last: Int64
    }

    struct Device: Equatable {
        var current: MPID?
        var anonymous: MPID?
        var users: [Seen] = []
    }

    struct Refusal: Error { var reason: ReasonCode }

    var settings: SyncSettings
    var people: [Person] = []
    var devices: [String: Device] = [:]
    /// By id: source, destination.
    var aliases: [String: [MPID]] = [:]
    /// Users of the link service that were erased.
    var gone: Set<String> = []
    private let enforces: Bool

    /// Of the command that is decided now.
    private var isService = false
    private var vouches = false
    /// It made somebody who was erased.
    private var isOld = false

    init(_ settings: SyncSettings, enforces: Bool = false) {
        self.settings = settings
        self.enforces = enforces
    }

    mutating func sender(isService: Bool, vouches: Bool, isOld: Bool) {
        self.isService = isService
        self.vouches = vouches
        self.isOld = isOld
    }

    // MARK: Questions

    private func sent(_ request: SyncRequest) -> [Identity] {
        IdentityType.allCases.compactMap { type in
            guard let value = request.knownIdentities[type.rawValue] ?? nil else { return nil }
            if let vouched = request.vouchedFor, !vouched.contains(type) { return nil }
            return Identity(type, value)
        }
    }

    func same(_ a: Identity, _ b: Identity) -> Bool {
        guard a.type == b.type else { return false }
        let capitals = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ".unicodeScalars)
        let letters = Array("abcdefghijklmnopqrstuvwxyz".unicodeScalars)
        func bare(_ text: String) -> [Unicode.Scalar] {
            guard settings.foldedIdentities.contains(a.type) else { return Array(text.unicodeScalars) }
            return text.unicodeScalars.map { scalar in capitals.firstIndex(of: scalar).map { letters[$0] } ?? scalar }
        }
        return bare(a.value) == bare(b.value)
    }

    private func isLogin(_ id: Identity) -> Bool { settings.loginIdentities.contains(id.type) }

    private func isNobodys(_ value: String) -> Bool { RandomCommands.nobodies.contains(value) }

    /// What of a request counts.
    private func usable(_ request: SyncRequest, leaving: Bool) throws(Refusal) -> [Identity] {
        let all = sent(request)
        if all.isEmpty, !(leaving && isService) { throw Refusal(reason: .lookupError) }
        if isOld { throw Refusal(reason: .profileErased) }
        return try usable(all, leaving: leaving)
    }

    private func usable(_ all: [Identity], leaving: Bool) throws(Refusal) -> [Identity] {
        if !leaving {
            if enforces, !isService, !vouches, all.contains(where: isLogin) {
                throw Refusal(reason: .verificationRequired)
            }
            if all.contains(where: { isLogin($0) && isNobodys($0.value) }) { throw Refusal(reason: .validationError) }
        }
        let left = all.filter { isLogin($0) || !isNobodys($0.value) }
        if left.isEmpty, !(leaving && isService) { throw Refusal(reason: .lookupError) }
        return left.filter { !leaving || !isLogin($0) }
    }

    func person(_ mpid: MPID?) -> Person? { people.first { $0.mpid == mpid } }

    func isKnown(_ person: Person) -> Bool { person.ids.contains { settings.loginIdentities.contains($0.type) } }

    func holders(_ id: Identity) -> [Person] { people.filter { $0.ids.contains { same($0, id) } } }

    private func mayBeFound(_ person: Person, by ids: [Identity]) -> Bool {
        for types in [settings.loginIdentities, settings.immutableIdentities] {
            let own = person.ids.filter { types.contains($0.type) }
            if !own.isEmpty, !own.contains(where: { mine in ids.contains { same($0, mine) } }) { return false }
        }
        return settings.joinByLowerRank || !isStranger(person, to: ids)
    }

    /// Walks down the login identities of the request: who has another value of one, before any that they have in common,
    /// is somebody else. Who has none in common is not known to be anybody.
    private func isStranger(_ person: Person, to ids: [Identity]) -> Bool {
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
    private func meetsStranger(_ ids: [Identity]) -> Bool {
        guard !settings.joinByLowerRank else { return false }
        var literal = self
        literal.settings.joinByLowerRank = true
        return people.contains { person in
            person.ids.contains { mine in isLogin(mine) && ids.contains { same($0, mine) } }
                && literal.mayBeFound(person, by: ids) && isStranger(person, to: ids)
        }
    }

    /// Keeps only what the best ranked types leave; a type that would leave nobody does not count.
    func find(_ ids: [Identity], current: MPID?) -> (MPID, SyncRule)? {
        var left = people.filter { person in
            mayBeFound(person, by: ids)
                && ids.contains { id in settings.priority.contains(id.type) && person.ids.contains { same($0, id) } }
        }
        for type in settings.priority {
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
            userID == nil || !person.ids.contains { $0.type == .customerID }
        }
        guard let first = free.map(\.first).min() else { return nil }
        let oldest = free.filter { $0.first == first }.map(\.mpid).min()
        return oldest.map { ($0, free.count == 1 ? .matched : .tieToOldest) }
    }

    // MARK: Deeds

    mutating func change(_ mpid: MPID, _ body: (inout Person) -> Void) {
        for index in people.indices where people[index].mpid == mpid { body(&people[index]) }
    }

    private mutating func take(_ id: Identity, from mpid: MPID) {
        change(mpid) { person in person.ids.removeAll { $0 == id } }
    }

    /// Whoever had identities before and has none now is an orphan.
    private mutating func orphan(those before: [Person]) {
        for old in before where !old.ids.isEmpty && person(old.mpid)?.ids.isEmpty == true {
            change(old.mpid) { $0.isOrphan = true }
        }
    }

    private func isSingle(_ type: IdentityType) -> Bool {
        settings.uniqueIdentities.contains(type) || (settings.strategy == .userIDThenEmail && type == .email)
    }

    /// - Returns: whether a login identity found no room.
    private mutating func attach(_ ids: [Identity], to mpid: MPID) -> Bool {
        var isShort = false
        let ranked = settings.priority.compactMap { type in ids.first { $0.type == type } }
        let rest = ids.filter { !settings.priority.contains($0.type) }.sorted { $0.type.rawValue < $1.type.rawValue }
        for id in ranked + rest {
            let own = person(mpid)?.ids.filter { $0.type == id.type } ?? []
            if own.contains(where: { same($0, id) }) { continue }
            let isLogin = settings.loginIdentities.contains(id.type)
            let owners = holders(id)
            if settings.uniqueIdentities.contains(id.type), !owners.isEmpty { continue }
            if isSingle(id.type), !own.isEmpty, settings.immutableIdentities.contains(id.type) { continue }
            let tooMany = owners.count - settings.limits.profilesPerValue + 1
            var weak = owners.filter { !isKnown($0) }
                .sorted { $0.last == $1.last ? $0.mpid < $1.mpid : $0.last < $1.last }
            let isFull = !isSingle(id.type) && own.count >= settings.limits.valuesPerType
            // Nobody who is known gives anything up, and neither does anybody when it would not help.
            if tooMany > weak.count || isFull && isLogin && tooMany <= 0 {
                isShort = isShort || isLogin
                continue
            }
            if tooMany > 0 {
                weak = Array(weak.prefix(tooMany))
                for owner in weak { for held in owner.ids where same(held, id) { take(held, from: owner.mpid) } }
            }
            if isSingle(id.type) {
                for old in own { take(old, from: mpid) }
            } else if isFull {
                for old in own.prefix(own.count - settings.limits.valuesPerType + 1) { take(old, from: mpid) }
            }
            change(mpid) { $0.ids.append(id) }
        }
        return isShort
    }

    mutating func move(
        _ operation: SyncCommand.Operation, _ request: SyncRequest, newMPID: MPID, now: Int64
    ) throws(Refusal) -> SyncResult {
        let leaving = operation == .logout && settings.strategy != .bestMatch
        let ids = try usable(request, leaving: leaving)
        let hasLogin = ids.contains { settings.loginIdentities.contains($0.type) }
        let before = people
        var device = devices[request.deviceId] ?? Device()
        let previous = device.current

        var found: (MPID, SyncRule)?
        var rule = SyncRule.created
        if leaving {
            rule = .createdForLogout
            switch settings.strategy.name {
            case "isolation": found = find(ids, current: previous)
            case "userIdThenEmail":
                if let anonymous = person(device.anonymous), !anonymous.isOrphan, !isKnown(anonymous) {
                    found = (anonymous.mpid, .returnedToAnonymous)
                } else {
                    found = find(ids, current: previous)
                }
            default: break
            }
            if found != nil { rule = .returnedToAnonymous }
        } else if settings.strategy == .userIDThenEmail, hasLogin {
            found = findPerson(ids)
            rule = found?.1 ?? (meetsStranger(ids) ? .createdForOtherLogin : .createdForLogin)
        } else {
            found = find(ids, current: previous)
            rule = found?.1 ?? (meetsStranger(ids) ? .createdForOtherLogin : .created)
            if let match = found, let profile = person(match.0), hasLogin, !isKnown(profile),
                ["link", "isolation"].contains(settings.strategy.name)
            {
                found = nil
                rule = meetsStranger(ids) ? .createdForOtherLogin : .createdForLogin
            }
        }
        let mpid = found?.0 ?? newMPID
        let wasKnown = person(mpid).map(isKnown)
        if found == nil { people.append(Person(mpid: mpid, first: now, last: now)) }
        let isShort = attach(ids, to: mpid)
        if isShort, let person = person(mpid),
            !person.ids.contains(where: { mine in isLogin(mine) && ids.contains { same($0, mine) } })
        {
            people = before
            throw Refusal(reason: .limitExceeded)
        }
        if operation == .login, request.clearAnonymousUser == true, let dropped = device.anonymous, dropped != mpid {
            device.anonymous = nil
            device.users.removeAll { $0.mpid == dropped }
            if let profile = person(dropped), !isKnown(profile) { change(dropped) { $0.ids = [] } }
        }
        orphan(those: before)
        change(mpid) { person in
            person.last = now
            if operation == .login, let name = request.name { person.name = name }
        }
        guard let profile = person(mpid) else { throw Refusal(reason: .internalError) }
        let nowKnown = isKnown(profile)
        if wasKnown == false, nowKnown { rule = .converted }
        if nowKnown, device.anonymous == mpid { device.anonymous = nil }
        if !nowKnown { device.anonymous = mpid }
        for index in device.users.indices where device.users[index].mpid == previous { device.users[index].last = now }
        let since = device.users.first { $0.mpid == mpid }?.first ?? now
        device.users = [Seen(mpid: mpid, first: since, last: now)] + device.users.filter { $0.mpid != mpid }
        device.users = Array(device.users.prefix(settings.limits.usersPerDevice))
        device.current = mpid
        devices[request.deviceId] = device
        return result(profile, found == nil ? [] : ids, previous, request, rule)
    }

    private func result(
        _ profile: Person, _ ids: [Identity], _ previous: MPID?, _ request: SyncRequest, _ rule: SyncRule,
        isSearch: Bool = false
    ) -> SyncResult {
        let counting = isKnown(profile) ? settings.loginIdentities : Set(settings.priority)
        let matched = ids.filter { id in counting.contains(id.type) && profile.ids.contains { same($0, id) } }
        return SyncResult(
            mpid: profile.mpid, previousMPID: isSearch ? nil : previous, isLoggedIn: isKnown(profile),
            isEphemeral: settings.strategy != .userIDThenEmail
                && profile.ids.allSatisfy { !settings.priority.contains($0.type) },
            matchedIdentities: Dictionary(uniqueKeysWithValues: matched.map { ($0.type.rawValue, $0.value) }),
            previousMismatch: request.previousMPID.map { $0 != previous }, context: request.context, rule: rule)
    }

    func search(_ request: SyncRequest) throws(Refusal) -> SyncResult {
        if sent(request).isEmpty { throw Refusal(reason: .lookupError) }
        let ids = try usable(sent(request), leaving: false)
        let current = devices[request.deviceId]?.current
        let needed = settings.immutableIdentities
        if !needed.isEmpty, !settings.searchByAnyIdentity, !ids.contains(where: { needed.contains($0.type) }) {
            throw Refusal(reason: .notFoundError)
        }
        var found = settings.strategy == .userIDThenEmail ? findPerson(ids) : find(ids, current: current)
        if found == nil, settings.strategy == .userIDThenEmail {
            found = find(ids.filter { !settings.loginIdentities.contains($0.type) }, current: current)
        }
        guard let found, let profile = person(found.0) else { throw Refusal(reason: .notFoundError) }
        return result(profile, ids, current, request, found.1, isSearch: true)
    }

    mutating func modify(_ command: ModifyIdentities) throws(Refusal) -> SyncResult {
        let logins = command.changes.filter { change in
            settings.loginIdentities.contains { $0.rawValue == change.identityType }
        }
        if enforces, !isService, !vouches, !logins.isEmpty { throw Refusal(reason: .verificationRequired) }
        guard let start = person(command.mpid), !start.isOrphan else { throw Refusal(reason: .notFoundError) }
        if logins.contains(where: { $0.newValue.map(isNobodys) == true }) { throw Refusal(reason: .validationError) }
        let before = people
        var results: [SyncResult.ChangeResult] = []
        do throws(Refusal) {
            for change in command.changes where change.newValue.map(isNobodys) != true {
                results += try set(change, command.mpid)
            }
        } catch {
            people = before
            throw error
        }
        orphan(those: before)
        guard let profile = person(command.mpid) else { throw Refusal(reason: .internalError) }
        var answer = result(
            profile, [], nil, SyncRequest(deviceId: "", knownIdentities: [:]), .named, isSearch: true)
        answer.changeResults = results
        return answer
    }

    private mutating func set(
        _ change: ModifyIdentities.Change, _ mpid: MPID
    ) throws(Refusal) -> [SyncResult.ChangeResult] {
        guard let type = IdentityType(rawValue: change.identityType), let me = person(mpid) else { return [] }
        let own = me.ids.filter { $0.type == type }
        let new = change.newValue.map { Identity(type, $0) }
        let named = change.oldValue.flatMap { old in own.first { same($0, Identity(type, old)) } }
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
        if !own.isEmpty, settings.immutableIdentities.contains(type) { throw Refusal(reason: .validationError) }
        var touched = [mpid]
        for id in gone { take(id, from: mpid) }
        if let new, !isThere {
            let owners = holders(new)
            if settings.uniqueIdentities.contains(type) {
                if !owners.isEmpty, settings.immutableIdentities.contains(type) {
                    throw Refusal(reason: .validationError)
                }
                for owner in owners {
                    for held in owner.ids where same(held, new) { take(held, from: owner.mpid) }
                    touched.append(owner.mpid)
                }
            } else if owners.count >= settings.limits.profilesPerValue
                || own.count - gone.count >= settings.limits.valuesPerType
            {
                throw Refusal(reason: .limitExceeded)
            }
            self.change(mpid) { $0.ids.append(new) }
        }
        return touched.map { SyncResult.ChangeResult(identityType: type, modifiedMPID: $0) }
    }

    // MARK: Alias and link

    /// - Returns: whether it is scheduled.
    mutating func alias(_ command: AliasUsers, id: String, now: Int64) throws(Refusal) -> Bool {
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
        if enforces, !isService, !vouches, isKnown(source) || isKnown(destination) {
            throw Refusal(reason: .verificationRequired)
        }
        let window = [start, max(start, min(end, now))]
        if source.sources > 0 || !destination.windows.isEmpty
            || source.windows.contains(where: { $0[0] <= window[1] && window[0] <= $0[1] })
        {
            return false
        }
        let open = source.windows.filter { $0[1] >= earliest - hour }
        if open.count >= settings.limits.aliasesPerProfile { throw Refusal(reason: .limitExceeded) }
        change(source.mpid) { $0.windows = open + [window] }
        change(destination.mpid) { $0.sources += 1 }
        aliases[id] = [source.mpid, destination.mpid]
        return true
    }

    mutating func apply(_ id: String) {
        guard let pair = aliases.removeValue(forKey: id), let source = person(pair[0]) else { return }
        change(pair[1]) { $0.since = min($0.first, $0.since ?? .max, source.first, source.since ?? .max) }
    }

    mutating func linked(_ event: Linked, newMPID: MPID, now: Int64) {
        guard settings.fromLinks, !gone.contains(event.userId), !isOld else { return }
        let id = Identity(.customerID, event.externalId)
        let owners = holders(id).sorted { $0.first == $1.first ? $0.mpid < $1.mpid : $0.first < $1.first }
        if owners.isEmpty { people.append(Person(mpid: newMPID, ids: [id], first: now, last: now)) }
        change(owners.first?.mpid ?? newMPID) { $0.user = event.userId }
    }

    // MARK: Erasure

    mutating func erase(_ command: EraseProfile, now: Int64) throws(Refusal) {
        if let identity = command.identity {
            let owners = holders(identity)
            if owners.isEmpty { throw Refusal(reason: .notFoundError) }
            erase(owners, now)
        } else {
            guard let person = person(command.mpid) else { throw Refusal(reason: .notFoundError) }
            erase([person], now)
        }
    }

    mutating func forget(_ command: ForgetProfiles, now: Int64) {
        erase(
            people.filter { person in
                let isCustomer = person.ids.contains { id in
                    command.externalId.map { same(id, Identity(.customerID, $0)) } == true
                }
                return isCustomer || person.user != nil && person.user == command.userId
            }, now)
        if let user = command.userId { gone.insert(user) }
    }

    private mutating func erase(_ persons: [Person], _ now: Int64) {
        let mpids = persons.map(\.mpid)
        gone.formUnion(persons.compactMap(\.user))
        for person in persons where !person.isErased {
            change(person.mpid) {
                $0 = Person(mpid: person.mpid, first: now, last: now, isOrphan: true, isErased: true)
            }
        }
        let ghosts = Set(people.filter(\.isErased).map(\.mpid))
        for (name, device) in devices {
            guard [device.current, device.anonymous].contains(where: { $0.map(mpids.contains) == true }) else {
                continue
            }
            var left = device
            if let current = device.current, mpids.contains(current) { left.current = nil }
            if let anonymous = device.anonymous, mpids.contains(anonymous) { left.anonymous = nil }
            left.users.removeAll { ghosts.contains($0.mpid) }
            devices[name] = left == Device() ? nil : left
        }
        aliases = aliases.filter { !mpids.contains($0.value[0]) && !mpids.contains($0.value[1]) }
    }
}
