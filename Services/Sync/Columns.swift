// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime
import Storage
import WireJSON

extension SyncStore {
    /// Rows go in sorted by key: neighbours share pages, and two replicas take their row locks in one order.
    func save(_ state: SyncState) throws {
        try saveProfiles(state)
        try saveIdentities(state)
        try saveDevices(state)
        try saveAliases(state)
        try saveErasures(state)
    }

    /// A new profile is inserted plainly: should another command have made the same MPID meanwhile, this is a conflict
    /// and decided again, and no profile is ever overwritten.
    private func saveProfiles(_ state: SyncState) throws {
        let changed = state.changedProfiles.sorted()
        try transaction.executeEach(
            """
            INSERT INTO profiles (app, mpid, identities, first_seen, last_seen, is_orphaned, name, user_id,
            aliased_since, alias_windows, alias_sources, is_erased)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
            """,
            try changed.filter { !state.storedProfiles.contains($0) }.compactMap { state.profiles[$0] }.map(Self.row))
        try transaction.executeEach(
            """
            UPDATE profiles SET identities = $3, first_seen = $4, last_seen = $5, is_orphaned = $6, name = $7,
            user_id = $8, aliased_since = $9, alias_windows = $10, alias_sources = $11, is_erased = $12 WHERE app = $1 AND mpid = $2
            """,
            try changed.filter { state.storedProfiles.contains($0) }.compactMap { state.profiles[$0] }.map(Self.row))
    }

    private static func row(_ profile: Profile) throws -> [SQLValue] {
        [
            .text(profile.app), .integer(profile.mpid.value),
            .text(String(decoding: try WireJSONEncoder().encode(profile.identities), as: UTF8.self)),
            .integer(profile.firstSeen), .integer(profile.lastSeen), .integer(profile.isOrphaned ? 1 : 0),
            SQLValue(profile.name), SQLValue(profile.userID), SQLValue(profile.aliasedSince),
            .text(profile.aliasWindows.map { "\($0.lowerBound):\($0.upperBound)" }.joined(separator: ",")),
            SQLValue(profile.aliasSources), .integer(profile.isErased ? 1 : 0),
        ]
    }

    /// A value without holders leaves no row, so that nothing tells of it. A row may therefore go at any time: one that
    /// was read is updated and one that was not there is inserted, plainly, and whatever changed meanwhile is a conflict.
    private func saveIdentities(_ state: SyncState) throws {
        var entries = state.changedIdentities.compactMap { state.identities[$0] }
        var stored = state.storedIdentities
        // Values that somebody lost, or that are only to be written: their rows are read only now.
        let unread = state.releases.keys.filter { state.identities[$0] == nil }
        if !unread.isEmpty {
            for var entry in try identities(Set(unread)) {
                entry.holders.removeAll { state.releases[entry.key]?.contains($0) == true }
                entries.append(entry)
                stored.insert(entry.key)
            }
        }
        entries.sort { $0.key < $1.key }
        try transaction.executeEach(
            """
            INSERT INTO identities (app, type, value_key, value, holders, tokens, tokens_at, is_told)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            """, entries.filter { !stored.contains($0.key) && !$0.holders.isEmpty }.map(Self.row))
        // Those that go are updated too: row locks are taken in one order.
        let updated = entries.filter { stored.contains($0.key) }
        try transaction.executeEach(
            """
            UPDATE identities SET value = $4, holders = $5, tokens = $6, tokens_at = $7, is_told = $8
            WHERE app = $1 AND type = $2 AND value_key = $3
            """, updated.map(Self.row))
        try transaction.executeEach(
            "DELETE FROM identities WHERE app = $1 AND type = $2 AND value_key = $3",
            updated.filter(\.holders.isEmpty).map { Array(Self.row($0).prefix(3)) })
    }

    private static func row(_ entry: IdentityEntry) -> [SQLValue] {
        [
            .text(entry.key.app.text), .text(entry.key.type.rawValue), digest(entry.key.value),
            .text(entry.key.value.text), .text(entry.holders.map(\.description).joined(separator: ",")),
            SQLValue(entry.bucket?.thousandths), SQLValue(entry.bucket?.at), .integer(entry.isTold ? 1 : 0),
        ]
    }

    private func saveDevices(_ state: SyncState) throws {
        let changed = state.changedDevices.sorted().compactMap { state.devices[$0] }
        try transaction.executeEach(
            """
            INSERT INTO devices (app, device_id, current_mpid, anonymous_mpid, users, tokens, tokens_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7)
            ON CONFLICT (app, device_id) DO UPDATE SET current_mpid = excluded.current_mpid,
            anonymous_mpid = excluded.anonymous_mpid, users = excluded.users, tokens = excluded.tokens,
            tokens_at = excluded.tokens_at
            """,
            changed.filter { !$0.isUnused || $0.bucket != nil }.map { device in
                [
                    .text(device.key.app.text), .text(device.key.id.text), SQLValue(device.current?.value),
                    SQLValue(device.anonymous?.value),
                    .text(
                        device.users.map { "\($0.mpid):\($0.firstSeen):\($0.lastSeen)" }.joined(separator: ",")),
                    SQLValue(device.bucket?.thousandths), SQLValue(device.bucket?.at),
                ]
            })
        try transaction.executeEach(
            "DELETE FROM devices WHERE app = $1 AND device_id = $2",
            changed.filter { $0.isUnused && $0.bucket == nil }.map { [.text($0.key.app.text), .text($0.key.id.text)] })
    }

    private func saveErasures(_ state: SyncState) throws {
        try transaction.executeEach(
            "INSERT INTO forgotten_users (app, user_key) VALUES ($1, $2) ON CONFLICT (app, user_key) DO NOTHING",
            state.newlyForgotten.sorted().map { [.text($0.app.text), Self.digest($0.userID)] })
        guard !state.changedErasures.isEmpty else { return }
        let changed = state.changedErasures.compactMap { state.erasures[$0] }
        try transaction.executeEach(
            """
            INSERT INTO erasures (app, source, command_id, mpids, waiting, has_failed) VALUES ($1, $2, $3, $4, $5, $6)
            ON CONFLICT (app, source, command_id) DO UPDATE SET waiting = excluded.waiting,
            has_failed = excluded.has_failed
            """,
            changed.map { erasure in
                Self.key(erasure.command) + [
                    .text(erasure.mpids.map(\.description).joined(separator: ",")),
                    .text(erasure.waiting.joined(separator: ",")), .integer(erasure.hasFailed ? 1 : 0),
                ]
            })
        try transaction.executeEach(
            """
            INSERT INTO erasure_forwards (app, source, command_id, forward_id) VALUES ($1, $2, $3, $4)
            ON CONFLICT (app, forward_id) DO NOTHING
            """, changed.flatMap { erasure in erasure.waiting.map { Self.key(erasure.command) + [.text($0)] } })
        let done = state.changedErasures.filter { state.erasures[$0] == nil }
        for table in ["erasures", "erasure_forwards"] {
            try transaction.executeEach(
                "DELETE FROM \(table) WHERE app = $1 AND source = $2 AND command_id = $3", done.map(Self.key))
        }
    }

    private static func key(_ command: CommandKey) -> [SQLValue] {
        [.text(command.app), .text(command.source), .text(command.id)]
    }

    private func saveAliases(_ state: SyncState) throws {
        let changed = state.changedAliases.sorted()
        try transaction.executeEach(
            """
            INSERT INTO aliases (app, alias_id, source_mpid, destination_mpid, start_at, end_at, reach, stamp, due_at,
            ask_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)
            """,
            changed.compactMap { state.aliases[$0] }.map { alias in
                [
                    .text(alias.key.app.text), .text(alias.key.id.text), .integer(alias.source.value),
                    .integer(alias.destination.value), .integer(alias.window.lowerBound),
                    .integer(alias.window.upperBound), .text(alias.reach.rawValue), SQLValue(alias.stamp),
                    .integer(alias.dueAt),
                ]
            })
        try transaction.executeEach(
            "DELETE FROM aliases WHERE app = $1 AND alias_id = $2",
            changed.filter { state.aliases[$0] == nil }.map { [.text($0.app.text), .text($0.id.text)] })
    }
}
