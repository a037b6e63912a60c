// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
import Crypto
import Runtime
public import Storage
import WireJSON

/// The sync service's tables. Runs inside the batch's transaction; every call is one round trip, whatever the size of
/// the batch.
public struct SyncStore {
    public static let migrations = [
        Migration(
            number: 100, name: "profiles, identities, devices and aliases",
            statements: [
                """
                CREATE TABLE profiles (
                  app TEXT NOT NULL, mpid BIGINT NOT NULL, identities TEXT NOT NULL, first_seen BIGINT NOT NULL,
                  last_seen BIGINT NOT NULL, is_orphaned BIGINT NOT NULL, name TEXT, user_id TEXT,
                  aliased_since BIGINT, alias_windows TEXT NOT NULL, alias_sources BIGINT NOT NULL,
                  PRIMARY KEY (app, mpid))
                """,
                "CREATE INDEX profiles_of_user ON profiles (app, user_id) WHERE user_id IS NOT NULL",
                """
                CREATE TABLE identities (
                  app TEXT NOT NULL, type TEXT NOT NULL, value_key BYTEA NOT NULL, value TEXT NOT NULL,
                  holders TEXT NOT NULL, tokens BIGINT, tokens_at BIGINT, PRIMARY KEY (app, type, value_key))
                """,
                """
                CREATE TABLE devices (
                  app TEXT NOT NULL, device_id TEXT NOT NULL, current_mpid BIGINT, anonymous_mpid BIGINT,
                  users TEXT NOT NULL, tokens BIGINT, tokens_at BIGINT, PRIMARY KEY (app, device_id))
                """,
                """
                CREATE TABLE aliases (
                  app TEXT NOT NULL, alias_id TEXT NOT NULL, source_mpid BIGINT NOT NULL,
                  destination_mpid BIGINT NOT NULL, start_at BIGINT NOT NULL, end_at BIGINT NOT NULL,
                  reach TEXT NOT NULL, stamp TEXT, due_at BIGINT NOT NULL, ask_at BIGINT NOT NULL,
                  PRIMARY KEY (app, alias_id))
                """,
                "CREATE INDEX aliases_to_ask ON aliases (ask_at)",
            ])
    ]

    let transaction: any SQLTransaction

    // MARK: Reading

    func profiles(_ keys: Set<Profile.Key>) throws -> [Profile] {
        try transaction.queryEach(
            """
            SELECT app, mpid, identities, first_seen, last_seen, is_orphaned, name, user_id, aliased_since,
            alias_windows, alias_sources FROM profiles WHERE app = $1 AND mpid = $2
            """, keys.sorted().map { [.text($0.app.text), .integer($0.mpid.value)] }
        ).joined().map { row in
            var profile = Profile(app: try row.text(0), mpid: try Self.mpid(row.integer(1)), seen: try row.integer(3))
            profile.identities = try WireJSONDecoder().decode([Identity].self, from: Array(row.text(2).utf8))
            profile.lastSeen = try row.integer(4)
            profile.isOrphaned = try row.integer(5) != 0
            profile.name = try row.optionalText(6)
            profile.userID = try row.optionalText(7)
            profile.aliasedSince = try row.optionalInteger(8)
            profile.aliasWindows = try Self.numbers(row.text(9), 2).map { $0[0]...max($0[0], $0[1]) }
            profile.aliasSources = Int(try row.integer(10))
            return profile
        }
    }

    func identities(_ keys: Set<IdentityEntry.Key>) throws -> [IdentityEntry] {
        let sorted = keys.sorted()
        let answers = try transaction.queryEach(
            "SELECT holders, tokens, tokens_at FROM identities WHERE app = $1 AND type = $2 AND value_key = $3",
            sorted.map { [.text($0.app.text), .text($0.type.rawValue), Self.digest($0.value)] })
        var entries: [IdentityEntry] = []
        for (key, rows) in zip(sorted, answers) {
            guard let row = rows.first else { continue }
            entries.append(
                IdentityEntry(
                    key: key, holders: try Self.numbers(row.text(0), 1).map { try Self.mpid($0[0]) },
                    bucket: try Self.bucket(row.optionalInteger(1), row.optionalInteger(2))))
        }
        return entries
    }

    func devices(_ keys: Set<DeviceRecord.Key>) throws -> [DeviceRecord] {
        let sorted = keys.sorted()
        let answers = try transaction.queryEach(
            """
            SELECT current_mpid, anonymous_mpid, users, tokens, tokens_at FROM devices
            WHERE app = $1 AND device_id = $2
            """, sorted.map { [.text($0.app.text), .text($0.id.text)] })
        var devices: [DeviceRecord] = []
        for (key, rows) in zip(sorted, answers) {
            guard let row = rows.first else { continue }
            var device = DeviceRecord(key: key)
            device.current = try row.optionalInteger(0).map(Self.mpid)
            device.anonymous = try row.optionalInteger(1).map(Self.mpid)
            device.users = try Self.numbers(row.text(2), 3).map {
                DeviceRecord.SeenUser(mpid: try Self.mpid($0[0]), firstSeen: $0[1], lastSeen: $0[2])
            }
            device.bucket = try Self.bucket(row.optionalInteger(3), row.optionalInteger(4))
            devices.append(device)
        }
        return devices
    }

    private static let aliasColumns =
        "app, alias_id, source_mpid, destination_mpid, start_at, end_at, reach, stamp, due_at"

    func aliases(_ keys: Set<AliasRecord.Key>) throws -> [AliasRecord] {
        try transaction.queryEach(
            "SELECT \(Self.aliasColumns) FROM aliases WHERE app = $1 AND alias_id = $2",
            keys.sorted().map { [.text($0.app.text), .text($0.id.text)] }
        ).joined().map(Self.alias)
    }

    /// Aliases whose time has come. Each comes again after 30 seconds at the earliest, and after longer and longer while it
    /// is not decided.
    func dueAliases(now: Int64, limit: Int) throws -> [AliasRecord] {
        let due = try transaction.query(
            "SELECT \(Self.aliasColumns) FROM aliases WHERE ask_at <= $1 ORDER BY ask_at, app, alias_id LIMIT $2",
            [.integer(now), SQLValue(limit)]
        ).map(Self.alias)
        try transaction.executeEach(
            "UPDATE aliases SET ask_at = $3 WHERE app = $1 AND alias_id = $2",
            due.map { alias in
                let pause = DueCommand.pause(overdue: now - alias.dueAt)
                return [.text(alias.key.app.text), .text(alias.key.id.text), .integer(now + pause)]
            })
        return due
    }

    private static func alias(_ row: SQLRow) throws -> AliasRecord {
        guard let reach = AliasUsers.Reach(rawValue: try row.text(6)) else {
            throw StorageError(kind: .invalid, message: "aliases: a reach of no known value")
        }
        let start = try row.integer(4)
        return AliasRecord(
            key: AliasRecord.Key(app: try row.text(0), id: try row.text(1)), source: try mpid(row.integer(2)),
            destination: try mpid(row.integer(3)), window: start...max(start, try row.integer(5)), reach: reach,
            stamp: try row.optionalText(7), dueAt: try row.integer(8))
    }

    // MARK: Columns

    static func mpid(_ value: Int64) throws -> MPID {
        guard let mpid = MPID(value) else { throw StorageError(kind: .invalid, message: "an MPID is 0") }
        return mpid
    }

    private static func bucket(_ thousandths: Int64?, _ at: Int64?) -> TokenBucket? {
        guard let thousandths, let at else { return nil }
        return TokenBucket(thousandths: thousandths, at: at)
    }

    /// Lists of numbers as `1:2:3,4:5:6`: short, and readable in a database's own shell.
    static func numbers(_ text: String, _ count: Int) throws -> [[Int64]] {
        try text.split(separator: ",").map { group in
            let numbers = group.split(separator: ":").compactMap { Int64($0) }
            guard numbers.count == count else {
                throw StorageError(kind: .invalid, message: "a list of numbers is damaged")
            }
            return numbers
        }
    }

    /// What a value is found by: its SHA-256. The value itself may be longer than an index entry can be.
    static func digest(_ value: ExactText) -> SQLValue {
        .blob(Array(SHA256.hash(data: Array(value.text.utf8))))
    }
}
