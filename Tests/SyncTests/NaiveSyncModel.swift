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
        var user: UserID?
        /// As whom the user is marked.
        var customer: ExternalID?
        /// Since when the user is known to be this customer.
        var linked: Int64?
        /// Whom the link would have made.
        var own: MPID?
        /// Since when it has what.
        var named: [Identity: Int64] = [:]
        /// As which customer somebody else may have been known here.
        var past: Past?
        var since: Int64?
        var windows: [[Int64]] = []
        var sources = 0
        var isFrozen = false
        /// When it was told last for whom of the link service that counts.
        var toldFrozen: Int64?
    }

    struct Past: Equatable {
        var name: String
        var from: Int64
        /// When the user of today came by the name.
        var to: Int64
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
        /// What the device last said of itself.
        var own: [Identity] = []
        var moved: Int64 = 0

        var isNobodys: Bool { current == nil && anonymous == nil && users.isEmpty }

        mutating func turn(_ now: Int64) { moved = moved < now ? now : moved + 1 }
    }

    struct Refusal: Error { var reason: ReasonCode }

    var settings: SyncSettings
    var people: [Person] = []
    var devices: [DeviceID: Device] = [:]
    /// By which element of a list people came, or were added to last.
    var elements: [MPID: ImportedProfile] = [:]
    /// No device that was forgotten had moved more.
    var mostMoved: Int64 = 0
    /// By id: source, destination.
    var aliases: [AliasID: [MPID]] = [:]
    /// An alias, or a link that took a name, which says that the first is the second.
    struct Pair {
        var alias: AliasID?
        var of: [MPID]
    }

    /// Source and destination of every alias that still says that both are one.
    var pairs: [Pair] = []
    /// Who was ever aliased into whom.
    var origins: [MPID: [MPID]] = [:]
    /// What people may not have who were taken apart, in the order in which it came to be.
    var fences: [Fence] = []
    /// Who was nobody when the last command was over.
    private var nobodies: Set<MPID> = []
    /// Those whose sender might name people.
    var vouched: Set<AliasID> = []
    /// When they are applied.
    var times: [AliasID: Int64] = [:]
    /// What is told when they are applied, but for since when the destination counts then.
    var coming: [AliasID: Aliased] = [:]
    /// Values of which it was said that too many have them; forgotten with their last holder.
    var common: Set<Identity> = []
    /// Erasures that wait for the others, by the command that began them.
    var erasing: [CommandKey: Erasing] = [:]
    /// As of when whoever is erased is gone.
    var ends: [MPID: Int64] = [:]
    /// What is kept of each erased profile.
    var certificates: [MPID: Gone] = [:]
    /// Of whom the service told itself that they are erased, by what it told.
    var memories: [KeepErased: [Memory]] = [:]
    /// Users of the link service that were erased.
    var gone: Set<UserID> = []
    /// When support gave the link service's users other names, or took them.
    var renamings: [UserID: Int64] = [:]
    /// When each asked, from the beginning.
    var asked: [Asker: [Int64]] = [:]
    let enforces: Bool

    /// What the command that is decided now leads to.
    var deeds = Deeds()
    /// When the command was given.
    var given: Int64 = 0
    var isService = false
    var vouches = false
    var isAdmin = false
    /// It made somebody who was erased.
    var isOld = false

    init(_ settings: SyncSettings, enforces: Bool = false) {
        self.settings = settings
        self.enforces = enforces
    }

    mutating func sender(isService: Bool, vouches: Bool, isAdmin: Bool, isOld: Bool, at given: Int64) {
        deeds = Deeds()
        self.given = given
        common = common.filter { !holders($0).isEmpty }
        forgetAskers()
        self.isService = isService
        self.vouches = vouches
        self.isAdmin = isAdmin
        self.isOld = isOld
    }

    /// Whether the person is the customer whom the mark names.
    func isAsMarked(_ person: Person) -> Bool {
        guard let customer = person.customer else { return false }
        return person.ids.contains { same($0, Identity(.customerID, IdentityValue(customer.text))) }
    }

    /// S94: nobody keeps a mark who was the customer that it is about, and is not any more.
    mutating func dropMarks(since before: NaiveSyncModel) {
        for person in people where !isAsMarked(person) && !deeds.kept.contains(person.mpid) {
            guard let old = before.person(person.mpid), old.customer == person.customer, before.isAsMarked(old) else {
                continue
            }
            change(person.mpid) { ($0.user, $0.customer, $0.linked, $0.own) = (nil, nil, nil, nil) }
        }
    }

    /// S96, S122: of whoever was nobody and is somebody now, nothing said before counts, nor of whom a user is called by
    /// another name now when theirs was gone.
    mutating func growUp(since before: NaiveSyncModel) {
        let again = people.filter { person in
            guard let old = before.person(person.mpid), old.user != nil, old.user == person.user else { return false }
            return isKnown(person) && isAsMarked(person) && !before.isAsMarked(old)
        }
        let grown = (people.filter { nobodies.contains($0.mpid) && isKnown($0) } + again).map(\.mpid)
        pairs.removeAll { grown.contains($0.of[0]) }
        nobodies = Set(people.filter { !isKnown($0) }.map(\.mpid))
    }

    // MARK: Deeds

    mutating func change(_ mpid: MPID, _ body: (inout Person) -> Void) {
        for index in people.indices where people[index].mpid == mpid { body(&people[index]) }
    }

    /// - Parameter heir: who has it from now on.
    mutating func take(
        _ ids: [Identity], from mpid: MPID, _ reason: IdentitiesChanged.Reason, heir: MPID? = nil
    ) {
        guard !ids.isEmpty else { return }
        change(mpid) { person in
            person.ids.removeAll { ids.contains($0) }
            for id in ids { person.named[id] = nil }
        }
        deeds.note(mpid, reason, removed: ids)
        if person(mpid)?.ids.isEmpty == true { deeds.emptied.append((mpid, heir)) }
    }

    mutating func give(_ id: Identity, to mpid: MPID, _ reason: IdentitiesChanged.Reason) {
        let since = given
        change(mpid) {
            $0.ids.append(id)
            $0.named[id] = since
        }
        deeds.note(mpid, reason, added: [id])
        // S62: at half of what may be, and at two at the least.
        let count = holders(id).count
        if count >= 2, 2 * count >= settings.limits.profilesPerValue { warn(id, count) }
    }

    mutating func warn(_ id: Identity, _ count: Int) {
        if settings.uniqueIdentities.contains(id.type) || !common.insert(folded(id)).inserted { return }
        deeds.warnings.append(
            ValueTooCommon(
                type: id.type, digest: digest(id), holders: count, limit: settings.limits.profilesPerValue))
    }

    /// Whoever had identities before and has none now is an orphan.
    mutating func orphan(those before: [Person]) {
        for old in before where !old.ids.isEmpty && person(old.mpid)?.ids.isEmpty == true {
            change(old.mpid) { $0.isOrphan = true }
        }
    }

    func isSingle(_ type: IdentityType) -> Bool {
        settings.uniqueIdentities.contains(type) || (settings.strategy == .userIDThenEmail && type == .email)
    }

    /// - Returns: whether a login identity found no room.
    mutating func attach(_ ids: [Identity], to mpid: MPID) -> Bool {
        var isShort = false
        let ranked = settings.priority.compactMap { type in ids.first { $0.type == type } }
        let rest = ids.filter { !settings.priority.contains($0.type) }.sorted { $0.type.rawValue < $1.type.rawValue }
        for id in ranked + rest {
            let own = person(mpid)?.ids.filter { $0.type == id.type } ?? []
            if own.contains(where: { same($0, id) }) { continue }
            if isFenced(id, mpid) {
                deeds.left.insert(id.type)
                continue
            }
            let isLogin = settings.loginIdentities.contains(id.type)
            let owners = holders(id)
            if settings.uniqueIdentities.contains(id.type), !owners.isEmpty { continue }
            if isSingle(id.type), !own.isEmpty, settings.immutableIdentities.contains(id.type) { continue }
            let tooMany = owners.count - settings.limits.profilesPerValue + 1
            if tooMany > 0 { warn(id, owners.count) }
            var weak = owners.filter { !isKnown($0) && !$0.isFrozen }
                .sorted { $0.last == $1.last ? $0.mpid < $1.mpid : $0.last < $1.last }
            let isFull = !isSingle(id.type) && own.count >= settings.limits.valuesPerType
            // Nobody who is known gives anything up, and neither does anybody when it would not help.
            if tooMany > weak.count || isFull && isLogin && tooMany <= 0 {
                isShort = isShort || isLogin
                continue
            }
            if tooMany > 0 {
                weak = Array(weak.prefix(tooMany))
                for owner in weak { take(owner.ids.filter { same($0, id) }, from: owner.mpid, .limit) }
            }
            if isSingle(id.type) {
                take(own, from: mpid, .replaced)
            } else if isFull {
                take(Array(own.prefix(own.count - settings.limits.valuesPerType + 1)), from: mpid, .limit)
            }
            give(id, to: mpid, isSingle(id.type) && !own.isEmpty ? .replaced : .attached)
        }
        return isShort
    }

    mutating func move(
        _ operation: SyncCommand.Operation, _ request: SyncRequest, newMPID: MPID, now: Int64
    ) throws(Refusal) -> SyncResult {
        let leaving = operation == .logout && settings.strategy != .bestMatch
        let named = try usable(request, operation)
        let (before, commonBefore, askedBefore) = (people, common, asked)
        try takeTokens(request.deviceId, named, now: now)
        var device = devices[DeviceID(request.deviceId.text)] ?? Device(moved: mostMoved)
        let saidBefore = device.own
        let isSilent = isService && sent(request).isEmpty
        let ids = named + device.speak(named, isService && (isSilent || operation != .identify))
        let hasLogin = ids.contains { settings.loginIdentities.contains($0.type) }
        let previous = device.current

        var found: (MPID, SyncRule)?
        var rule = SyncRule.created
        if isSilent, let staying = person(previous), !staying.isOrphan, !(leaving && isKnown(staying)) {
            found = (staying.mpid, .kept)
            rule = .kept
        } else if leaving {
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
        if rule != .kept, hasLogin, let match = person(found?.0), match.isFrozen, !isKnown(match) {
            (found, rule) = (nil, .createdBesideRestricted)
        }
        if enforces, let match = person(found?.0), !isKnown(match), !ids.allSatisfy(Self.isOfDevice),
            isShared(match, with: DeviceID(request.deviceId.text), ids)
        {
            (found, rule) = (nil, .createdBesideUnvouched)
        }
        let mpid = found?.0 ?? newMPID
        let wasKnown = person(mpid).map(isKnown)
        if found == nil { people.append(Person(mpid: mpid, first: now, last: now)) }
        let isFrozen = person(mpid)?.isFrozen == true
        if isFrozen { device.own = saidBefore }
        let isShort = isFrozen ? false : attach(ids, to: mpid)
        if isShort, let person = person(mpid),
            !person.ids.contains(where: { mine in isLogin(mine) && ids.contains { same($0, mine) } })
        {
            (people, common, asked) = (before, commonBefore, askedBefore)
            throw Refusal(reason: .limitExceeded)
        }
        if operation == .login, isService || vouches, request.clearAnonymousUser == true,
            let dropped = device.anonymous, dropped != mpid
        {
            device.anonymous = nil
            device.users.removeAll { $0.mpid == dropped }
            if let profile = person(dropped), !isKnown(profile), !profile.isFrozen {
                take(profile.ids, from: dropped, .cleared)
            }
        }
        orphan(those: before)
        let mayName = operation == .login && (isService || vouches)
        change(mpid) { person in
            if isFrozen { return }
            person.last = now
            if mayName, let name = request.name { person.name = name }
        }
        guard let profile = person(mpid) else { throw Refusal(reason: .internalError) }
        let nowKnown = isKnown(profile)
        if wasKnown == false, nowKnown { rule = .converted }
        if nowKnown, device.anonymous == mpid { device.anonymous = nil }
        if !nowKnown { device.anonymous = mpid }
        if person(previous)?.isFrozen != true {
            for index in device.users.indices where device.users[index].mpid == previous {
                device.users[index].last = now
            }
        }
        let seen = device.users.first { $0.mpid == mpid }
        let last = isFrozen ? seen?.last ?? now : now
        device.users =
            [Seen(mpid: mpid, first: seen?.first ?? now, last: last)] + device.users.filter { $0.mpid != mpid }
        device.users = Array(device.users.prefix(settings.limits.usersPerDevice))
        device.current = mpid
        device.turn(now)
        devices[DeviceID(request.deviceId.text)] = device
        deeds.turns[DeviceID(request.deviceId.text)] = device.moved
        var answer = result(profile, found == nil ? [] : named, previous, request, rule)
        answer.move = device.moved
        let left = deeds.left.sorted { $0.rawValue < $1.rawValue }
        if !left.isEmpty {
            answer.barred = left
            deeds.repair = MergeBarred(mpid: mpid, deviceId: request.deviceId, cause: operation.cause, types: left)
        }
        return answer
    }
}
