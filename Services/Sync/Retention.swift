// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

extension Profile {
    /// Since when nothing was heard of it: it was seen, or was given what it has. An import gives it that, too.
    var quietSince: Int64 { max(lastSeen, namedAt.max() ?? .min) }

    /// After how long it goes, by itself; `nil`: never (S202).
    func period(_ app: AppSettings) -> Int64? {
        guard !isErased, !isKnown(app.sync), mark == nil, barriers.isEmpty, !isRestricted else { return nil }
        return isOrphaned ? app.retention.orphan : app.retention.anonymous
    }
}

extension DeviceRecord {
    /// Since when nothing was heard of it.
    var quietSince: Int64 { max(lastMove, users.map(\.lastSeen).max() ?? .min, bucket?.at ?? .min) }

    /// Who is on it.
    var holders: [MPID] { [current, anonymous].compactMap(\.self) }
}

/// What nobody has used for long goes (docs/sync.md "Retention").
extension SyncDecider {
    /// S202.
    func expire(_ command: ExpireProfile) -> Decision {
        guard let profile = state.profile(app, command.mpid),
            profile.quietSince == command.lastSeen.milliseconds, let period = profile.period(context.app),
            context.hasPassed(period, since: profile.quietSince), !isInUse(profile), !isWaitedFor(profile)
        else { return Decision(.noted) }
        var draft = Draft(state, context, .expire)
        draft.expire(profile)
        leaveAliases(of: profile, &draft)
        draft.tell(ProfileExpired(mpid: profile.mpid, lastSeen: command.lastSeen))
        var decision = draft.decision(.noted)
        decision.changes.append(.expired(profile.key))
        return decision
    }

    /// Whether a device has it as user, or comes back to it.
    private func isInUse(_ profile: Profile) -> Bool {
        state.devices.values.contains { $0.key.app == app && $0.holders.contains(profile.mpid) }
    }

    private func isWaitedFor(_ profile: Profile) -> Bool {
        state.aliases.values.contains { alias in
            alias.key.app == app && (alias.source == profile.mpid || alias.destination == profile.mpid)
        }
            || state.requests.values.contains { request in
                request.app == app && request.isOpen && request.profiles.contains(profile.mpid)
            }
    }

    /// Nobody leads to it any more (S96).
    private func leaveAliases(of profile: Profile, _ draft: inout Draft) {
        leaveAliases(into: [profile.mpid], &draft)
        for mpid in Set(profile.aliasedInto).sorted() {
            guard var destination = draft.profile(mpid), destination.aliasedFrom.contains(profile.mpid) else {
                continue
            }
            destination.aliasedFrom.removeAll { $0 == profile.mpid }
            draft.put(destination)
        }
    }

    /// S203.
    func expire(_ command: ExpireDevice) -> Decision {
        let device = state.device(app, command.deviceId)
        let users = device.holders.compactMap { state.profile(app, $0) }
        guard !device.isUnused, device.quietSince == command.lastSeen.milliseconds,
            let period = context.app.retention.device, context.hasPassed(period, since: device.quietSince),
            users.allSatisfy({ $0.mayLoseDevice(settings) })
        else { return Decision(.noted) }
        var draft = Draft(state, context, .expire)
        // Whoever becomes known at the same moment is logged in on the device.
        draft.touch(users)
        var after = device
        after.current = nil
        draft.tell(DeviceExpired(deviceId: device.key.id, lastSeen: command.lastSeen))
        if let current = device.current {
            after.countMove(now: draft.now)
            draft.tell(
                CurrentUserErased(deviceId: device.key.id, mpid: current, cause: draft.cause, move: after.lastMove))
        }
        (after.anonymous, after.users, after.identities, after.bucket) = (nil, [], [], nil)
        draft.put(after)
        var decision = draft.decision(.noted)
        decision.changes.append(.expiredDevice)
        return decision
    }
}

extension Profile {
    /// Whether nobody is logged out by it, and nothing that is to be kept gets lost.
    fileprivate func mayLoseDevice(_ settings: SyncSettings) -> Bool {
        isErased || !isKnown(settings) && mark == nil && !isRestricted
    }
}

extension SyncStore {
    /// The rows of all apps whose days are over, a step of each walk (S206).
    func dueRetention(now: Timestamp, limit: Int, apps: AppDirectory) throws -> [DueCommand] {
        var due: [DueCommand] = []
        for app in apps.ids.compactMap({ apps[$0] }) where due.count < limit {
            if app.retention.anonymous != nil || app.retention.orphan != nil {
                due += try RetentionWalk(app.id, "profile").due(now: now, in: transaction) { after in
                    try profiles(of: app, after, now, limit)
                }
            }
            if app.retention.device != nil {
                due += try RetentionWalk(app.id, "device").due(now: now, in: transaction) { after in
                    try devices(of: app, after, now, limit)
                }
            }
        }
        return due
    }

    private func profiles(
        of app: AppSettings, _ after: String, _ now: Timestamp, _ limit: Int
    ) throws -> RetentionWalk.Step {
        let rows = try Profile.table.find(
            "app = $1 AND mpid > $2 ORDER BY mpid LIMIT $3",
            [.text(app.id.text), .integer(Int64(after) ?? .min), SQLValue(limit)], in: transaction)
        let over = rows.filter { profile in
            profile.period(app).map { profile.quietSince + $0 <= now.milliseconds } == true
        }
        let held = try held(Set(over.map(\.key)))
        return RetentionWalk.Step(
            last: rows.count < limit ? nil : rows.last.map { String($0.mpid.value) },
            found: over.filter { !held.contains($0.key) }.map { profile in
                let lastSeen = profile.quietSince
                return RetentionWalk.Found(
                    key: profile.mpid.description, end: lastSeen + (profile.period(app) ?? 0),
                    command: ExpireProfile(mpid: profile.mpid, lastSeen: Timestamp(milliseconds: lastSeen)))
            })
    }

    /// Those of them that a device or an alias holds.
    private func held(_ keys: Set<Profile.Key>) throws -> Set<Profile.Key> {
        if keys.isEmpty { return [] }
        let devices = try devices(withCurrent: keys) + devices(withAnonymous: keys)
        let aliases = try aliases(of: keys)
        return Set(
            devices.flatMap { device in device.holders.map { Profile.Key(app: device.key.app, id: $0) } }
                + aliases.flatMap { alias in
                    [alias.source, alias.destination].map { Profile.Key(app: alias.key.app, id: $0) }
                })
    }

    private func devices(
        of app: AppSettings, _ after: String, _ now: Timestamp, _ limit: Int
    ) throws -> RetentionWalk.Step {
        let period = app.retention.device ?? .max
        let rows = try DeviceRecord.table.find(
            "app = $1 AND device_id > $2 ORDER BY device_id LIMIT $3",
            [.text(app.id.text), .text(after), SQLValue(limit)], in: transaction)
        let over = rows.filter { !$0.isUnused && $0.quietSince <= now.milliseconds - period }
        let users = try profiles(
            Set(over.flatMap { device in device.holders.map { Profile.Key(app: app.id, id: $0) } }))
        let staying = Set(users.filter { !$0.mayLoseDevice(app.sync) }.map(\.mpid))
        return RetentionWalk.Step(
            last: rows.count < limit ? nil : rows.last?.key.id.text,
            found: over.filter { staying.isDisjoint(with: $0.holders) }.map { device in
                RetentionWalk.Found(
                    key: device.key.id.text, end: device.quietSince + period,
                    command: ExpireDevice(
                        deviceId: device.key.id, lastSeen: Timestamp(milliseconds: device.quietSince)))
            })
    }

    /// What holds profiles that are to go, and who they were aliased with.
    func loadExpiring(_ keys: Set<Profile.Key>, _ state: inout SyncState) throws {
        state.load(try devices(withCurrent: keys))
        state.load(try devices(withAnonymous: keys))
        state.load(try aliases(of: keys))
        state.load(try openRequests(Set(keys.map(\.app))))
        let others = keys.compactMap { state.profiles[$0] }.flatMap { profile in
            (profile.aliasedFrom + profile.aliasedInto).map { Profile.Key(app: profile.app, id: $0) }
        }
        state.load(try profiles(Set(others).subtracting(state.profiles.keys)))
    }
}
