// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

/// Taking apart what is two people by mistake (docs/sync.md "Repair").
extension SyncDecider {
    /// A profile on more devices than this is not taken apart in one decision (S131).
    private static let mostDevices = 1000
    private static let devicesTold = 100

    /// S126.
    func detach(_ command: DetachIdentities) throws(Rejection) -> Decision {
        try requireVouchingKey()
        guard let profile = state.profile(app, command.mpid), !profile.isErased else {
            throw Rejection(.notFoundError)
        }
        if let target = wasDetached(command, from: profile) {
            return Decision(
                .succeeded(
                    DetachResult(mpid: profile.mpid, newMPID: target, moved: [], devices: [], deviceCount: 0)))
        }
        guard command.toMPID != nil || !madeAnErasedProfile else { throw Rejection(.profileErased) }
        let leaving = try leaving(command, profile)
        let devices = devices(of: profile)
        guard devices.count <= Self.mostDevices else {
            throw Rejection(.limitExceeded, "The profile is on more than \(Self.mostDevices) devices.")
        }
        var draft = Draft(state, context, .detach)
        draft.touch(leaving)
        let target = try target(command, &draft)
        try draft.move(leaving, of: profile, to: target)
        let aliases = aliases(between: profile.mpid, and: target)
        for alias in aliases {
            draft.tell(
                AliasDropped(
                    aliasId: alias.key.id, sourceMPID: alias.source, destinationMPID: alias.destination, rule: .detached
                ))
        }
        draft.forgetAlias(between: profile.mpid, and: target)
        draft.tell(
            ProfileDetached(
                fromMPID: profile.mpid, toMPID: target, identities: leaving, author: command.author,
                reason: command.reason))
        draft.guardSwitched()
        let followers = devices.filter { follows($0, profile, leaving) }
        for device in followers { move(device, from: profile.mpid, to: target, &draft) }
        let staying = isUnproved(by: leaving) ? draft.profile(profile.mpid) : nil
        tellDevices(.detached, but: Set(followers.map(\.key.id)), of: staying, &draft)
        var decision = draft.decision(.noted)
        decision.changes += aliases.map { .aliasDone($0.key) }
        let users = devices.filter { $0.current == profile.mpid }
        decision.outcome = .succeeded(
            DetachResult(
                mpid: profile.mpid, newMPID: target, moved: leaving,
                devices: told(users, profile, to: target, isUnproved(by: leaving), decision), deviceCount: users.count))
        return decision
    }

    /// S133. Without `toMPID` it may be this command once more, or another one that asks for the same.
    /// - Returns: where all of it went before.
    private func wasDetached(_ command: DetachIdentities, from profile: Profile) -> MPID? {
        var targets = command.toMPID.map { [$0] } ?? []
        if targets.isEmpty {
            while state.profile(app, state.newMPID(context, targets.count)) != nil {
                targets.append(state.newMPID(context, targets.count))
            }
            targets += profile.barriers.reversed().filter { $0.mpid == profile.mpid }.map(\.other)
        }
        return targets.first { target in
            command.named.allSatisfy { identity in
                profile.barriers.contains {
                    $0.mpid == profile.mpid && $0.other == target && $0.isAbout(identity, settings)
                }
            }
        }
    }

    /// - Returns: what is named, as the profile has it.
    private func leaving(_ command: DetachIdentities, _ profile: Profile) throws(Rejection) -> [Identity] {
        var leaving: [Identity] = []
        for identity in command.named {
            guard let held = profile.held(identity, settings) else {
                throw Rejection(
                    .validationError, "The profile has no \(identity.type.rawValue) of this value; nothing was done.")
            }
            if !leaving.contains(held) { leaving.append(held) }
        }
        guard leaving.count < profile.identities.count else {
            throw Rejection(
                .validationError,
                "These are all identities of the profile; leave one that is its own. Nothing was done.")
        }
        return leaving
    }

    /// - Returns: the profile that gets them.
    private func target(_ command: DetachIdentities, _ draft: inout Draft) throws(Rejection) -> MPID {
        guard let mpid = command.toMPID else {
            var new = draft.create(context, .detached)
            new.isRestricted = draft.profile(command.mpid)?.isRestricted == true  // S140
            draft.put(new)
            return new.mpid
        }
        guard var profile = draft.profile(mpid), !profile.isErased else {
            throw Rejection(.notFoundError, "There is no profile with the MPID toMPID.")
        }
        // One that another profile took the last identity from is found again.
        profile.isOrphaned = false
        draft.put(profile)
        return mpid
    }

    private func aliases(between one: MPID, and other: MPID) -> [AliasRecord] {
        state.aliases.values.filter { alias in
            alias.key.app == app && Set([alias.source, alias.destination]) == [one, other]
        }.sorted { $0.key < $1.key }
    }

    // MARK: Devices

    /// Those whose current or anonymous user it is.
    private func devices(of profile: Profile) -> [DeviceRecord] {
        state.devices.values.filter { device in
            device.key.app == app && (device.current == profile.mpid || device.anonymous == profile.mpid)
        }.sorted { $0.key < $1.key }
    }

    /// S131. Whether all goes that the device is known by and the profile has.
    private func follows(_ device: DeviceRecord, _ profile: Profile, _ leaving: [Identity]) -> Bool {
        let own = device.identities.compactMap { profile.held($0, settings) }
        return !own.isEmpty && own.allSatisfy(leaving.contains)
    }

    /// S131. Nobody here knows by which identity a session was verified. When one goes that it may have been, none counts.
    private func isUnproved(by leaving: [Identity]) -> Bool { enforces && !settings.logins(leaving).isEmpty }

    private func move(_ device: DeviceRecord, from mpid: MPID, to target: MPID, _ draft: inout Draft) {
        guard let profile = draft.profile(target) else { return }
        var after = draft.device(device.key.id)
        if after.anonymous == mpid { after.anonymous = nil }
        guard device.current == mpid else {
            if !profile.isKnown(settings) { after.anonymous = target }
            return draft.put(after)
        }
        draft.place(profile, on: &after)
        draft.tell(
            CurrentUserChanged(
                deviceId: device.key.id, previousMPID: mpid, mpid: target, cause: .detach, rule: .detached,
                isLoggedIn: profile.isKnown(settings), isEphemeral: profile.isEphemeral(settings), move: after.lastMove)
        )
    }

    // MARK: What support is told

    /// What becomes of the devices whose user the profile was. Nothing is written for that: whoever relies on what the decision
    /// writes meets it there, and all others may as well have come later.
    private func told(
        _ devices: [DeviceRecord], _ before: Profile, to target: MPID, _ isUnproved: Bool, _ decision: Decision
    ) -> [DetachResult.Device] {
        var after = state
        decision.changes.forEach { after.apply($0) }
        let isLeft = after.profile(app, before.mpid)?.isKnown(settings) != before.isKnown(settings)
        let now = devices.map { after.device(app, $0.key.id) }
        let sorted = now.filter { $0.current == target } + now.filter { $0.current != target }
        return sorted.prefix(Self.devicesTold).map { device in
            DetachResult.Device(
                deviceId: device.key.id, mpid: device.current ?? target,
                endsSession: device.current == target || isLeft || isUnproved,
                nextLogin: nextLogin(on: device, before, after))
        }
    }

    /// S134.
    private func nextLogin(
        on device: DeviceRecord, _ before: Profile, _ after: SyncState
    ) -> DetachResult.NextLogin {
        var identities: [String: String?] = [:]
        for identity in (settings.logins(before.identities) + device.identities).reversed() {
            identities[identity.type.rawValue] = identity.value.text
        }
        var login = context
        var unlimited = settings
        unlimited.throttle.devicePerSecond = 0
        unlimited.throttle.loginPerSecond = 0
        login.app = AppSettings(
            id: app, linking: context.app.linking, sync: unlimited, verification: context.app.verification)
        login.principal = Principal(kind: .service, scopes: [.identitySync])
        let request = SyncRequest(deviceId: device.key.id, knownIdentities: identities)
        let found = SyncDecider(after, login, aliasDelay: aliasDelay).decide(.move(.login, request))
        guard case .succeeded(let result as SyncResult) = found.outcome else {
            return DetachResult.NextLogin(mpid: nil, barred: [])
        }
        let isThere = after.profile(app, result.mpid) != nil
        return DetachResult.NextLogin(mpid: isThere ? result.mpid : nil, barred: result.barred ?? [])
    }

    // MARK: Allowing again

    /// S132.
    func allow(_ command: AllowMerge) throws(Rejection) -> Decision {
        try requireVouchingKey()
        guard let profile = state.profile(app, command.mpid), !profile.isErased else {
            throw Rejection(.notFoundError)
        }
        let allowed = profile.barriers.filter { barrier in
            command.identity?.identity.map { barrier.isAbout($0, settings) }
                ?? [barrier.mpid, barrier.other].contains(command.otherMPID)
        }
        let result = AllowResult(mpid: command.mpid, allowed: told(allowed), allowedCount: allowed.count)
        guard !allowed.isEmpty else { return Decision(.succeeded(result)) }
        var draft = Draft(state, context, .detach)
        draft.lift(allowed)
        draft.tell(
            MergeAllowed(
                mpid: command.mpid, allowed: result.allowed, allowedCount: result.allowedCount,
                author: command.author, reason: command.reason))
        return draft.decision(.succeeded(result))
    }
}

extension Draft {
    /// What leaves one profile comes to the other, and may not come back; what stays, but for devices, may not follow (S127).
    /// - Throws: `MERGE_BARRED`, `VALIDATION_ERROR` or `LIMIT_EXCEEDED` where the other one cannot have it.
    fileprivate mutating func move(
        _ leaving: [Identity], of before: Profile, to target: MPID
    ) throws(Rejection) {
        remove(leaving, from: before.mpid, .detached, takenBy: target)
        for identity in leaving {
            guard let heir = profile(target), !heir.holds(identity, settings) else { continue }
            let type = identity.type
            guard !heir.isBarred(identity, settings) else { throw Rejection(.mergeBarred) }
            let present = heir.values(of: type).count
            guard !settings.isSingleValued(type) || present == 0 else {
                throw Rejection(
                    .validationError, "The profile toMPID has another \(type.rawValue); nothing was done.")
            }
            guard present < settings.limits.valuesPerType else {
                throw Rejection(
                    .limitExceeded,
                    "The profile toMPID has \(present) values of \(type.rawValue) (limit: valuesPerType).")
            }
            add(identity, to: target, .detached, at: before.namedAt(identity, settings))
        }
        guard var heir = profile(target) else { return }
        // S130. The link says whose the customer id is.
        if heir.mark == nil, before.hasItsName(settings), heir.holds(before.name(of: before.mark), settings) {
            heir.mark = before.mark
            put(heir)
        }
        let staying = before.identities.filter {
            !leaving.contains($0) && !$0.type.isDevice && !heir.holds($0, settings)
        }
        put(
            leaving.map { Barrier($0, from: before.mpid, for: target) }
                + staying.map { Barrier($0, from: target, for: before.mpid) })
    }

    /// Whoever goes with an erased profile is not somebody who was taken from it (S130).
    fileprivate mutating func forgetAlias(between one: MPID, and other: MPID) {
        for (mpid, apart) in [(one, other), (other, one)] {
            guard var profile = profile(mpid), (profile.aliasedFrom + profile.aliasedInto).contains(apart) else {
                continue
            }
            profile.aliasedFrom.removeAll { $0 == apart }
            profile.aliasedInto.removeAll { $0 == apart }
            put(profile)
        }
    }
}
