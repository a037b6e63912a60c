// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

/// The profiles that an erasure is about, before those that were aliased into them.
struct ErasedProfiles {
    /// From when on nobody is meant any more.
    var moment: Int64
    var profiles: [Profile]
    /// By which they were found.
    var identities: [Identity] = []
    /// Others who hold one of the identities.
    var others: Set<MPID> = []
    /// Those of the link service who go with them. Whoever was linked later stays (S115).
    var users: [UserID] = []
    /// Marked with them by links that were read late, and theirs no longer: their marks go (S95).
    var spared: [Profile] = []
}

extension SyncDecider {
    /// S56, S90 to S92. Nobody may be erased by mistake: there is no way back.
    func named(_ command: EraseProfile) throws(Rejection) -> ErasedProfiles {
        if command.everyHolder == true { try context.principal.authorize(.admin) }
        if let mpid = command.mpid {
            // One that is erased already is erased again: the first time may have failed elsewhere (S56).
            guard let profile = state.profile(app, mpid) else { throw Rejection(.notFoundError) }
            return ErasedProfiles(moment: moment, profiles: [profile], users: [profile].compactMap(linkedUser))
        }
        for identity in command.named where settings.nobody.contains(identity.value.text) {
            throw Self.namesNobody(identity.type)
        }
        let draft = Draft(state, context, .erase)
        let meant = Resolver(settings: settings, index: draft).meant(by: command.named).filter { !isLater($0) }
        let others = Set(command.named.flatMap(draft.holders)).subtracting(meant.map(\.mpid))
        let holders = IdentityHolders(count: meant.count, heldByOthers: others.count)
        guard !meant.isEmpty else { throw Rejection(.notFoundError).carrying(holders) }
        guard meant.count == 1 || command.everyHolder == true else {
            throw Rejection(
                .ambiguousIdentity,
                "The identities lead to \(meant.count) profiles. Name one by mpid, or name a higher-ranked identity."
            )
            .carrying(holders)
        }
        return ErasedProfiles(
            moment: moment, profiles: meant, identities: command.named, others: others,
            users: meant.compactMap(linkedUser))
    }

    /// The link service's user of a profile, unless it was linked after the erasure was asked for.
    private func linkedUser(_ profile: Profile) -> UserID? {
        profile.mark.flatMap { $0.linkedAt <= moment ? $0.userID : nil }
    }

    /// Whether the profile has been nothing but that of somebody who was linked after the erasure was asked for.
    private func isLater(_ profile: Profile) -> Bool {
        guard let mark = profile.mark, mark.linkedAt > moment else { return false }
        // What the user was renamed from may be older than the user's link (S123).
        return isNamed(profile, after: moment) && profile.former.map { $0.since > moment } != false
    }

    /// Whether the profile got the customer id of its mark later than that: whoever it was before, it was not the mark's user.
    func isNamed(_ profile: Profile, after end: Int64) -> Bool {
        guard let mark = profile.mark else { return false }
        return profile.namedAt(Identity(.customerID, IdentityValue(mark.externalID.text)), settings)
            .map { $0 > end } == true
    }

    private var moment: Int64 { context.moment.milliseconds }

    /// The profiles of a person that the link service erased: those marked with the user by one of its names, and those with
    /// one of these as customer id. The command knows all that support did, also where its events are not read yet (S121). The external id was free from the erasure on: a profile that got it later is another person's, and one that
    /// had it before is not, though the next person's link was read first and marked it (S95).
    func forgotten(_ command: ForgetProfiles) -> ErasedProfiles {
        let users = command.userId.map { [$0] } ?? []
        let end = command.erasedAt?.milliseconds ?? moment
        var (marked, spared) = marked(with: users, upTo: end)
        let names = command.names
        if command.userId != nil {
            func isTheirs(_ profile: Profile) -> Bool { profile.mark.map { names.contains($0.externalID) } == true }
            spared += marked.filter { !isTheirs($0) }
            marked.removeAll { !isTheirs($0) }
        }
        let present = command.externalId.map { externalID in
            holders(of: externalID, upTo: end) { $0.mark.map { $0.externalID == externalID } != false }
        }
        let before = (command.former ?? []).map { former in
            // A link of since the erasure that was read first protects nothing that is of before.
            holders(of: former.externalId, upTo: min(former.until.milliseconds, end)) { profile in
                profile.mark.map { mark in
                    users.contains(mark.userID) || mark.linkedAt > end && mark.externalID == former.externalId
                } != false
            }
        }
        let found = before + (present.map { [$0] } ?? [])
        var mpids = Set(spared.map(\.mpid))
        let profiles = (marked + found.flatMap(\.theirs) + formerly(command, upTo: end)).filter {
            mpids.insert($0.mpid).inserted
        }
        return ErasedProfiles(
            moment: end, profiles: profiles,
            identities: names.map { Identity(.customerID, IdentityValue($0.text)) },
            others: Set(found.flatMap(\.all)).subtracting(profiles.map(\.mpid)), users: users, spared: spared)
    }

    /// The profiles that were called as the person was, and have become the next one's, whose change of name was read first
    /// (S123).
    private func formerly(_ command: ForgetProfiles, upTo end: Int64) -> [Profile] {
        var names = (command.former ?? []).map { (name: $0.externalId, at: min($0.until.milliseconds, end)) }
        if let present = command.externalId { names.append((present, end)) }
        return state.profiles.values.filter { profile in
            profile.app == app && names.contains { profile.wasCalled($0.name, at: $0.at, upTo: end) }
        }
    }

    /// Who has the customer id, and of these who has had it since then and is not somebody else.
    private func holders(
        of externalID: ExternalID, upTo end: Int64, isOpen: (Profile) -> Bool
    ) -> (all: [MPID], theirs: [Profile]) {
        let identity = Identity(.customerID, IdentityValue(externalID.text))
        let draft = Draft(state, context, .forget)
        let all = draft.holders(of: identity).compactMap { draft.profile($0) }
        return (
            all.map(\.mpid), all.filter { isOpen($0) && $0.namedAt(identity, settings).map { $0 <= end } == true }
        )
    }

    /// The profiles that links marked with these users. Somebody who came later may have one: that link was read late (S95). What
    /// the user itself was called later, by a link or by support, is no younger than the user.
    func marked(with users: [UserID], upTo end: Int64) -> (gone: [Profile], spared: [Profile]) {
        let marked = state.profiles.values.filter { profile in
            profile.key.app == app && profile.mark.map { users.contains($0.userID) } == true
        }
        func isLater(_ profile: Profile) -> Bool {
            isNamed(profile, after: max(end, profile.mark.map { state.since($0, app) } ?? end))
        }
        return (marked.filter { !isLater($0) }, marked.filter { isLater($0) })
    }

    // MARK: Aliases

    /// Whoever was aliased into nobody but them is the same person, unless a link says otherwise, or they have become known
    /// since (S96, ``Draft/settled(_:)``).
    func aliasSources(of erased: ErasedProfiles) -> [Profile] {
        var mpids = Set(erased.profiles.map(\.mpid))
        var (found, last): ([Profile], [Profile]) = ([], erased.profiles)
        while !last.isEmpty {
            last = Set(last.flatMap(\.aliasedFrom)).subtracting(mpids).compactMap { state.profile(app, $0) }
                .filter { source in
                    !source.isErased && !source.aliasedInto.isEmpty && mpids.isSuperset(of: source.aliasedInto)
                        && !isSomebodyElses(source, than: erased.users)
                }
            mpids.formUnion(last.map(\.mpid))
            found += last
        }
        return found
    }

    /// A mark says so only with its customer id: without that, its user had lost it to whom is erased (S122).
    private func isSomebodyElses(_ profile: Profile, than users: [UserID]) -> Bool {
        profile.hasItsName(settings) && profile.mark.map { users.contains($0.userID) } == false
    }

    /// Sources that stay no longer lead to who goes, so that they go with the last one of those they were aliased into.
    func leaveAliases(into mpids: [MPID], _ draft: inout Draft) {
        for source in Set(mpids.compactMap { draft.profile($0) }.flatMap(\.aliasedFrom)).sorted() {
            guard var profile = draft.profile(source), profile.aliasedInto.contains(where: mpids.contains) else {
                continue
            }
            profile.aliasedInto.removeAll { mpids.contains($0) }
            draft.put(profile)
        }
    }
}

extension Resolver {
    /// Whom these identities mean, before ties are broken. Each finds profiles as it would in a search for all of them, a
    /// device's identity anonymous ones only: several people may use a device. Where they lead to the same profiles, these
    /// are meant; where they do not, it is not certain who is, and all are returned.
    func meant(by identities: [Identity]) -> [Profile] {
        let found = settings.priority.compactMap { type in identities.first { $0.type == type } }
            .map { identity in
                index.holders(of: identity).compactMap { index.profile($0) }.filter {
                    isEligible($0, identities) && !(identity.type.isDevice && $0.isKnown(settings))
                }
            }.filter { !$0.isEmpty }
        var common = found.first ?? []
        for profiles in found.dropFirst() {
            common.removeAll { profile in !profiles.contains { $0.mpid == profile.mpid } }
        }
        guard common.isEmpty else { return common.sorted { $0.mpid < $1.mpid } }
        return Dictionary(found.joined().map { ($0.mpid, $0) }) { first, _ in first }.values.sorted {
            $0.mpid < $1.mpid
        }
    }
}
