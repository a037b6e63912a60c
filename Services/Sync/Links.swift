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
        try draft.mark(
            LinkMark(
                userID: event.userId, externalID: event.externalId,
                linkedAt: event.linkedAt?.milliseconds ?? draft.moment, ownMPID: state.newMPID(context, 0)), context)
        var decision = draft.decision(.noted)
        decision.changes.append(.linked(user))
        return decision
    }
}

extension Draft {
    /// Marks the oldest profile whose customer id is the mark's external id, or a new one.
    mutating func mark(_ mark: LinkMark, _ context: DecisionContext) throws(Rejection) {
        let identity = Identity(.customerID, IdentityValue(mark.externalID.text))
        touch([identity])
        let holders = holders(of: identity).compactMap { profile($0) }
            .sorted { ($0.firstSeen, $0.mpid) < ($1.firstSeen, $1.mpid) }
        touch(Array(holders.dropFirst()))
        var marked: Profile
        if let oldest = holders.first {
            marked = oldest
        } else {
            let mpid = create(for: mark, context).mpid
            add(identity, to: mpid, .attached, at: mark.linkedAt)
            guard let created = profile(mpid) else { throw Rejection(.internalError) }
            marked = created
        }
        // Links of several installs are read in any order: the last one counts.
        let isNews = marked.mark.map { $0.linkedAt < mark.linkedAt || $0.externalID != mark.externalID }
        if isNews != false { marked.mark = mark }
        put(marked)
    }
}
