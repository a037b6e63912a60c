// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime

extension SyncDecider {
    // MARK: Modify

    func modify(
        _ command: ModifyIdentities, _ state: SyncState, _ context: DecisionContext
    ) throws(Rejection) -> Decision {
        let settings = context.app.sync
        let touchesLogin = command.changes.contains { change in
            settings.loginIdentities.contains { $0.rawValue == change.identityType }
        }
        if touchesLogin, !mayVouch(context) { throw Rejection(.verificationRequired) }
        var draft = Draft(state, context, .modify)
        guard let profile = draft.profile(command.mpid), !profile.isOrphaned else {
            throw Rejection(.notFoundError, "No profile with this MPID can be changed.")
        }
        let (named, ignored) = try sift(SyncCommand.modify(command).identities, ignoringLogins: false, settings)
        var devices: [DeviceRecord.Key: DeviceRecord] = [:]
        if let id = command.deviceId {
            var record = state.device(context.app.id, id)
            try throttle(&record, context)
            devices[record.key] = record
        }
        try draft.throttle(named)
        draft.put(profile)
        draft.touch(named)
        var results: [SyncResult.ChangeResult] = []
        for change in command.changes {
            guard let type = IdentityType(rawValue: change.identityType) else { throw Rejection(.validationError) }
            if let value = change.newValue, settings.nobody.contains(value) { continue }
            let touched = try set(type, change, of: command.mpid, &draft)
            results += touched.map { SyncResult.ChangeResult(identityType: type, modifiedMPID: $0) }
        }
        draft.settleOrphans()
        draft.guardNewlyAnonymous()
        guard let after = draft.profile(command.mpid) else { throw Rejection(.internalError) }
        let result = SyncResult(
            mpid: command.mpid, isLoggedIn: after.isKnown(settings), isEphemeral: after.isEphemeral(settings),
            changeResults: results, rule: .named)
        let events = draft.events + tellDevices(draft, state, context, &devices)
        return Decision(
            .succeeded(result),
            changes: draft.changes + devices.values.sorted { $0.key < $1.key }.map { .device($0) } + ignored,
            events: events)
    }

    /// The devices whose current user became known or anonymous learn of it. Their rows are written: that this is their
    /// current user was relied on.
    private func tellDevices(
        _ draft: Draft, _ state: SyncState, _ context: DecisionContext,
        _ written: inout [DeviceRecord.Key: DeviceRecord]
    ) -> [any EventMessage] {
        let settings = draft.settings
        let switched = draft.switched
        guard !switched.isEmpty else { return [] }
        let app = ExactText(context.app.id)
        let devices = state.devices.values.filter { device in
            device.key.app == app && device.current.map { switched[$0] != nil } == true
        }
        return devices.sorted { $0.key < $1.key }.compactMap { device in
            guard let current = device.current, let profile = switched[current] else { return nil }
            if written[device.key] == nil { written[device.key] = device }
            return CurrentUserChanged(
                deviceId: device.key.id.text, previousMPID: current, mpid: current, cause: .modify, rule: .named,
                isLoggedIn: profile.isKnown(settings), isEphemeral: profile.isEphemeral(settings))
        }
    }

    /// Sets or removes one identity. `oldValue` is advisory: where it is held it says which value goes; where it is not,
    /// all values of a single-valued type go, and all of the type when the change is a removal.
    /// - Returns: the profiles that changed: this one, and the one that lost a unique value to it.
    private func set(
        _ type: IdentityType, _ change: ModifyIdentities.Change, of mpid: MPID, _ draft: inout Draft
    ) throws(Rejection) -> [MPID] {
        let settings = draft.settings
        guard let profile = draft.profile(mpid) else { return [] }
        let present = profile.values(of: type)
        let old = change.oldValue.flatMap { profile.held(Identity(type, $0), settings) }
        let new = change.newValue.map { Identity(type, $0) }
        var leaving = old.map { [$0] } ?? []
        if old == nil, new == nil || settings.isSingleValued(type) { leaving = present }
        if settings.isSingleValued(type), new != nil { leaving = present }
        // The same value, to the letter, stays where it is. Another spelling of a folded value replaces it.
        if let new, let held = profile.held(new, settings) {
            if held == new {
                leaving.removeAll { $0 == held }
            } else {
                leaving = [held] + leaving.filter { $0 != held }
            }
        }
        let isSet = new.map { profile.identities.contains($0) } ?? true
        if isSet, leaving.isEmpty { return [] }
        if settings.immutableIdentities.contains(type), !present.isEmpty {
            throw Rejection(.validationError, "\(type.rawValue) is immutable and cannot be changed once set.")
        }
        draft.remove(leaving, from: mpid, .modified)
        guard let new, !isSet else { return [mpid] }
        let others = draft.holders(of: new).filter { $0 != mpid }
        var touched = [mpid]
        if settings.uniqueIdentities.contains(type) {
            for other in others {
                if settings.immutableIdentities.contains(type) {
                    throw Rejection(.validationError, "\(type.rawValue) is immutable and belongs to another profile.")
                }
                guard let held = draft.profile(other)?.held(new, settings) else { continue }
                draft.remove([held], from: other, .taken, takenBy: mpid)
                touched.append(other)
            }
        } else {
            guard others.count < settings.limits.profilesPerValue else {
                throw Rejection(
                    .limitExceeded, "\(others.count) profiles have this \(type.rawValue) (limit: profilesPerValue).")
            }
            guard present.count - leaving.count < settings.limits.valuesPerType else {
                throw Rejection(
                    .limitExceeded,
                    "The profile has \(present.count) values of \(type.rawValue) (limit: valuesPerType).")
            }
        }
        draft.add(new, to: mpid, .modified)
        return touched
    }

    // MARK: Alias (facts/idsync.md 4)

    /// A client's clock may be this wrong without its windows being refused.
    private static let clockTolerance: Int64 = 3_600_000

    func alias(
        _ command: AliasUsers, _ state: SyncState, _ context: DecisionContext
    ) throws(Rejection) -> Decision {
        let app = context.app
        let now = context.now.milliseconds
        guard app.sync.strategy.allowsAlias else {
            throw Rejection(
                .aliasingNotProvisioned, "The strategy \(app.sync.strategy.name) does not allow aliases.")
        }
        guard command.sourceMPID != command.destinationMPID else {
            throw Rejection(.aliasError, "Source and destination are the same profile.")
        }
        let window = try window(command, app.sync.limits, now)
        guard var source = state.profile(app.id, command.sourceMPID), !source.isErased else {
            throw Rejection(.aliasError, "The source MPID does not exist.")
        }
        guard var destination = state.profile(app.id, command.destinationMPID), !destination.isErased else {
            throw Rejection(.aliasError, "The destination MPID does not exist.")
        }
        if source.isKnown(app.sync) || destination.isKnown(app.sync), !mayVouch(context) {
            throw Rejection(.verificationRequired)
        }
        let id = context.newAliasID
        if let rule = dropRule(source, destination, window) {
            let event = AliasDropped(
                aliasId: id, sourceMPID: source.mpid, destinationMPID: destination.mpid, rule: rule)
            return Decision(
                .succeeded(AliasResult(aliasId: id, isScheduled: false, appliesAt: nil)), events: [event])
        }
        let reach = now - Int64(app.sync.limits.aliasWindowDays) * 86_400_000 - Self.clockTolerance
        let open = source.aliasWindows.filter { $0.upperBound >= reach }
        guard open.count < app.sync.limits.aliasesPerProfile else {
            throw Rejection(.limitExceeded, "Too many aliases out of one profile (limit: aliasesPerProfile).")
        }
        // No new window can overlap the others.
        source.aliasWindows = open + [window]
        destination.aliasSources += 1
        let record = AliasRecord(
            key: AliasRecord.Key(app: app.id, id: id), source: source.mpid, destination: destination.mpid,
            window: window, reach: command.scope ?? .device, stamp: command.deviceApplicationStamp,
            dueAt: now + aliasDelay)
        let appliesAt = Timestamp(milliseconds: record.dueAt).rfc3339
        return Decision(
            .succeeded(AliasResult(aliasId: id, isScheduled: true, appliesAt: appliesAt)),
            changes: [.profile(source), .profile(destination), .alias(record)])
    }

    private func window(
        _ command: AliasUsers, _ limits: SyncSettings.Limits, _ now: Int64
    ) throws(Rejection) -> ClosedRange<Int64> {
        let earliest = now - Int64(limits.aliasWindowDays) * 86_400_000
        let start = command.startUnixtimeMs ?? earliest
        let end = command.endUnixtimeMs ?? now
        guard start <= end else { throw Rejection(.aliasError, "The window ends before it starts.") }
        guard start >= earliest - Self.clockTolerance else {
            throw Rejection(.aliasError, "The window starts more than \(limits.aliasWindowDays) days ago.")
        }
        guard start <= now + Self.clockTolerance else {
            throw Rejection(.aliasError, "The window starts in the future.")
        }
        // Nothing has happened yet beyond now, whatever the client's clock says.
        return start...max(start, min(end, now))
    }

    /// Why an alias is accepted and comes to nothing.
    private func dropRule(
        _ source: Profile, _ destination: Profile, _ window: ClosedRange<Int64>
    ) -> AliasDropped.Rule? {
        if source.aliasSources > 0 { return .sourceWasDestinationBefore }
        if !destination.aliasWindows.isEmpty { return .destinationWasSourceBefore }
        if source.aliasWindows.contains(where: { $0.overlaps(window) }) { return .sourceWasSourceBefore }
        return nil
    }

    /// The time of an alias has come. One that is not here was applied before.
    func applyAlias(_ command: ApplyAlias, _ state: SyncState, _ context: DecisionContext) -> Decision {
        let app = context.app.id
        guard let alias = state.aliases[AliasRecord.Key(app: app, id: command.aliasId)],
            let source = state.profile(app, alias.source), var destination = state.profile(app, alias.destination)
        else { return Decision(.noted) }
        destination.aliasedSince = min(destination.countsSince, source.countsSince)
        let event = Aliased(
            aliasId: alias.key.id.text, sourceMPID: alias.source, destinationMPID: alias.destination,
            startUnixtimeMs: alias.window.lowerBound, endUnixtimeMs: alias.window.upperBound, scope: alias.reach,
            deviceApplicationStamp: alias.stamp,
            firstSeen: Timestamp(milliseconds: destination.countsSince).rfc3339)
        return Decision(
            .noted, changes: [.profile(source), .profile(destination), .aliasDone(alias.key)], events: [event])
    }

    // MARK: Links

    /// The profile whose customer id is the link's external id keeps the link's user id, so that one can be found from
    /// the other.
    func linked(_ event: Linked, _ state: SyncState, _ context: DecisionContext) throws(Rejection) -> Decision {
        let user = ForgottenUser(app: context.app.id, userID: event.userId)
        guard context.app.sync.fromLinks, !state.forgottenUsers.contains(user),
            !context.app.sync.nobody.contains(event.externalId)
        else { return Decision(.noted) }
        do throws(Rejection) { try refuseErased(state, context) } catch { return Decision(.noted) }
        var draft = Draft(state, context, .link)
        let identity = Identity(.customerID, event.externalId)
        draft.touch([identity])
        let holders = draft.holders(of: identity).compactMap { draft.profile($0) }
            .sorted { ($0.firstSeen, $0.mpid) < ($1.firstSeen, $1.mpid) }
        var profile: Profile
        if let oldest = holders.first {
            draft.touch(Array(holders.dropFirst()))
            profile = oldest
        } else {
            let mpid = draft.create(context, .createdForLink).mpid
            draft.attach([identity], to: mpid)
            guard let created = draft.profile(mpid) else { throw Rejection(.internalError) }
            profile = created
        }
        profile.userID = event.userId
        draft.put(profile)
        return Decision(.noted, changes: draft.changes, events: draft.events)
    }
}
