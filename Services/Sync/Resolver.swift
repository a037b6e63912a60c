// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime

/// What the resolver may read.
protocol IdentityIndex {
    func holders(of identity: Identity) -> [MPID]
    func profile(_ mpid: MPID) -> Profile?
}

/// Finds the profile that a set of identities means (F33, F36). One function for all strategies. Pure.
struct Resolver<Index: IdentityIndex> {
    struct Match {
        var profile: Profile
        var rule: SyncRule
        /// Those that lost by what their rows say; a decision that relies on it writes them too.
        var losers: [Profile] = []
    }

    var settings: SyncSettings
    var index: Index
    /// The device's current user, which wins ties.
    var current: MPID?
    /// Anonymous profiles are found by devices' identities only (S72).
    var isStrict = false

    /// Down the identity priority: each type narrows the candidates, and one that would leave none is passed over (S5).
    func match(_ identities: [Identity]) -> Match? {
        var candidates: [Profile]?
        // Whatever an app's priority is: what is vouched for leads past what devices say (S72).
        let priority =
            isStrict
            ? settings.priority.filter { !$0.isDevice } + settings.priority.filter(\.isDevice) : settings.priority
        for type in priority {
            guard let identity = identities.first(where: { $0.type == type }) else { continue }
            let holders = index.holders(of: identity).compactMap { index.profile($0) }.filter {
                isEligible($0, identities) && (!isStrict || type.isDevice || $0.isKnown(settings))
            }
            guard !holders.isEmpty else { continue }
            if let before = candidates {
                let both = before.filter { profile in holders.contains { $0.mpid == profile.mpid } }
                if !both.isEmpty { candidates = both }
            } else {
                candidates = holders
            }
            if candidates?.count == 1 { break }
        }
        return candidates.map(pick)
    }

    /// A search under immutable identities needs one of them (S7, F37).
    func search(_ identities: [Identity]) -> Match? {
        if !settings.immutableIdentities.isEmpty, !settings.searchByAnyIdentity,
            !identities.contains(where: { settings.immutableIdentities.contains($0.type) })
        {
            return nil
        }
        return settings.strategy.lookup == .userIDThenEmail
            ? matchPerson(identities) ?? matchAnonymous(identities) : match(identities)
    }

    // MARK: The user id first, then the e-mail (S28, S29, F51)

    /// The known profile that a customer id or an e-mail means: by e-mail only one without a customer id, if the request
    /// has one.
    func matchPerson(_ identities: [Identity]) -> Match? {
        let userID = identities.first { $0.type == .customerID }
        let email = identities.first { $0.type == .email }
        if let userID, let holder = index.holders(of: userID).first, let profile = index.profile(holder) {
            return Match(profile: profile, rule: .matched)
        }
        guard let email else { return nil }
        var profiles = index.holders(of: email).compactMap { index.profile($0) }
        if userID != nil { profiles.removeAll { !$0.values(of: .customerID).isEmpty } }
        profiles.removeAll { isKeptApart($0, identities) }
        profiles.sort { ($0.firstSeen, $0.mpid) < ($1.firstSeen, $1.mpid) }
        guard let oldest = profiles.first else { return nil }
        return Match(
            profile: oldest, rule: profiles.count == 1 ? .matched : .tieToOldest, losers: Array(profiles.dropFirst()))
    }

    /// The anonymous profile that the device's identities mean.
    func matchAnonymous(_ identities: [Identity]) -> Match? {
        match(identities.filter { !settings.loginIdentities.contains($0.type) })
    }

    // MARK: Parts

    /// A known profile is for those who name one of its login identities; one with immutable identities, for those who
    /// name one of these.
    func isEligible(_ profile: Profile, _ identities: [Identity]) -> Bool {
        isNamed(profile, identities) && (settings.joinByLowerRank || !isSomebodyElse(profile, identities))
            && !isKeptApart(profile, identities)
    }

    private func isNamed(_ profile: Profile, _ identities: [Identity]) -> Bool {
        shares(profile, identities, settings.loginIdentities)
            && shares(profile, identities, settings.immutableIdentities)
    }

    /// Whether the profile has only a lower-ranked login identity in common with the request, and another value than it
    /// of a higher-ranked one: a stranger's e-mail must not make anybody that stranger (S9).
    private func isSomebodyElse(_ profile: Profile, _ identities: [Identity]) -> Bool {
        let named = settings.logins(identities)
        guard let best = named.filter({ profile.holds($0, settings) }).map({ settings.rank($0.type) }).min() else {
            return false
        }
        return named.contains { settings.rank($0.type) < best && !profile.values(of: $0.type).isEmpty }
    }

    /// The profiles that a login identity of the request names and that are somebody else's all the same. Not asked for
    /// when `found` settled it by the highest-ranked login identity there is.
    func somebodyElse(_ identities: [Identity], found: Profile?) -> [Profile] {
        let named = settings.logins(identities).sorted { settings.rank($0.type) < settings.rank($1.type) }
        guard let highest = named.first, found?.holds(highest, settings) != true else { return [] }
        var others: [MPID: Profile] = [:]
        for mpid in Set(named.flatMap { index.holders(of: $0) }) {
            guard let profile = index.profile(mpid), isNamed(profile, identities),
                !settings.joinByLowerRank && isSomebodyElse(profile, identities) || isKeptApart(profile, identities)
            else { continue }
            others[mpid] = profile
        }
        return others.values.sorted { $0.mpid < $1.mpid }
    }

    private func shares(_ profile: Profile, _ identities: [Identity], _ types: Set<IdentityType>) -> Bool {
        guard profile.identities.contains(where: { types.contains($0.type) }) else { return true }
        return identities.contains { types.contains($0.type) && profile.holds($0, settings) }
    }

    /// The device's current user, else the one seen last, else the smallest MPID (S8).
    private func pick(_ candidates: [Profile]) -> Match {
        guard candidates.count > 1 else { return Match(profile: candidates[0], rule: .matched) }
        if let profile = candidates.first(where: { $0.mpid == current }) {
            return Match(profile: profile, rule: .tieToCurrentUser)
        }
        let sorted = candidates.sorted {
            $0.lastSeen == $1.lastSeen ? $0.mpid < $1.mpid : $0.lastSeen > $1.lastSeen
        }
        return Match(
            profile: sorted[0],
            rule: sorted[0].lastSeen == sorted[1].lastSeen ? .tieToSmallest : .tieToMostRecent,
            losers: Array(sorted.dropFirst()))
    }
}
