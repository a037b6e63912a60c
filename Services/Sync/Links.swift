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
        let moment = event.linkedAt?.milliseconds ?? context.moment.milliseconds
        // S58
        guard settings.fromLinks, !state.erasedUsers.contains(user),
            !settings.nobody.contains(event.externalId.text), !madeAnErasedProfile,
            !isToBeForgotten(event.userId, event.externalId, since: moment), !isOver(user, moment)
        else { return Decision(.noted) }
        var draft = Draft(state, context, .link)
        try draft.mark(
            LinkMark(
                userID: event.userId, externalID: event.externalId, linkedAt: moment,
                ownMPID: state.newMPID(context, 0)), context)
        var decision = draft.decision(.noted)
        decision.changes.append(.linked(user))
        return decision
    }

    /// The user was renamed since (S118).
    private func isOver(_ user: LinkedUser, _ moment: Int64) -> Bool {
        state.renamedAt[user].map { moment < $0 } == true
    }

    /// S118, S122.
    func renamed(_ event: ExternalIDChanged) throws(Rejection) -> Decision {
        let user = LinkedUser(app: app, id: event.userId)
        let moment = event.linkedAt.milliseconds
        guard settings.fromLinks, !state.erasedUsers.contains(user), moment > state.renamedAt[user] ?? .min,
            !madeAnErasedProfile
        else { return Decision(.noted) }
        var draft = Draft(state, context, .link)
        let mark = LinkMark(
            userID: event.userId, externalID: event.externalId, linkedAt: moment, ownMPID: state.newMPID(context, 0))
        if !isToBeForgotten(event.userId, event.externalId, event.previousExternalId, since: moment) {
            if let own = draft.own(event) {
                draft.rename(own, event.previousExternalId, to: mark)
                if let next = own.mark, next.userID != event.userId, own.hasItsName(settings) {
                    try draft.mark(next, context)
                }
            } else if !settings.nobody.contains(event.externalId.text) {
                try draft.mark(mark, context)
            }
        }
        draft.settleOrphans()
        draft.guardSwitched()
        tellDevices(.named, &draft)
        var decision = draft.decision(.noted)
        decision.changes.append(.renamed(user, at: moment))
        return decision
    }

    /// S119.
    func unlinked(_ event: ExternalIDRemoved) -> Decision {
        let (user, moment) = (LinkedUser(app: app, id: event.userId), event.unlinkedAt.milliseconds)
        guard settings.fromLinks, moment > state.renamedAt[user] ?? .min else { return Decision(.noted) }
        var draft = Draft(state, context, .link)
        draft.touch([Identity(.customerID, IdentityValue(event.externalId.text))])
        for var profile in draft.marked(with: event.userId) where profile.mark.map({ $0.linkedAt < moment }) == true {
            profile.mark = nil
            draft.put(profile)
        }
        var decision = draft.decision(.noted)
        decision.changes.append(.renamed(user, at: moment))
        return decision
    }

    /// The link service was asked to forget the user, by one of its names, or whoever had the external id by then, and has
    /// not answered (S116).
    private func isToBeForgotten(
        _ user: UserID, _ present: ExternalID, _ former: ExternalID? = nil, since moment: Int64
    ) -> Bool {
        state.erasures.values.filter { $0.command.app == app }.flatMap(\.persons.values).contains { person in
            if person.userId == user, person.externalId == present || person.externalId == former { return true }
            return person.externalId == present && person.erasedAt.map { moment <= $0.milliseconds } != false
        }
    }
}

extension Draft {
    /// The profiles that a link marked with the user.
    fileprivate func marked(with user: UserID) -> [Profile] {
        state.profiles.values.filter { $0.app == app && $0.mark?.userID == user }
            .sorted { ($0.firstSeen, $0.mpid) < ($1.firstSeen, $1.mpid) }
    }

    /// Whose profile is to be called by another name: the one that a link marked with the user, or would mark by the name before.
    fileprivate mutating func own(_ event: ExternalIDChanged) -> Profile? {
        let names = [event.previousExternalId, event.externalId].compactMap { $0 }
        touch(names.map { Identity(.customerID, IdentityValue($0.text)) })
        let marked = marked(with: event.userId)
        let called = marked.first { $0.mark?.externalID == event.previousExternalId }
        // A link by the new name may have been read first, and have made a profile for it.
        if let own = called ?? marked.first(where: { $0.mark?.externalID != event.externalId }) { return own }
        let unmarked = event.previousExternalId.map { former in
            holders(of: Identity(.customerID, IdentityValue(former.text))).compactMap { profile($0) }
                .filter { $0.mark == nil }
        }
        return unmarked?.min { ($0.firstSeen, $0.mpid) < ($1.firstSeen, $1.mpid) } ?? taken(event) ?? marked.first
    }

    /// The profile that had the name while it was the user's, and has become that of the next one who was linked with it:
    /// that was read first (S124).
    private func taken(_ event: ExternalIDChanged) -> Profile? {
        guard let name = event.previousExternalId else { return nil }
        let (identity, moment) = (Identity(.customerID, IdentityValue(name.text)), event.linkedAt.milliseconds)
        return state.profiles.values.filter { profile in
            guard profile.app == app, let mark = profile.mark, mark.linkedAt > moment,
                mark.externalID != event.externalId
            else { return false }
            return profile.namedAt(identity, settings).map { $0 <= moment } == true
                || profile.wasCalled(name, at: moment, upTo: moment)
        }.min { ($0.firstSeen, $0.mpid) < ($1.firstSeen, $1.mpid) }
    }

    /// The mark's customer id in place of those before. Nobody else has it, but a user who was linked with it since.
    fileprivate mutating func rename(_ own: Profile, _ former: ExternalID?, to mark: LinkMark) {
        var (profile, mark) = (own, mark)
        let (new, moment) = (Identity(.customerID, IdentityValue(mark.externalID.text)), mark.linkedAt)
        let others = holders(of: new).filter { $0 != own.mpid }.sorted().compactMap { self.profile($0) }
        let isFree =
            !settings.nobody.contains(new)
            && !others.contains { other in
                other.mark.map { $0.userID != mark.userID && state.since($0, app) > moment } == true
            }
        if isFree {
            for other in others { giveUp(new, other, to: own.mpid, as: mark) }
            profile = self.profile(own.mpid) ?? own
        } else {
            touch(others)
        }
        // The same person, though by another name.
        if let before = own.mark, before.userID == mark.userID {
            (mark.linkedAt, mark.ownMPID) = (before.linkedAt, before.ownMPID)
        }
        profile.mark = mark
        if isFree { profile.isOrphaned = false }
        put(profile)
        // What support says later counts (S132).
        if isFree { lift(profile.barriers.filter { $0.mpid == own.mpid && $0.isAbout(new, settings) }) }
        profile = self.profile(own.mpid) ?? profile
        if isFree, !profile.holds(new, settings) { add(new, to: own.mpid, .replaced, at: moment) }
        let names = [former, own.mark?.externalID].compactMap(\.self).map {
            settings.folded(Identity(.customerID, IdentityValue($0.text)))
        }
        let gone = profile.values(of: .customerID).filter { held in
            settings.folded(held) != settings.folded(new)
                && (settings.isSingleValued(.customerID) || names.contains(settings.folded(held)))
        }
        leave(gone, own.mpid, before: min(mark.linkedAt, moment))
        remove(gone, from: own.mpid, .replaced)
        leaveNameless(own.mpid)
    }

    /// S122. The profile is the same person as the one that has the customer id now, unless support keeps the two apart.
    private mutating func giveUp(_ identity: Identity, _ profile: Profile, to mpid: MPID, as mark: LinkMark) {
        var profile = profile
        let isApart = profile.isApart(from: mpid)
        if !isApart { profile.aliasedInto.count(mpid, settings.limits) }
        put(profile)
        if !isApart, var heir = self.profile(mpid) {
            heir.aliasedFrom.count(profile.mpid, settings.limits)
            put(heir)
        }
        // What became of that user is yet to be read.
        if profile.mark?.userID != mark.userID { keptMarks.insert(profile.mpid) }
        if let held = profile.held(identity, settings) {
            leave([held], profile.mpid, before: min(profile.mark?.linkedAt ?? .max, mark.linkedAt))
            remove([held], from: profile.mpid, .taken, takenBy: mpid)
        }
        leaveNameless(profile.mpid, takenBy: mpid)
        if !isApart {
            tell(
                ProfileJoined(
                    sourceMPID: profile.mpid, destinationMPID: mpid, cause: cause,
                    identities: self.profile(profile.mpid)?.identities ?? []))
        }
    }

    /// Who had these before the profile's user had them is found by them still (S123).
    private mutating func leave(_ customerIDs: [Identity], _ mpid: MPID, before linkedAt: Int64) {
        guard var profile = profile(mpid) else { return }
        profile.leave(customerIDs, before: linkedAt, settings)
        put(profile)
    }

    /// What is left by which devices would find it goes too: who uses one of them next is not this person.
    private mutating func leaveNameless(_ mpid: MPID, takenBy heir: MPID? = nil) {
        guard let profile = profile(mpid), !profile.isKnown(settings) else { return }
        remove(profile.identities, from: mpid, .cleared, takenBy: heir)
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
            add(identity, to: mpid, .attached, at: state.since(mark, app))
            guard let created = profile(mpid) else { throw Rejection(.internalError) }
            marked = created
        }
        // Links of several installs are read in any order: the last one counts.
        let isNews = marked.mark.map { state.since($0, app) < mark.linkedAt || $0.externalID != mark.externalID }
        if isNews != false { marked.mark = mark }
        put(marked)
    }
}
