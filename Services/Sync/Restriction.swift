// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime

/// What is known of somebody is kept and not used (docs/sync.md "Restriction").
extension SyncDecider {
    /// S136.
    func restrict(_ command: RestrictProfile) throws(Rejection) -> Decision {
        try requireVouchingKey()
        var profile = try found(command.query)
        guard !profile.isErased else { throw Rejection(.notFoundError) }
        let result = RestrictResult(
            mpid: profile.mpid, isRestricted: command.isRestricted, userId: profile.mark?.userID)
        guard profile.isRestricted != command.isRestricted else { return Decision(.succeeded(result)) }
        var draft = Draft(state, context, .detach)
        // Whom an identity means was relied on.
        draft.touch(command.query.named.map { [$0] } ?? [])
        profile.isRestricted = command.isRestricted
        draft.put(profile)
        draft.tell(
            RestrictionChanged(
                mpid: profile.mpid, isRestricted: command.isRestricted, author: command.author, reason: command.reason))
        return draft.decision(.succeeded(result))
    }
}

extension RestrictProfile {
    /// How its profile is found.
    var query: GetProfile {
        mpid.map { GetProfile(mpid: $0) } ?? GetProfile(identity: identity ?? .init(type: "", value: ""))
    }
}

extension Profile {
    /// The user of the link service whose installs are disabled because of it (S141).
    var restrictedUser: UserID? { isRestricted ? mark?.userID : nil }

    /// - Parameter before: the same profile before the decision.
    /// - Returns: as of when it restricts another user than before; `nil` when it does not.
    func changesRestrictedUser(since before: Profile?, now: Int64) -> Int64? {
        guard before?.restrictedUser != restrictedUser else { return nil }
        return max(now, (before?.restrictionToldAt).map { $0 + 1 } ?? now)
    }
}
