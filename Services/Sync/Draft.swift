// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
import Runtime

/// A decision in the making: what it has changed so far, over what was loaded. Whatever is put here is written, changed
/// or not: a decision writes what it relied on (docs/decisions/0003-isolation.md).
struct Draft: IdentityIndex {
    let state: SyncState
    let settings: SyncSettings
    let app: String
    let now: Int64
    let cause: SyncCause

    private var profiles: [MPID: Profile] = [:]
    private var entries: [IdentityEntry.Key: IdentityEntry] = [:]
    private var releases: [(IdentityEntry.Key, MPID)] = []
    private var touches: Set<IdentityEntry.Key> = []
    private var moves: [Move] = []
    private var orphans: [(mpid: MPID, takenBy: MPID?)] = []
    private(set) var created: (mpid: MPID, rule: SyncRule)?

    /// What came to and went from one profile for one reason.
    private struct Move {
        var mpid: MPID
        var reason: IdentitiesChanged.Reason
        var added: [Identity] = []
        var removed: [Identity] = []
    }

    init(_ state: SyncState, _ context: DecisionContext, _ cause: SyncCause) {
        self.state = state
        settings = context.app.sync
        app = context.app.id
        now = context.now.milliseconds
        self.cause = cause
    }

    // MARK: Reading

    func profile(_ mpid: MPID) -> Profile? { profiles[mpid] ?? state.profile(app, mpid) }

    func holders(of identity: Identity) -> [MPID] { entry(key(identity))?.holders ?? [] }

    func key(_ identity: Identity) -> IdentityEntry.Key { IdentityEntry.Key(app: app, identity, settings) }

    /// `nil` when the row is not here.
    private func entry(_ key: IdentityEntry.Key) -> IdentityEntry? { entries[key] ?? state.identities[key] }

    // MARK: Writing

    mutating func put(_ profile: Profile) { profiles[profile.mpid] = profile }

    /// Writes the rows of these values, because the decision relied on who holds them.
    mutating func touch(_ identities: [Identity]) {
        for identity in identities {
            let key = key(identity)
            if let entry = entry(key), !entry.holders.isEmpty || entry.bucket != nil { entries[key] = entry }
        }
    }

    mutating func touch(_ losers: [Profile]) { losers.forEach { profiles[$0.mpid] = profile($0.mpid) ?? $0 } }

    /// Takes a token of each login identity.
    /// - Throws: `THROTTLED`.
    mutating func throttle(_ identities: [Identity]) throws(Rejection) {
        let limits = settings.throttle
        guard limits.loginPerSecond > 0 else { return }
        for identity in identities where settings.loginIdentities.contains(identity.type) {
            let key = key(identity)
            var entry = entry(key) ?? IdentityEntry(key: key)
            entry.bucket = TokenBucket.take(
                from: entry.bucket, perSecond: limits.loginPerSecond, burst: limits.loginBurst, now: now)
            guard entry.bucket != nil else { throw Self.throttled("login identity \(identity.type.rawValue)") }
            entries[key] = entry
        }
    }

    static func throttled(_ limit: String) -> Rejection {
        Rejection(.throttled, "Too many identity commands (limit: \(limit)); try again later.")
    }

    // MARK: Profiles

    /// A new profile with the first MPID of the command that is free.
    mutating func create(_ context: DecisionContext, _ rule: SyncRule) -> Profile {
        var counter = 0
        while true {
            let mpid = context.newMPID(counter)
            if profile(mpid) == nil {
                let profile = Profile(app: app, mpid: mpid, seen: now)
                put(profile)
                created = (mpid, rule)
                return profile
            }
            counter += 1
        }
    }

    // MARK: Identities

    /// Gives a profile the identities of an identify, login or link (facts/idsync.md 3.2 "write rules"): a unique value
    /// stays with whoever has it.
    /// - Throws: `LIMIT_EXCEEDED`.
    mutating func attach(_ identities: [Identity], to mpid: MPID) throws(Rejection) {
        for identity in identities.sorted(by: {
            (settings.rank($0.type), $0.type) < (settings.rank($1.type), $1.type)
        }) {
            guard let profile = profile(mpid), !profile.holds(identity, settings) else { continue }
            let isUnique = settings.uniqueIdentities.contains(identity.type)
            if isUnique, !holders(of: identity).isEmpty { continue }
            let present = profile.values(of: identity.type)
            if settings.isSingleValued(identity.type), !present.isEmpty {
                if settings.immutableIdentities.contains(identity.type) { continue }
                try makeRoom(for: identity, beside: mpid)
                remove(present, from: mpid, .replaced)
                add(identity, to: mpid, .replaced)
                continue
            }
            try makeRoom(for: identity, beside: mpid)
            if present.count >= settings.limits.valuesPerType {
                guard !settings.loginIdentities.contains(identity.type) else {
                    throw Rejection(
                        .limitExceeded,
                        "The profile has \(present.count) values of \(identity.type.rawValue) (limit: valuesPerType).")
                }
                remove(Array(present.prefix(present.count - settings.limits.valuesPerType + 1)), from: mpid, .limit)
            }
            add(identity, to: mpid, .attached)
        }
    }

    /// Keeps a value that profiles share at its limit: the one seen longest ago gives it up. Login identities are not
    /// taken away like that; the command is refused.
    private mutating func makeRoom(for identity: Identity, beside mpid: MPID) throws(Rejection) {
        let holders = holders(of: identity).filter { $0 != mpid }
        let excess = holders.count - settings.limits.profilesPerValue + 1
        guard excess > 0 else { return }
        guard !settings.loginIdentities.contains(identity.type) else {
            throw Rejection(
                .limitExceeded,
                "\(holders.count) profiles have this \(identity.type.rawValue) (limit: profilesPerValue).")
        }
        let oldest = holders.compactMap { profile($0) }.sorted { ($0.lastSeen, $0.mpid) < ($1.lastSeen, $1.mpid) }
        for profile in oldest.prefix(excess) {
            if let held = profile.held(identity, settings) { remove([held], from: profile.mpid, .limit) }
        }
    }

    mutating func add(_ identity: Identity, to mpid: MPID, _ reason: IdentitiesChanged.Reason) {
        guard var profile = profile(mpid) else { return }
        profile.identities.append(identity)
        put(profile)
        let key = key(identity)
        var entry = entry(key) ?? IdentityEntry(key: key)
        entry.holders.append(mpid)
        entries[key] = entry
        note(mpid, reason) { $0.added.append(identity) }
    }

    /// - Parameter takenBy: who has the values now.
    mutating func remove(
        _ identities: [Identity], from mpid: MPID, _ reason: IdentitiesChanged.Reason, takenBy: MPID? = nil
    ) {
        guard !identities.isEmpty, var profile = profile(mpid) else { return }
        profile.identities.removeAll { identities.contains($0) }
        put(profile)
        for identity in identities {
            let key = key(identity)
            if var entry = entry(key) {
                entry.holders.removeAll { $0 == mpid }
                entries[key] = entry
            } else {
                releases.append((key, mpid))
            }
        }
        note(mpid, reason) { $0.removed.append(contentsOf: identities) }
        if profile.identities.isEmpty { orphans.append((mpid, takenBy)) }
    }

    private mutating func note(_ mpid: MPID, _ reason: IdentitiesChanged.Reason, _ change: (inout Move) -> Void) {
        if let index = moves.firstIndex(where: { $0.mpid == mpid && $0.reason == reason }) {
            change(&moves[index])
        } else {
            var move = Move(mpid: mpid, reason: reason)
            change(&move)
            moves.append(move)
        }
    }

    // MARK: Conclusion

    /// Profiles that had identities and end without any are orphans now.
    mutating func settleOrphans() {
        var seen: Set<MPID> = []
        orphans = orphans.filter { orphan in
            let hadSome = state.profile(app, orphan.mpid)?.identities.isEmpty == false
            return hadSome && profile(orphan.mpid)?.identities.isEmpty == true && seen.insert(orphan.mpid).inserted
        }
        for orphan in orphans {
            guard var profile = profile(orphan.mpid) else { continue }
            profile.isOrphaned = true
            put(profile)
        }
    }

    /// A known profile that is anonymous now can be found by all of its values: who relied on passing it over must
    /// decide again, so their rows are written.
    mutating func guardNewlyAnonymous() {
        for profile in profiles.values where !profile.isKnown(settings) {
            guard state.profile(app, profile.mpid)?.isKnown(settings) == true else { continue }
            for identity in profile.identities {
                let key = key(identity)
                if let entry = entry(key) { entries[key] = entry } else { touches.insert(key) }
            }
        }
    }

    var changes: [SyncState.Change] {
        profiles.values.sorted { $0.mpid < $1.mpid }.map { .profile($0) }
            + entries.values.sorted { $0.key < $1.key }.map { .identity($0) }
            + releases.map { .release($0.0, $0.1) } + touches.sorted().map { .touch($0) }
    }

    var events: [any EventMessage] {
        var events: [any EventMessage] = []
        if let created, let profile = profile(created.mpid) {
            events.append(
                ProfileCreated(
                    mpid: created.mpid, cause: cause, rule: created.rule, isLoggedIn: profile.isKnown(settings),
                    identities: profile.identities))
        }
        for move in moves where move.mpid != created?.mpid {
            events.append(
                IdentitiesChanged(
                    mpid: move.mpid, cause: cause, reason: move.reason, added: move.added, removed: move.removed,
                    isLoggedIn: profile(move.mpid)?.isKnown(settings) ?? false))
        }
        for orphan in orphans {
            events.append(ProfileOrphaned(mpid: orphan.mpid, cause: cause, takenBy: orphan.takenBy))
        }
        return events
    }
}
