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
            !madeAnErasedProfile, !isToBeForgotten(event), !isOver(event)
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

    /// The user was renamed since (S118).
    private func isOver(_ event: Linked) -> Bool {
        guard let renamedAt = state.renamedAt[LinkedUser(app: app, id: event.userId)] else { return false }
        return (event.linkedAt ?? Timestamp(milliseconds: context.moment.milliseconds)).milliseconds < renamedAt
    }

    /// S118. The profile that a link has marked is found by the new customer id. Where that is another profile's, this one is
    /// marked instead.
    func renamed(_ event: ExternalIDChanged) throws(Rejection) -> Decision {
        let user = LinkedUser(app: app, id: event.userId)
        let moment = event.linkedAt.milliseconds
        guard settings.fromLinks, !state.erasedUsers.contains(user), moment > state.renamedAt[user] ?? .min,
            !madeAnErasedProfile
        else { return Decision(.noted) }
        var draft = Draft(state, context, .link)
        let new = Identity(.customerID, IdentityValue(event.externalId.text))
        let former = event.previousExternalId.flatMap { draft.takeMark(of: event.userId, $0) }
        if !settings.nobody.contains(event.externalId.text) {
            var mark = LinkMark(
                userID: event.userId, externalID: event.externalId, linkedAt: moment,
                ownMPID: state.newMPID(context, 0))
            if let former, let old = event.previousExternalId, draft.holders(of: new).isEmpty {
                // The same person, though by another name.
                if let before = former.mark { (mark.linkedAt, mark.ownMPID) = (before.linkedAt, before.ownMPID) }
                draft.rename(former, old, to: new, mark, at: moment)
            } else {
                try draft.mark(mark, context)
            }
        }
        var decision = draft.decision(.noted)
        decision.changes.append(.renamed(user, at: moment))
        return decision
    }

    /// S119.
    func unlinked(_ event: ExternalIDRemoved) -> Decision {
        let (user, moment) = (LinkedUser(app: app, id: event.userId), event.unlinkedAt.milliseconds)
        guard settings.fromLinks, moment > state.renamedAt[user] ?? .min else { return Decision(.noted) }
        var draft = Draft(state, context, .link)
        _ = draft.takeMark(of: event.userId, event.externalId)
        var decision = draft.decision(.noted)
        decision.changes.append(.renamed(user, at: moment))
        return decision
    }

    /// The link service was asked to forget whoever was linked with the external id by then, and has not answered (S116).
    private func isToBeForgotten(_ event: Linked) -> Bool {
        let linkedAt = event.linkedAt ?? Timestamp(milliseconds: context.moment.milliseconds)
        return state.erasures.values.contains { erasure in
            erasure.command.app == app
                && erasure.persons.values.contains { person in
                    person.externalId == event.externalId && person.erasedAt.map { linkedAt <= $0 } != false
                }
        }
    }
}

extension Draft {
    /// The profile with the customer id, unless another user's link marked it, has no mark any more.
    /// - Returns: the profile as it was.
    fileprivate mutating func takeMark(of user: UserID, _ externalID: ExternalID) -> Profile? {
        let identity = Identity(.customerID, IdentityValue(externalID.text))
        touch([identity])
        let former = holders(of: identity).compactMap { profile($0) }
            .sorted { ($0.firstSeen, $0.mpid) < ($1.firstSeen, $1.mpid) }
            .first { ($0.mark?.userID ?? user) == user }
        if var profile = former, profile.mark != nil {
            profile.mark = nil
            put(profile)
        }
        return former
    }

    /// The mark's customer id in place of another.
    fileprivate mutating func rename(
        _ profile: Profile, _ old: ExternalID, to new: Identity, _ mark: LinkMark, at moment: Int64
    ) {
        var profile = profile
        profile.mark = mark
        put(profile)
        add(new, to: profile.mpid, .replaced, at: moment)
        if let held = profile.held(Identity(.customerID, IdentityValue(old.text)), settings) {
            remove([held], from: profile.mpid, .replaced)
        }
    }

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
