// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

/// What the link service tells.
extension SyncDecider {
    /// The profile whose customer id is the link's external id keeps the link's user id, so that one can be found from
    /// the other (S46).
    func linked(_ event: Linked) throws(Rejection) -> Decision {
        let user = LinkedUser(app: app, id: event.userId)
        // S58
        guard settings.fromLinks, !state.erasedUsers.contains(user),
            !settings.nobody.contains(event.externalId.text),
            !madeAnErasedProfile
        else { return Decision(.noted) }
        var draft = Draft(state, context, .link)
        let identity = Identity(.customerID, IdentityValue(event.externalId.text))
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
        let former = profile.mark.flatMap { mark in
            if mark.userID == event.userId { return mark.former }
            return mark.externalID == event.externalId ? mark.userID : nil
        }
        profile.mark = LinkMark(userID: event.userId, externalID: event.externalId, former: former)
        draft.put(profile)
        var decision = draft.decision(.noted)
        decision.changes.append(.linked(user))
        return decision
    }
}
