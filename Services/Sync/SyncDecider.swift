// SPDX-License-Identifier: Apache-2.0

import Contracts
public import Runtime

/// Decides sync commands. Pure: the same command, state and context give the same decision.
public struct SyncDecider: Sendable {
    public typealias Decision = Runtime.Decision<SyncState.Change>

    /// How long an accepted alias waits, in milliseconds.
    public var aliasDelay: Int64

    public init(aliasDelay: Int64) { self.aliasDelay = aliasDelay }

    public func decide(_ command: SyncCommand, _ state: SyncState, _ context: DecisionContext) -> Decision {
        do throws(Rejection) {
            return switch command {
            case .move(let operation, let request): try move(operation, request, state, context)
            case .search(let request): try search(request, state, context)
            case .modify(let command): try modify(command, state, context)
            case .alias(let command): try alias(command, state, context)
            case .applyAlias(let command): applyAlias(command, state, context)
            case .getUsers(let command): users(command, state, context)
            case .erase(let command): try erase(command, state, context)
            case .forget(let command): forget(command, state, context)
            case .linked(let event): try linked(event, state, context)
            case .answered(let answer): settle(answer, state, context)
            }
        } catch {
            return Decision(.rejected(error))
        }
    }

    // MARK: Identify, login, logout

    private func move(
        _ operation: SyncCommand.Operation, _ request: SyncRequest, _ state: SyncState, _ context: DecisionContext
    ) throws(Rejection) -> Decision {
        let settings = context.app.sync
        // Best match has no known users: its logins and logouts are identifies.
        let isLogout = operation == .logout && settings.strategy.logout != .identify
        let mayBeEmpty = isLogout && context.principal.kind == .service
        guard mayBeEmpty || !request.identities.isEmpty else { throw Rejection(.lookupError) }
        try refuseErased(state, context)
        if !isLogout { try requireVouching(for: request.identities, context) }
        let (named, ignored) = try sift(request.identities, ignoringLogins: isLogout, settings)
        guard mayBeEmpty || !named.isEmpty else { return Self.nothingNamed(ignored) }
        let identities = named.filter { !isLogout || !settings.loginIdentities.contains($0.type) }
        var draft = Draft(state, context, operation.cause)
        var device = state.device(context.app.id, request.deviceId)
        try throttle(&device, context)
        try draft.throttle(identities)
        let before = device.current.flatMap { draft.profile($0) }

        let choice = choose(isLogout, identities, device, draft, context)
        draft.touch(choice.losers)
        draft.touch(identities)
        let mpid = choice.mpid ?? draft.create(context, choice.rule).mpid
        let known = draft.profile(mpid)
        draft.attach(identities, to: mpid)
        try requireLogin(identities, of: mpid, draft)
        if operation == .login, request.clearAnonymousUser == true { clearAnonymous(of: &device, &draft, but: mpid) }
        draft.settleOrphans()
        guard var profile = draft.profile(mpid) else { throw Rejection(.internalError) }
        profile.lastSeen = draft.now
        if operation == .login, let name = request.name { profile.name = name }
        draft.put(profile)

        let isKnown = profile.isKnown(settings)
        if isKnown, device.anonymous == mpid { device.anonymous = nil }
        if !isKnown { device.anonymous = mpid }
        device.move(to: mpid, now: draft.now, remembering: settings.limits.usersPerDevice)

        var rule = choice.rule
        if choice.mpid != nil, known?.isKnown(settings) == false, isKnown { rule = .converted }
        let isEphemeral = profile.isEphemeral(settings)
        var events = draft.events
        if before?.mpid != mpid || before?.isKnown(settings) != isKnown {
            events.append(
                CurrentUserChanged(
                    deviceId: request.deviceId, previousMPID: before?.mpid, mpid: mpid, cause: operation.cause,
                    rule: rule, isLoggedIn: isKnown, isEphemeral: isEphemeral))
        }
        let result = SyncResult(
            mpid: mpid, previousMPID: before?.mpid, isLoggedIn: isKnown, isEphemeral: isEphemeral,
            matchedIdentities: choice.mpid == nil ? [:] : matched(identities, profile, settings),
            previousMismatch: request.previousMPID.map { $0 != before?.mpid }, context: request.context, rule: rule)
        return Decision(
            .succeeded(result), changes: draft.changes + [.device(device)] + ignored, events: events)
    }

    /// The profile to move to; no MPID for a new one.
    private struct Choice {
        var mpid: MPID?
        var rule: SyncRule
        var losers: [Profile] = []
    }

    private func choose(
        _ isLogout: Bool, _ identities: [Identity], _ device: DeviceRecord, _ draft: Draft,
        _ context: DecisionContext
    ) -> Choice {
        let settings = context.app.sync
        let resolver = Resolver(settings: settings, index: draft, current: device.current)
        let hasLogin = identities.contains { settings.loginIdentities.contains($0.type) }
        if isLogout {
            if settings.strategy.logout == .createAnonymous { return Choice(rule: .createdForLogout) }
            if settings.strategy.logout == .returnToDevices, let mpid = device.anonymous,
                let profile = draft.profile(mpid), !profile.isOrphaned, !profile.isKnown(settings)
            {
                return Choice(mpid: mpid, rule: .returnedToAnonymous)
            }
            guard let match = resolver.match(identities) else { return Choice(rule: .createdForLogout) }
            return Choice(mpid: match.profile.mpid, rule: .returnedToAnonymous, losers: match.losers)
        }
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

    /// A login whose every login identity was left out for a limit's sake would be no login.
    /// - Throws: `LIMIT_EXCEEDED`.
    private func requireLogin(_ identities: [Identity], of mpid: MPID, _ draft: Draft) throws(Rejection) {
        guard let profile = draft.profile(mpid), let type = draft.leftOut.min(),
            !draft.settings.logins(identities).contains(where: { profile.holds($0, draft.settings) })
        else { return }
        throw Rejection(
            .limitExceeded, "Too many profiles have this \(type.rawValue) (limit: profilesPerValue).")
    }

    /// What of the request the profile matched, see ``SyncResult/matchedIdentities``.
    private func matched(_ identities: [Identity], _ profile: Profile, _ settings: SyncSettings) -> [String: String] {
        let isKnown = profile.isKnown(settings)
        var matched: [String: String] = [:]
        for identity in identities where profile.holds(identity, settings) {
            let counts =
                isKnown
                ? settings.loginIdentities.contains(identity.type) : settings.priority.contains(identity.type)
            if counts { matched[identity.type.rawValue] = identity.value }
        }
        return matched
    }

    /// The device's anonymous user goes: nothing finds it any more, and the device forgets it.
    private func clearAnonymous(of device: inout DeviceRecord, _ draft: inout Draft, but mpid: MPID) {
        guard let anonymous = device.anonymous, anonymous != mpid else { return }
        device.anonymous = nil
        device.users.removeAll { $0.mpid == anonymous }
        guard let profile = draft.profile(anonymous), !profile.isKnown(draft.settings) else { return }
        draft.put(profile)
        draft.remove(profile.identities, from: anonymous, .cleared)
    }

    /// - Throws: `THROTTLED`.
    func throttle(_ device: inout DeviceRecord, _ context: DecisionContext) throws(Rejection) {
        let limits = context.app.sync.throttle
        guard limits.devicePerSecond > 0 else { return }
        device.bucket = TokenBucket.take(
            from: device.bucket, perSecond: limits.devicePerSecond, burst: limits.deviceBurst,
            now: context.now.milliseconds)
        if device.bucket == nil { throw Draft.throttled("device") }
    }

    // MARK: Reading

    private func search(
        _ request: SyncRequest, _ state: SyncState, _ context: DecisionContext
    ) throws(Rejection) -> Decision {
        let settings = context.app.sync
        guard !request.identities.isEmpty else { throw Rejection(.lookupError) }
        try requireVouching(for: request.identities, context)
        let (identities, ignored) = try sift(request.identities, ignoringLogins: false, settings)
        guard !identities.isEmpty else { return Self.nothingNamed(ignored) }
        var draft = Draft(state, context, .identify)
        var device = state.device(context.app.id, request.deviceId)
        try throttle(&device, context)
        // What nobody has needs no row: whoever tries values is held up by the device.
        try draft.throttle(identities.filter { !draft.holders(of: $0).isEmpty })
        let taken = draft.changes + (device.bucket == nil ? [] : [.device(device)]) + ignored
        let resolver = Resolver(settings: settings, index: draft, current: device.current)
        guard let match = resolver.search(identities) else {
            return Decision(.rejected(Rejection(.notFoundError)), changes: taken)
        }
        let profile = match.profile
        return Decision(
            .succeeded(
                SyncResult(
                    mpid: profile.mpid, isLoggedIn: profile.isKnown(settings),
                    isEphemeral: profile.isEphemeral(settings),
                    matchedIdentities: matched(identities, profile, settings),
                    previousMismatch: request.previousMPID.map { $0 != device.current }, context: request.context,
                    rule: match.rule)), changes: taken)
    }

    private func users(_ command: GetDeviceUsers, _ state: SyncState, _ context: DecisionContext) -> Decision {
        let device = state.device(context.app.id, command.deviceId)
        let users = device.users.compactMap { user -> DeviceUsersResult.User? in
            guard let profile = state.profile(context.app.id, user.mpid), !profile.isErased else { return nil }
            let firstSeen = min(user.firstSeen, profile.aliasedSince ?? user.firstSeen)
            return DeviceUsersResult.User(
                mpid: user.mpid, firstSeen: Timestamp(milliseconds: firstSeen).rfc3339,
                lastSeen: Timestamp(milliseconds: user.lastSeen).rfc3339,
                isLoggedIn: profile.isKnown(context.app.sync), isCurrent: user.mpid == device.current,
                name: profile.name,
                identities: Dictionary(grouping: profile.identities, by: \.type.rawValue).mapValues {
                    $0.map(\.value)
                })
        }
        return Decision(.succeeded(DeviceUsersResult(deviceId: command.deviceId, users: users)))
    }
}
