// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

/// `sync.alias`: one profile is the continuation of another (docs/sync.md "Alias").
extension SyncDecider {
    /// A client's clock may be this wrong without its windows being refused.
    private static let clockTolerance: Int64 = 3_600_000

    func alias(_ command: AliasUsers) throws(Rejection) -> Decision {
        let now = context.now.milliseconds
        let id = context.newAliasID
        // It waits since the same command came before (S69).
        if let waiting = state.aliases[AliasRecord.Key(app: app, id: id)] {
            return Decision(.succeeded(Self.scheduled(waiting)))
        }
        guard settings.strategy.allowsAlias else {
            // S39
            throw Rejection(.aliasingNotProvisioned, "The strategy \(settings.strategy.name) does not allow aliases.")
        }
        guard command.sourceMPID != command.destinationMPID else {
            throw Rejection(.aliasError, "Source and destination are the same profile.")
        }
        let window = try window(command, now)
        guard var source = state.profile(app, command.sourceMPID), !source.isErased else {
            throw Rejection(.aliasError, "The source MPID does not exist.")  // S41
        }
        guard var destination = state.profile(app, command.destinationMPID), !destination.isErased else {
            throw Rejection(.aliasError, "The destination MPID does not exist.")
        }
        let isSomebody = source.isKnown(settings) || destination.isKnown(settings)
        if isSomebody { try requireVouching() }
        try requireVouching(for: (source.identities + destination.identities).map(\.type))
        guard !source.isRestricted, !destination.isRestricted else { throw Rejection(.restricted) }  // S139
        guard !source.isApart(from: destination.mpid) else { throw Rejection(.mergeBarred) }  // S129
        if let rule = dropRule(source, destination, window) {
            let event = AliasDropped(
                aliasId: id, sourceMPID: source.mpid, destinationMPID: destination.mpid, rule: rule)
            return Decision(
                .succeeded(AliasResult(aliasId: id, isScheduled: false, appliesAt: nil)), events: [event])
        }
        let reach = now - Int64(settings.limits.aliasWindowDays) * 86_400_000 - Self.clockTolerance
        let open = source.aliasWindows.filter { $0.upperBound >= reach }
        guard open.count < settings.limits.aliasesPerProfile else {  // S64
            throw Rejection(.limitExceeded, "Too many aliases out of one profile (limit: aliasesPerProfile).")
        }
        // No new window can overlap the others.
        source.aliasWindows = open + [window]
        destination.aliasSources += 1
        source.aliasedInto.count(destination.mpid, settings.limits)  // S96
        destination.aliasedFrom.count(source.mpid, settings.limits)
        let record = AliasRecord(
            key: AliasRecord.Key(app: app, id: id), source: source.mpid, destination: destination.mpid,
            window: window, reach: command.scope ?? .device, stamp: command.deviceApplicationStamp,
            dueAt: now + aliasDelay, isVouched: mayVouch, growth: source.growth)
        return Decision(
            .succeeded(Self.scheduled(record)),
            changes: [.profile(source), .profile(destination), .alias(record)])
    }

    private static func scheduled(_ alias: AliasRecord) -> AliasResult {
        AliasResult(
            aliasId: alias.key.id, isScheduled: true,
            appliesAt: Timestamp(milliseconds: alias.dueAt))
    }

    /// S42.
    private func window(_ command: AliasUsers, _ now: Int64) throws(Rejection) -> ClosedRange<Int64> {
        let days = settings.limits.aliasWindowDays
        let earliest = now - Int64(days) * 86_400_000
        let start = command.startUnixtimeMs ?? earliest
        let end = command.endUnixtimeMs ?? now
        guard start <= end else { throw Rejection(.aliasError, "The window ends before it starts.") }
        guard start >= earliest - Self.clockTolerance else {
            throw Rejection(.aliasError, "The window starts more than \(days) days ago.")
        }
        guard start <= now + Self.clockTolerance else {
            throw Rejection(.aliasError, "The window starts in the future.")
        }
        // Nothing has happened yet beyond now, whatever the client's clock says.
        return start...max(start, min(end, now))
    }

    /// Why an alias is accepted and comes to nothing (S44).
    private func dropRule(
        _ source: Profile, _ destination: Profile, _ window: ClosedRange<Int64>
    ) -> AliasDropped.Rule? {
        if source.aliasSources > 0 { return .sourceWasDestinationBefore }
        if !destination.aliasWindows.isEmpty { return .destinationWasSourceBefore }
        if source.aliasWindows.contains(where: { $0.overlaps(window) }) { return .sourceWasSourceBefore }
        return nil
    }

    /// The time of an alias has come. One that is not here was applied before (S40).
    func applyAlias(_ command: ApplyAlias) -> Decision {
        guard let alias = state.aliases[AliasRecord.Key(app: app, id: command.aliasId)],
            var source = state.profile(app, alias.source), var destination = state.profile(app, alias.destination)
        else { return Decision(.noted) }
        let isStillOne =
            source.aliasedInto.contains(destination.mpid) && !source.isKnown(settings) && !destination.isKnown(settings)
        let isRestricted = source.isRestricted || destination.isRestricted
        if isRestricted || enforces && !alias.isVouched && !isStillOne {
            // S114, S139
            if alias.growth == source.growth { source.aliasedInto.discount(destination.mpid) }
            destination.aliasedFrom.discount(source.mpid)
            let event = AliasDropped(
                aliasId: alias.key.id, sourceMPID: source.mpid, destinationMPID: destination.mpid,
                rule: isRestricted ? .restricted : .becameKnown)
            return Decision(
                .noted, changes: [.profile(source), .profile(destination), .aliasDone(alias.key)], events: [event])
        }
        destination.aliasedSince = min(destination.countsSince, source.countsSince)  // S43, F40
        let event = Aliased(
            aliasId: alias.key.id, sourceMPID: alias.source, destinationMPID: alias.destination,
            startUnixtimeMs: alias.window.lowerBound, endUnixtimeMs: alias.window.upperBound, scope: alias.reach,
            deviceApplicationStamp: alias.stamp,
            firstSeen: Timestamp(milliseconds: destination.countsSince))
        return Decision(
            .noted, changes: [.profile(source), .profile(destination), .aliasDone(alias.key)], events: [event])
    }
}
