// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import Testing

@testable import Runtime
@testable import Sync

/// What holds of people who were taken apart, whatever is done.
struct RepairInvariants {
    let before: SyncState
    let after: SyncState
    let step: RandomCommands.Step

    func check(_ decision: SyncDecider.Decision, _ trace: Comment) throws {
        let settings = step.context.app.sync
        for profile in after.profiles.values {
            // S127: nobody has what is kept from them, and both sides say the same.
            for barrier in profile.barriers {
                try #require(barrier.mpid != profile.mpid || !profile.holds(barrier.identity, settings), trace)
                for mpid in [barrier.mpid, barrier.other] {
                    let side = after.profile(profile.app, mpid)
                    try #require(side?.isErased == false && side?.barriers.contains(barrier) == true, trace)
                }
            }
        }
        try isLeftAlone(trace)
        if case .move = step.command { try isRefusedForOtherReasons(decision, trace) }
        if case .detach = step.command, case .succeeded(let result as DetachResult) = decision.outcome {
            // S133: what came once has come for ever.
            let again = SyncDecider(after, step.context, aliasDelay: 1000).decide(step.command)
            guard case .succeeded(let same as DetachResult) = again.outcome else {
                Issue.record("\(trace): \(again.outcome)")
                return
            }
            try #require(same.newMPID == result.newMPID && same.moved.isEmpty && again.changes.isEmpty, trace)
        }
    }

    /// S137, S139: of whoever is restricted only backends and support change anything.
    private func isLeftAlone(_ trace: Comment) throws {
        switch step.command {
        case .move, .search, .modify, .alias, .applyAlias: break
        default: return
        }
        for profile in before.profiles.values where profile.isRestricted {
            var now = after.profiles[profile.key]
            // An alias that came to nothing.
            now?.aliasedInto = profile.aliasedInto
            now?.aliasedFrom = profile.aliasedFrom
            now?.lastDecision = profile.lastDecision
            try #require(now == profile, trace)
        }
        for device in after.devices.values {
            let was = before.devices[device.key]?.users ?? []
            for user in was where before.profile(device.key.app, user.mpid)?.isRestricted == true {
                try #require(device.users.first { $0.mpid == user.mpid }.map { $0 == user } != false, trace)
            }
        }
    }

    /// S128: whom a barrier stops would be stopped without it.
    private func isRefusedForOtherReasons(_ decision: SyncDecider.Decision, _ trace: Comment) throws {
        guard case .rejected(let rejection) = decision.outcome else { return }
        var open = before
        for var profile in before.profiles.values where !profile.barriers.isEmpty {
            profile.barriers = []
            open.apply(.profile(profile))
        }
        let other = SyncDecider(open, step.context, aliasDelay: 1000).decide(step.command)
        try #require(Answer(other.outcome) == .rejected(rejection.reason), trace)
    }
}
