// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

/// `sync.modify`: what a profile is given, and what it loses (docs/sync.md "Modify").
extension SyncDecider {
    func modify(_ command: ModifyIdentities) throws(Rejection) -> Decision {
        try requireVouching(for: command.changes.compactMap { IdentityType(rawValue: $0.identityType) })
        var draft = Draft(state, context, .modify)
        guard let profile = draft.profile(command.mpid), !profile.isOrphaned else {
            throw Rejection(.notFoundError, "No profile with this MPID can be changed.")
        }
        if profile.isKnown(settings) { try requireVouching() }  // S71
        guard !profile.isRestricted else { throw Rejection(.restricted) }  // S139
        let named = try draft.sift(SyncCommand.modify(command).identities, ignoringLogins: false)
        if let id = command.deviceId {
            var device = draft.device(id)
            try draft.throttle(&device)
            draft.put(device)
        }
        try draft.throttle(named)
        draft.put(profile)
        draft.touch(named)
        var results: [SyncResult.ChangeResult] = []
        for change in command.changes {
            guard let type = IdentityType(rawValue: change.identityType) else { throw Rejection(.validationError) }
            if let value = change.newValue, settings.nobody.contains(Identity(type, IdentityValue(value))) { continue }
            let touched = try set(type, change, of: command.mpid, &draft)
            results += touched.map { SyncResult.ChangeResult(identityType: type, modifiedMPID: $0) }
        }
        draft.settleOrphans()
        draft.guardSwitched()
        guard let after = draft.profile(command.mpid) else { throw Rejection(.internalError) }
        let result = SyncResult(
            mpid: command.mpid, isLoggedIn: after.isKnown(settings), isEphemeral: after.isEphemeral(settings),
            changeResults: results, rule: .named)
        tellDevices(.named, &draft)
        return draft.decision(.succeeded(result))
    }

    /// Sets or removes one identity. `oldValue` is advisory: where it is held it says which value goes; where it is not,
    /// all values of a single-valued type go, and all of the type when the change is a removal (S34, S35).
    /// - Returns: the profiles that changed: this one, and the one that lost a unique value to it (F34).
    private func set(
        _ type: IdentityType, _ change: ModifyIdentities.Change, of mpid: MPID, _ draft: inout Draft
    ) throws(Rejection) -> [MPID] {
        guard let profile = draft.profile(mpid) else { return [] }
        let present = profile.values(of: type)
        let old = change.oldValue.flatMap { profile.held(Identity(type, IdentityValue($0)), settings) }
        let new = change.newValue.map { Identity(type, IdentityValue($0)) }
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
        if let new, profile.isBarred(new, settings) { throw Rejection(.mergeBarred) }  // S129
        if settings.immutableIdentities.contains(type), !present.isEmpty {
            throw Rejection(.validationError, "\(type.rawValue) is immutable and cannot be changed once set.")  // S37
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
                guard let owner = draft.profile(other), let held = owner.held(new, settings) else { continue }
                if owner.isKnown(settings) { try requireVouching() }  // S71
                guard !owner.isRestricted else { throw Rejection(.restricted) }  // S139
                draft.remove([held], from: other, .taken, takenBy: mpid)  // S36
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
}
