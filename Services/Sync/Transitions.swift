// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

/// Identify, login and logout: which profile the device has now (docs/sync.md "Identify, login, logout").
extension SyncDecider {
    func move(_ operation: SyncCommand.Operation, _ request: SyncRequest) throws(Rejection) -> Decision {
        // Best match has no known users: its logins and logouts are identifies.
        let isLogout = operation == .logout && settings.strategy.logout != .identify
        let mayBeEmpty = operation == .logout || operation == .identify && isService  // S3, S18
        let given = request.identities
        guard mayBeEmpty || !given.isEmpty else { throw Rejection(.lookupError) }
        guard !madeAnErasedProfile else { throw Rejection(.profileErased) }  // S57
        if !isLogout { try requireVouching(for: given.map(\.type)) }
        var draft = Draft(state, context, operation.cause)
        let named = try draft.sift(given, ignoringLogins: isLogout)
        guard mayBeEmpty || !named.isEmpty else { return draft.nothingNamed }
        // S18, S75.
        let counting = named.filter {
            !isLogout || !settings.loginIdentities.contains($0.type) && (mayVouch || $0.type.isDevice)
        }
        var device = draft.device(request.deviceId)
        try draft.throttle(&device)
        let identities = counting + remember(counting, isAll: operation == .identify && !given.isEmpty, &device)
        try draft.throttle(identities)
        let before = device.current.flatMap { draft.profile($0) }

        let kept = given.isEmpty ? keep(isLogout, device, draft) : nil
        let choice = vouched(kept ?? choose(isLogout, identities, device, draft), identities, device, draft)
        draft.touch(choice.losers)
        draft.touch(identities)
        let mpid = choice.mpid ?? draft.create(context, choice.rule).mpid
        let known = draft.profile(mpid)
        try learn(identities, of: mpid, &device, &draft)
        let mayName = operation == .login && isVoucher  // S76
        if mayName, request.clearAnonymousUser == true { clearAnonymous(of: &device, &draft, but: mpid) }
        draft.settleOrphans()
        draft.see(mpid, as: mayName ? request.name : nil)
        guard let profile = draft.profile(mpid) else { throw Rejection(.internalError) }
        let isKnown = profile.isKnown(settings)
        draft.place(profile, on: &device)
        var rule = choice.rule
        if choice.mpid != nil, known?.isKnown(settings) == false, isKnown { rule = .converted }
        let isEphemeral = profile.isEphemeral(settings)
        let barred = draft.tellBarred(from: mpid, on: request.deviceId)
        if before?.mpid != mpid || before?.isKnown(settings) != isKnown {
            draft.tell(
                CurrentUserChanged(
                    deviceId: request.deviceId, previousMPID: before?.mpid, mpid: mpid, cause: operation.cause,
                    rule: rule, isLoggedIn: isKnown, isEphemeral: isEphemeral, move: device.lastMove))
        }
        tellDevices(rule, but: [request.deviceId], &draft)
        return draft.decision(
            .succeeded(
                SyncResult(
                    mpid: mpid, previousMPID: before?.mpid, move: device.lastMove, isLoggedIn: isKnown,
                    isEphemeral: isEphemeral,
                    matchedIdentities: choice.mpid == nil ? [:] : profile.matched(counting, settings),
                    previousMismatch: request.previousMPID.map { $0 != before?.mpid }, context: request.context,
                    barred: barred, isRestricted: profile.isRestricted ? true : nil, rule: rule)))
    }

    /// A new profile instead of one that the device may not take over (S74), or that does not become known (S138).
    private func vouched(
        _ choice: Choice, _ identities: [Identity], _ device: DeviceRecord, _ draft: Draft
    ) -> Choice {
        guard let match = choice.mpid.flatMap({ draft.profile($0) }) else { return choice }
        if match.isRestricted, !match.isKnown(settings), choice.rule != .kept, !settings.logins(identities).isEmpty {
            return Choice(rule: .createdBesideRestricted, losers: choice.losers + [match])
        }
        guard !mayTakeOver(match, naming: identities, on: device) else { return choice }
        return Choice(rule: .createdBesideUnvouched, losers: choice.losers + [match])
    }

    // MARK: Which profile

    func resolver(_ draft: Draft, _ device: DeviceRecord) -> Resolver<Draft> {
        Resolver(settings: settings, index: draft, current: device.current, isStrict: enforces)
    }

    /// The profile to move to; no MPID for a new one.
    private struct Choice {
        var mpid: MPID?
        var rule: SyncRule
        var losers: [Profile] = []
    }

    private func choose(
        _ isLogout: Bool, _ identities: [Identity], _ device: DeviceRecord, _ draft: Draft
    ) -> Choice {
        let resolver = resolver(draft, device)
        if isLogout { return chooseForLogout(identities, device, draft, resolver) }
        let hasLogin = identities.contains { settings.loginIdentities.contains($0.type) }
        if settings.strategy.lookup == .userIDThenEmail, hasLogin {
            guard let match = resolver.matchPerson(identities) else {
                let others = resolver.somebodyElse(identities, found: nil)
                return Choice(rule: others.isEmpty ? .createdForLogin : .createdForOtherLogin, losers: others)
            }
            return Choice(mpid: match.profile.mpid, rule: match.rule, losers: match.losers)
        }
        let match = resolver.match(identities)
        let others = resolver.somebodyElse(identities, found: match?.profile)
        guard let match else {
            return Choice(rule: others.isEmpty ? .created : .createdForOtherLogin, losers: others)
        }
        if hasLogin, settings.strategy.newLogin == .createProfile, !match.profile.isKnown(settings) {
            return Choice(
                rule: others.isEmpty ? .createdForLogin : .createdForOtherLogin, losers: match.losers + others)
        }
        return Choice(mpid: match.profile.mpid, rule: match.rule, losers: match.losers + others)
    }

    private func chooseForLogout(
        _ identities: [Identity], _ device: DeviceRecord, _ draft: Draft, _ resolver: Resolver<Draft>
    ) -> Choice {
        if settings.strategy.logout == .createAnonymous { return Choice(rule: .createdForLogout) }
        if settings.strategy.logout == .returnToDevices, let mpid = device.anonymous,
            let profile = draft.profile(mpid), !profile.isOrphaned, !profile.isKnown(settings)
        {
            return Choice(mpid: mpid, rule: .returnedToAnonymous)
        }
        guard let match = resolver.match(identities) else { return Choice(rule: .createdForLogout) }
        return Choice(mpid: match.profile.mpid, rule: .returnedToAnonymous, losers: match.losers)
    }

    // MARK: What services need not name

    var isService: Bool { context.principal.kind == .service }

    /// The device is known by these from now on. A service, which does not know what devices have, means those that the
    /// device was known by before, unless it names others (S87, S88).
    /// - Parameter isAll: nothing is added to what is named.
    private func remember(_ named: [Identity], isAll: Bool, _ device: inout DeviceRecord) -> [Identity] {
        let ofDevice = named.filter(\.type.isDevice)
        if !ofDevice.isEmpty { device.identities = ofDevice }
        return ofDevice.isEmpty && isService && !isAll ? device.identities : []
    }

    /// A service that names nobody leaves the user there, but for a known one at a logout (S89).
    private func keep(_ isLogout: Bool, _ device: DeviceRecord, _ draft: Draft) -> Choice? {
        guard isService, let current = device.current.flatMap({ draft.profile($0) }), !current.isOrphaned,
            !(isLogout && current.isKnown(settings))
        else { return nil }
        return Choice(mpid: current.mpid, rule: .kept)
    }

    // MARK: Other devices

    /// The other devices whose current user became known or anonymous learn of it. Their rows are written: that this is their
    /// current user was relied on (S38).
    /// - Parameters:
    ///   - own: the devices that the command moved; they are told by themselves.
    ///   - other: whose devices are told in any case.
    func tellDevices(
        _ rule: SyncRule, but own: Set<DeviceID> = [], of other: Profile? = nil, _ draft: inout Draft
    ) {
        var switched = draft.switched
        if let other, switched[other.mpid] == nil { switched[other.mpid] = other }
        guard !switched.isEmpty else { return }
        let app = app
        let devices = state.devices.values.filter { device in
            device.key.app == app && !own.contains(device.key.id) && device.current.map { switched[$0] != nil } == true
        }
        for device in devices.sorted(by: { $0.key < $1.key }) {
            guard let current = device.current, let profile = switched[current] else { continue }
            var device = draft.device(device.key.id)
            device.countMove(now: draft.now)
            draft.put(device)
            draft.tell(
                CurrentUserChanged(
                    deviceId: device.key.id, previousMPID: current, mpid: current, cause: draft.cause, rule: rule,
                    isLoggedIn: profile.isKnown(settings), isEphemeral: profile.isEphemeral(settings),
                    move: device.lastMove))
        }
    }

    // MARK: What it is given

    /// Of a restricted profile nothing is learnt, and nothing of its device (S137).
    private func learn(
        _ identities: [Identity], of mpid: MPID, _ device: inout DeviceRecord, _ draft: inout Draft
    ) throws(Rejection) {
        guard draft.profile(mpid)?.isRestricted != true else {
            device.identities = state.device(app, device.key.id).identities
            return
        }
        draft.attach(identities, to: mpid)
        try requireLogin(identities, of: mpid, draft)
    }

    /// A login whose every login identity was left out for a limit's sake would be no login (S63).
    /// - Throws: `LIMIT_EXCEEDED`.
    private func requireLogin(_ identities: [Identity], of mpid: MPID, _ draft: Draft) throws(Rejection) {
        guard let profile = draft.profile(mpid), let type = draft.leftOut.min(),
            !settings.logins(identities).contains(where: { profile.holds($0, settings) })
        else { return }
        throw Rejection(
            .limitExceeded, "Too many profiles have this \(type.rawValue) (limit: profilesPerValue).")
    }

    /// The device's anonymous user goes: nothing finds it any more, and the device forgets it (S21).
    private func clearAnonymous(of device: inout DeviceRecord, _ draft: inout Draft, but mpid: MPID) {
        guard let anonymous = device.anonymous, anonymous != mpid else { return }
        device.anonymous = nil
        device.users.removeAll { $0.mpid == anonymous }
        guard let profile = draft.profile(anonymous), !profile.isKnown(settings) else { return }
        draft.put(profile)
        if profile.isRestricted { return }  // S139
        draft.remove(profile.identities, from: anonymous, .cleared)
    }
}

extension Draft {
    /// It is here, and may be called so; of a restricted one neither is noted (S137). Its row is written.
    fileprivate mutating func see(_ mpid: MPID, as name: String?) {
        guard var profile = profile(mpid) else { return }
        if !profile.isRestricted {
            profile.lastSeen = now
            if let name { profile.name = name }
        }
        put(profile)
    }

    /// S13.
    mutating func place(_ profile: Profile, on device: inout DeviceRecord) {
        let isKnown = profile.isKnown(settings)
        if isKnown, device.anonymous == profile.mpid { device.anonymous = nil }
        if !isKnown { device.anonymous = profile.mpid }
        device.move(to: profile.mpid, now: now, remembering: settings.limits.usersPerDevice) {
            self.profile($0)?.isRestricted == true
        }
        put(device)
    }

    /// Gives a profile the identities of an identify, login or link: a unique value stays with whoever has it, and what a
    /// limit has no room for, or the profile may not have, is left out (S30, S31, S128).
    mutating func attach(_ identities: [Identity], to mpid: MPID) {
        for identity in identities.sorted(by: {
            (settings.rank($0.type), $0.type) < (settings.rank($1.type), $1.type)
        }) {
            guard let profile = profile(mpid), !profile.holds(identity, settings) else { continue }
            if profile.isBarred(identity, settings) {
                barred.insert(identity.type)
                continue
            }
            let isUnique = settings.uniqueIdentities.contains(identity.type)
            if isUnique, !holders(of: identity).isEmpty { continue }
            let present = profile.values(of: identity.type)
            let isReplaced = settings.isSingleValued(identity.type) && !present.isEmpty
            if isReplaced, settings.immutableIdentities.contains(identity.type) { continue }
            let isLogin = settings.loginIdentities.contains(identity.type)
            let excess = isReplaced ? 0 : present.count - settings.limits.valuesPerType + 1  // S60
            guard makeRoom(for: identity, beside: mpid), excess <= 0 || !isLogin else {
                if isLogin { leftOut.insert(identity.type) }
                continue
            }
            if isReplaced {
                remove(present, from: mpid, .replaced)
                add(identity, to: mpid, .replaced)
            } else {
                if excess > 0 { remove(Array(present.prefix(excess)), from: mpid, .limit) }
                add(identity, to: mpid, .attached)
            }
        }
    }

    /// Keeps a value that profiles share at its limit: anonymous ones give it up, those seen longest ago first. A person
    /// gives nothing up for it (S61).
    /// - Returns: whether there is room now.
    private mutating func makeRoom(for identity: Identity, beside mpid: MPID) -> Bool {
        let holders = holders(of: identity).filter { $0 != mpid }
        let excess = holders.count - settings.limits.profilesPerValue + 1
        guard excess > 0 else { return true }
        warn(identity)
        let anonymous = holders.compactMap { profile($0) }.filter { !$0.isKnown(settings) && !$0.isRestricted }
            .sorted { ($0.lastSeen, $0.mpid) < ($1.lastSeen, $1.mpid) }
        guard anonymous.count >= excess else { return false }
        for profile in anonymous.prefix(excess) {
            if let held = profile.held(identity, settings) { remove([held], from: profile.mpid, .limit) }
        }
        return true
    }
}

extension Profile {
    /// What of the request the profile matched, see ``SyncResult/matchedIdentities`` (S16).
    func matched(_ identities: [Identity], _ settings: SyncSettings) -> [String: String] {
        let isKnown = isKnown(settings)
        var matched: [String: String] = [:]
        for identity in identities where holds(identity, settings) {
            let counts =
                isKnown
                ? settings.loginIdentities.contains(identity.type) : settings.priority.contains(identity.type)
            if counts { matched[identity.type.rawValue] = identity.value.text }
        }
        return matched
    }
}
