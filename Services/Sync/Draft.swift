// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

/// A decision in the making: what it has changed so far, over what was loaded. Whatever is put here is written, changed
/// or not: a decision writes what it relied on (docs/decisions/0003-isolation.md).
struct Draft: IdentityIndex {
    let state: SyncState
    let settings: SyncSettings
    let app: AppID
    let now: Int64
    /// When the command was given.
    let moment: Int64
    let cause: SyncCause

    private var profiles: [MPID: Profile] = [:]
    private var entries: [IdentityEntry.Key: IdentityEntry] = [:]
    private var releases: [(IdentityEntry.Key, MPID)] = []
    private var touches: Set<IdentityEntry.Key> = []
    private var moves: [Move] = []
    private var orphans: [(mpid: MPID, takenBy: MPID?)] = []
    private var warnings: [ValueTooCommon] = []
    /// In this order. Several where an erasure moves several marks (S115).
    private var created: [(mpid: MPID, rule: SyncRule)] = []
    /// Profiles that keep their mark without its customer id (S122).
    var keptMarks: Set<MPID> = []
    /// Types of login identities that a limit had no room for.
    var leftOut: Set<IdentityType> = []
    /// Types of what a profile may not have (S128).
    var barred: Set<IdentityType> = []
    private var devices: [DeviceRecord.Key: DeviceRecord] = [:]
    private var told: [any EventMessage] = []
    /// Types of values that name nobody and were passed over.
    private var ignored: [IdentityType] = []

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
        moment = context.moment.milliseconds
        self.cause = cause
    }

    // MARK: Reading

    func profile(_ mpid: MPID) -> Profile? { profiles[mpid] ?? state.profile(app, mpid) }

    func holders(of identity: Identity) -> [MPID] { entry(key(identity))?.holders ?? [] }

    func device(_ id: DeviceID) -> DeviceRecord {
        let device = state.device(app, id)
        return devices[device.key] ?? device
    }

    func key(_ identity: Identity) -> IdentityEntry.Key { IdentityEntry.Key(app: app, identity, settings) }

    /// `nil` when the row is not here.
    private func entry(_ key: IdentityEntry.Key) -> IdentityEntry? { entries[key] ?? state.identities[key] }

    // MARK: Writing

    mutating func put(_ profile: Profile) { profiles[profile.mpid] = profile }

    /// Writes the rows of these values, because the decision relied on who holds them (S68).
    mutating func touch(_ identities: [Identity]) {
        for identity in identities {
            let key = key(identity)
            if let entry = entry(key), !entry.holders.isEmpty || entry.bucket != nil { entries[key] = entry }
        }
    }

    mutating func put(_ device: DeviceRecord) { devices[device.key] = device }

    mutating func touch(_ losers: [Profile]) { losers.forEach { profiles[$0.mpid] = profile($0.mpid) ?? $0 } }

    /// Told after what the changes of profiles tell themselves.
    mutating func tell(_ event: any EventMessage) { told.append(event) }

    // MARK: What holds a command up

    /// The identities that may be somebody's. Of the others a login identity refuses the command, since its sender means
    /// a person; any other is passed over, since a device cannot help what its system gives out (S51, S52).
    /// - Parameter ignoringLogins: a logout looks at no login identity.
    /// - Throws: `VALIDATION_ERROR`.
    mutating func sift(_ identities: [Identity], ignoringLogins: Bool) throws(Rejection) -> [Identity] {
        var named: [Identity] = []
        for identity in identities {
            let isLogin = settings.loginIdentities.contains(identity.type)
            if isLogin && ignoringLogins || !settings.nobody.contains(identity) {
                named.append(identity)
            } else if isLogin {
                throw SyncDecider.namesNobody(identity.type)
            } else {
                ignored.append(identity.type)
            }
        }
        return named
    }

    /// The answer when nothing is left after ``sift(_:ignoringLogins:)``. Not thrown: what was passed over is counted.
    var nothingNamed: SyncDecider.Decision {
        decision(.rejected(Rejection(.lookupError, "knownIdentities names nobody.")))
    }

    /// Takes a token of the device (S65).
    /// - Throws: `THROTTLED`.
    func throttle(_ device: inout DeviceRecord) throws(Rejection) {
        let limits = settings.throttle
        guard limits.devicePerSecond > 0 else { return }
        device.bucket = TokenBucket.take(
            from: device.bucket, perSecond: limits.devicePerSecond, burst: limits.deviceBurst, now: now)
        if device.bucket == nil { throw Self.throttled("device") }
    }

    /// Takes a token of each login identity.
    /// - Throws: `THROTTLED`.
    mutating func throttle(_ identities: [Identity]) throws(Rejection) {
        let limits = settings.throttle
        guard limits.loginPerSecond > 0 else { return }
        // One that the command names twice is named by one command.
        for key in Set(settings.logins(identities).map(key)).sorted() {
            var entry = entry(key) ?? IdentityEntry(key: key)
            entry.bucket = TokenBucket.take(
                from: entry.bucket, perSecond: limits.loginPerSecond, burst: limits.loginBurst, now: now)
            guard entry.bucket != nil else { throw Self.throttled("login identity \(key.id.type.rawValue)") }
            entries[key] = entry
        }
    }

    private static func throttled(_ limit: String) -> Rejection {
        Rejection(.throttled, "Too many identity commands (limit: \(limit)); try again later.")
    }

    // MARK: Profiles

    /// A new profile with the first MPID of the command that is free.
    mutating func create(_ context: DecisionContext, _ rule: SyncRule) -> Profile {
        var counter = 0
        while profile(state.newMPID(context, counter)) != nil { counter += 1 }
        return create(state.newMPID(context, counter), rule)
    }

    /// A new profile with this MPID, which is free.
    mutating func create(_ mpid: MPID, _ rule: SyncRule) -> Profile {
        let profile = Profile(app: app, mpid: mpid, seen: now)
        put(profile)
        created.append((mpid, rule))
        return profile
    }

    /// The profile of a linked user for whom there is none.
    mutating func create(for mark: LinkMark, _ context: DecisionContext) -> Profile {
        profile(mark.ownMPID) == nil
            ? create(mark.ownMPID, .createdForLink) : create(context, .createdForLink)
    }

    // MARK: Identities

    /// - Parameter since: when it became the profile's; now, unless it is said.
    mutating func add(
        _ identity: Identity, to mpid: MPID, _ reason: IdentitiesChanged.Reason, at since: Int64? = nil
    ) {
        guard var profile = profile(mpid) else { return }
        profile.add(identity, at: since ?? moment)
        put(profile)
        let key = key(identity)
        var entry = entry(key) ?? IdentityEntry(key: key)
        entry.holders.append(mpid)
        entries[key] = entry
        if entry.holders.count >= max(2, (settings.limits.profilesPerValue + 1) / 2) { warn(identity) }
        note(mpid, reason) { $0.added.append(identity) }
    }

    /// S62. Says once that many profiles have the value, before the limit takes it from anybody.
    mutating func warn(_ identity: Identity) {
        let key = key(identity)
        guard !settings.uniqueIdentities.contains(identity.type), var entry = entry(key), !entry.isTold else { return }
        entry.isTold = true
        entries[key] = entry
        warnings.append(
            ValueTooCommon(
                type: identity.type, digest: key.id.digest.bytes.hex, holders: entry.holders.count,
                limit: settings.limits.profilesPerValue))
    }

    /// - Parameter takenBy: who has the values now.
    mutating func remove(
        _ identities: [Identity], from mpid: MPID, _ reason: IdentitiesChanged.Reason, takenBy: MPID? = nil
    ) {
        guard !identities.isEmpty, var profile = profile(mpid) else { return }
        profile.remove(identities)
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

    /// Takes the profile from those who have the value.
    mutating func release(_ key: IdentityEntry.Key, _ mpid: MPID) {
        if var entry = entry(key), entry.holders.contains(mpid) {
            entry.holders.removeAll { $0 == mpid }
            entries[key] = entry
        } else {
            releases.append((key, mpid))
        }
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

    /// The profiles that were known and are anonymous now, or the other way round.
    var switched: [MPID: Profile] {
        profiles.filter { mpid, profile in
            state.profile(app, mpid).map { $0.isKnown(settings) != profile.isKnown(settings) } == true
        }
    }

    /// Profiles that had identities and end without any are orphans now (S32).
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

    /// A known profile that is anonymous now can be found by all of its values, and one that was anonymous no longer: who
    /// relied on the one or the other must decide again, so their rows are written.
    mutating func guardSwitched() {
        for profile in switched.values {
            for identity in profile.identities {
                let key = key(identity)
                if let entry = entry(key) { entries[key] = entry } else { touches.insert(key) }
            }
        }
    }

    func decision(_ outcome: Outcome) -> SyncDecider.Decision {
        SyncDecider.Decision(outcome, changes: changes, events: events)
    }

    private var changes: [SyncState.Change] {
        profiles.values.sorted { $0.mpid < $1.mpid }.map { .profile(settled($0)) }
            // A value that nobody has leaves nothing behind, its bucket included (S67).
            + entries.values.sorted { $0.key < $1.key }.map {
                .identity($0.holders.isEmpty ? IdentityEntry(key: $0.key) : $0)
            }
            + releases.map { .release($0.0, $0.1) } + touches.sorted().map { .touch($0) }
            + devices.values.sorted { $0.key < $1.key }.map { .device($0) } + ignored.map { .ignored($0) }
    }

    /// A profile as it is written. Who becomes known is a person of their own, whomever the anonymous profile was aliased
    /// into: anybody may have said that (S96). So is whose user has a name again that nobody else has (S122).
    private func settled(_ profile: Profile) -> Profile {
        var profile = profile
        let before = state.profile(app, profile.mpid)
        if before.map({ profile.hasLostItsName(since: $0, settings) }) == true, !keptMarks.contains(profile.mpid) {
            profile.mark = nil  // S94
        }
        if !profile.aliasedInto.isEmpty, profile.isKnown(settings),
            before.map({ !$0.isKnown(settings) || profile.hasItsNameAgain(since: $0, settings) }) == true
        {
            profile.aliasedInto = []
            profile.growth += 1
        }
        if !profile.isErased, let at = profile.changesRestrictedUser(since: before, now: now) {
            profile.restrictionToldAt = at
        }
        return profile
    }

    /// S141. Who is restricted comes first: a user whose mark moves to another restricted profile stays so.
    private var restrictions: [UserRestrictionChanged] {
        // Hardly anybody is.
        guard profiles.values.contains(where: { $0.isRestricted || state.profile(app, $0.mpid)?.isRestricted == true })
        else { return [] }
        let changed = profiles.values.sorted { $0.mpid < $1.mpid }.flatMap { profile -> [UserRestrictionChanged] in
            let (before, after) = (state.profile(app, profile.mpid), settled(profile))
            guard let at = after.changesRestrictedUser(since: before, now: now) else { return [] }
            return [(after.restrictedUser, true), (before?.restrictedUser, false)].compactMap { user, isRestricted in
                user.map {
                    UserRestrictionChanged(
                        userId: $0, mpid: profile.mpid, isRestricted: isRestricted,
                        changedAt: Timestamp(milliseconds: at))
                }
            }
        }
        return changed.filter(\.isRestricted) + changed.filter { !$0.isRestricted }
    }

    /// S142.
    private var linkedUsers: [LinkedUserChanged] {
        profiles.values.sorted { $0.mpid < $1.mpid }.compactMap { profile in
            let (before, after) = (state.profile(app, profile.mpid)?.mark, settled(profile))
            guard !after.isErased, before?.userID != after.mark?.userID else { return nil }
            return LinkedUserChanged(
                mpid: after.mpid, cause: cause, previousUserId: before?.userID, userId: after.mark?.userID,
                identities: after.identities)
        }
    }

    private var events: [any EventMessage] {
        var events: [any EventMessage] = []
        for created in created {
            guard let profile = profile(created.mpid) else { continue }
            events.append(
                ProfileCreated(
                    mpid: created.mpid, cause: cause, rule: created.rule, isLoggedIn: profile.isKnown(settings),
                    identities: profile.identities))
        }
        for move in moves where !created.contains(where: { $0.mpid == move.mpid }) {
            events.append(
                IdentitiesChanged(
                    mpid: move.mpid, cause: cause, reason: move.reason, added: move.added, removed: move.removed,
                    isLoggedIn: profile(move.mpid)?.isKnown(settings) ?? false))
        }
        for orphan in orphans {
            events.append(ProfileOrphaned(mpid: orphan.mpid, cause: cause, takenBy: orphan.takenBy))
        }
        return events + warnings + linkedUsers + restrictions + told
    }
}
