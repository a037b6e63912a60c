// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

/// Profiles of another system (docs/sync.md "Import").
extension SyncDecider {
    /// S150, S151.
    func importProfiles(_ command: ImportProfiles) throws(Rejection) -> Decision {
        try requireVouchingKey()  // S155
        var list = ImportedProfiles(Draft(state, context, .importing), context, isUpsert: command.upsert == true)
        let results = command.profiles.enumerated().map { index, element in list.take(element, index) }
        var draft = list.settled
        draft.settleOrphans()
        draft.guardSwitched()
        tellDevices(.imported, &draft)
        var decision = draft.decision(.succeeded(ImportResult(results: results)))
        if command.events == false { decision.events.removeAll { !isNews($0) } }
        return decision
    }

    /// S157: of a device that others have heard of, what they know is true no more.
    private func isNews(_ event: any EventMessage) -> Bool {
        guard let changed = event as? CurrentUserChanged else { return false }
        return state.device(app, changed.deviceId).lastMove > 0
    }
}

/// What the elements of a list have come to.
private struct ImportedProfiles {
    private var draft: Draft
    private let context: DecisionContext
    private let isUpsert: Bool
    private var settings: SyncSettings { draft.settings }

    /// What elements made or added to.
    private var brought: Set<MPID> = []
    /// What an element relied on that changes nothing.
    private var profilesReliedOn: Set<MPID> = []
    private var identitiesReliedOn: [Identity] = []
    private var devicesReliedOn: Set<DeviceID> = []

    /// Why nothing is done of an element.
    private struct Refusal: Error {
        var reason: ImportConflict
        var type: IdentityType?

        init(_ reason: ImportConflict, _ type: IdentityType? = nil) {
            self.reason = reason
            self.type = type
        }
    }

    init(_ draft: Draft, _ context: DecisionContext, isUpsert: Bool) {
        self.draft = draft
        self.context = context
        self.isUpsert = isUpsert
    }

    /// S157. A decision that changes anything writes all that it relied on, also for the elements that change nothing: two lists
    /// that name the same people meet in their rows (docs/decisions/0003-isolation.md).
    var settled: Draft {
        var draft = draft
        guard !brought.isEmpty else { return draft }
        for mpid in profilesReliedOn { if let profile = draft.profile(mpid) { draft.put(profile) } }
        draft.touch(identitiesReliedOn)
        for device in devicesReliedOn.map({ draft.device($0) }) where device.isKept { draft.put(device) }
        return draft
    }

    mutating func take(_ element: ListElement<ImportedProfile>, _ index: Int) -> ImportResult.Element {
        let profile: ImportedProfile
        switch element {
        case .unreadable(_, let problem): return .init(index: index, invalid: problem)
        case .read(let read): profile = read
        }
        if let problem = profile.problem ?? problem(of: profile) { return .init(index: index, invalid: problem) }
        do throws(Refusal) {
            return .init(index: index, outcome: try bring(profile))
        } catch {
            return .init(index: index, outcome: .conflict, reason: error.reason, type: error.type)
        }
    }

    /// S31. What a list tells of a profile, it tells at once.
    private func problem(of profile: ImportedProfile) -> String? {
        if brought.contains(profile.mpid), draft.profile(profile.mpid)?.imported?.element != profile.fingerprint {
            return "the profile stands in this list already, otherwise"
        }
        let named = distinct(profile.named)
        let twice = named.first { identity in
            settings.isSingleValued(identity.type) && named.count { $0.type == identity.type } > 1
        }
        return twice.map { "a profile has one \($0.type.rawValue) at most in this app" }
    }

    /// Each once, as they are compared.
    private func distinct(_ identities: [Identity]) -> [Identity] {
        var seen: Set<IdentityEntry.Key> = []
        return identities.filter { seen.insert(draft.key($0)).inserted }
    }

    private mutating func bring(_ profile: ImportedProfile) throws(Refusal) -> ImportOutcome {
        let latest = context.now.milliseconds + ImportList.clockTolerance
        let times = [(profile.firstSeen, profile.lastSeen)] + profile.brought.map { ($0.firstSeen, $0.lastSeen) }
        guard times.allSatisfy({ $0 <= $1 && $1.milliseconds <= latest }) else { throw Refusal(.badTime) }
        guard let known = draft.profile(profile.mpid) else { return try create(profile) }
        profilesReliedOn.insert(known.mpid)
        guard !known.isErased else { throw Refusal(.profileErased) }
        // S152. By what the element was, and not by what became of it since.
        guard known.imported?.element != profile.fingerprint else { return .same }
        return try add(profile, to: known)
    }

    // MARK: A new one

    private mutating func create(_ element: ImportedProfile) throws(Refusal) -> ImportOutcome {
        let identities = try somebodys(element)
        for identity in identities { try checkHolders(identity) }
        try checkLimit(identities, [])
        let taken = element.brought.filter { $0.isCurrent && draft.device($0.deviceId).current != nil }
        devicesReliedOn.formUnion(taken.map(\.deviceId))
        guard isUpsert || taken.isEmpty else { throw Refusal(.deviceTaken) }
        var profile = draft.create(element.mpid, .imported)
        (profile.firstSeen, profile.lastSeen) = (element.firstSeen.milliseconds, element.lastSeen.milliseconds)
        profile.name = element.name
        put(profile, by: element)
        for identity in identities { draft.add(identity, to: profile.mpid, .attached) }
        for device in element.brought { place(device, profile.mpid) }
        return .created
    }

    /// S51, S52.
    private mutating func somebodys(_ element: ImportedProfile) throws(Refusal) -> [Identity] {
        do throws(Rejection) {
            return distinct(try draft.sift(element.named, ignoringLogins: false))
        } catch {
            let type = element.named.first {
                settings.loginIdentities.contains($0.type) && settings.nobody.contains($0)
            }?.type
            throw Refusal(.valueNamesNobody, type)
        }
    }

    /// S30, S61: nobody gives anything up for whom another system had.
    private mutating func checkHolders(_ identity: Identity) throws(Refusal) {
        let holders = draft.holders(of: identity)
        let isUnique = settings.uniqueIdentities.contains(identity.type)
        guard holders.count >= (isUnique ? 1 : settings.limits.profilesPerValue) else { return }
        identitiesReliedOn.append(identity)
        throw Refusal(isUnique ? .identityTaken : .limitExceeded, identity.type)
    }

    /// S60.
    private func checkLimit(_ new: [Identity], _ present: [Identity]) throws(Refusal) {
        for (type, values) in Dictionary(grouping: new + present, by: \.type).sorted(by: { $0.key < $1.key })
        where values.count > settings.limits.valuesPerType {
            throw Refusal(.limitExceeded, type)
        }
    }

    // MARK: One that is known

    /// S153.
    private mutating func add(_ element: ImportedProfile, to profile: Profile) throws(Refusal) -> ImportOutcome {
        guard !profile.isRestricted else { throw Refusal(.restricted) }
        let new = try somebodys(element).filter { !profile.holds($0, settings) }
        let devices = element.brought.filter { one in
            !draft.device(one.deviceId).users.contains { $0.mpid == profile.mpid }
        }
        devicesReliedOn.formUnion(element.brought.map(\.deviceId))
        let isNamed = element.name == nil || element.name == profile.name
        if new.isEmpty, devices.isEmpty, isNamed { return .same }
        guard isUpsert else { throw Refusal(.differs) }
        guard !profile.isOrphaned else { throw Refusal(.immutable) }  // S32
        for identity in new { try checkRoom(for: identity, in: profile) }
        try checkLimit(new, profile.identities)
        guard !new.isEmpty || !devices.isEmpty || profile.name == nil else { return .same }
        var changed = profile
        if changed.name == nil { changed.name = element.name }
        put(changed, by: element)
        for identity in new { draft.add(identity, to: profile.mpid, .attached) }
        for device in devices { place(device, profile.mpid) }
        return .changed
    }

    private mutating func checkRoom(for identity: Identity, in profile: Profile) throws(Refusal) {
        if profile.isBarred(identity, settings) { throw Refusal(.mergeBarred, identity.type) }  // S129
        if !profile.values(of: identity.type).isEmpty {
            if settings.immutableIdentities.contains(identity.type) { throw Refusal(.immutable, identity.type) }  // S37
            if settings.isSingleValued(identity.type) { throw Refusal(.differs, identity.type) }
        }
        try checkHolders(identity)
    }

    // MARK: Devices

    /// S154. Whoever was seen here is where they were seen.
    private mutating func place(_ one: ImportedProfile.Device, _ mpid: MPID) {
        guard let profile = draft.profile(mpid) else { return }
        var device = draft.device(one.deviceId)
        let isKnown = profile.isKnown(settings)
        let user = DeviceRecord.SeenUser(
            mpid: mpid, firstSeen: one.firstSeen.milliseconds, lastSeen: one.lastSeen.milliseconds)
        let isCurrent = one.isCurrent && device.current == nil
        if isCurrent {
            device.current = mpid
            device.users.insert(user, at: 0)
            device.countMove(now: draft.now)
        } else {
            let first = device.current == nil ? 0 : 1
            let place = device.users.dropFirst(first).firstIndex { $0.lastSeen < user.lastSeen }
            device.users.insert(user, at: place ?? device.users.endIndex)
        }
        if !isKnown, isCurrent || isLater(user, on: device) { device.anonymous = mpid }
        device.users = Array(device.users.prefix(settings.limits.usersPerDevice))
        draft.put(device)
        guard isCurrent else { return }
        draft.tell(
            CurrentUserChanged(
                deviceId: one.deviceId, previousMPID: nil, mpid: mpid, cause: .importing, rule: .imported,
                isLoggedIn: isKnown, isEphemeral: profile.isEphemeral(settings), move: device.lastMove))
    }

    /// Whether it is the last anonymous user of a device, as far as is known.
    private func isLater(_ user: DeviceRecord.SeenUser, on device: DeviceRecord) -> Bool {
        guard let anonymous = device.anonymous else { return true }
        return device.users.first { $0.mpid == anonymous }.map { $0.lastSeen < user.lastSeen } ?? false
    }

    private mutating func put(_ profile: Profile, by element: ImportedProfile) {
        var profile = profile
        profile.imported = Imported(at: context.moment.milliseconds, element: element.fingerprint)
        draft.put(profile)
        brought.insert(profile.mpid)
    }
}

/// How somebody came here from another system.
struct Imported: Sendable, Hashable {
    /// The moment of the command, in milliseconds since 1970 (S156).
    var at: Int64
    /// ``Contracts/ImportedElement/fingerprint``.
    var element: Int64
}
