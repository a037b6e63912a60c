// SPDX-License-Identifier: Apache-2.0

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
            ]),
        Migration(
            number: 101, name: "erasure, and no value without a holder",
            statements: [
                "ALTER TABLE profiles ADD COLUMN is_erased BIGINT NOT NULL DEFAULT 0",
                "ALTER TABLE identities ADD COLUMN is_told BIGINT NOT NULL DEFAULT 0",
                // What was removed stood here in clear.
                "DELETE FROM identities WHERE holders = ''",
                "CREATE INDEX devices_of_user ON devices (app, current_mpid) WHERE current_mpid IS NOT NULL",
                "CREATE INDEX devices_of_anonymous ON devices (app, anonymous_mpid) WHERE anonymous_mpid IS NOT NULL",
                "CREATE INDEX devices_unused ON devices (tokens_at) WHERE users = ''",
                "CREATE INDEX aliases_by_source ON aliases (app, source_mpid)",
                "CREATE INDEX aliases_by_destination ON aliases (app, destination_mpid)",
                "CREATE TABLE forgotten_users (app TEXT NOT NULL, user_key BYTEA NOT NULL, PRIMARY KEY (app, user_key))",
                """
                CREATE TABLE erasures (
                  app TEXT NOT NULL, source TEXT NOT NULL, command_id TEXT NOT NULL, mpids TEXT NOT NULL,
                  waiting TEXT NOT NULL, has_failed BIGINT NOT NULL, PRIMARY KEY (app, source, command_id))
                """,
                """
                CREATE TABLE erasure_forwards (
                  app TEXT NOT NULL, forward_id TEXT NOT NULL, source TEXT NOT NULL, command_id TEXT NOT NULL,
                  PRIMARY KEY (app, forward_id))
                """,
            ]),
    ]

    let transaction: any SQLTransaction

    // MARK: Reading

    private static let profileColumns =
        "app, mpid, identities, first_seen, last_seen, is_orphaned, name, user_id, aliased_since, alias_windows, "
        + "alias_sources, is_erased"

    func profiles(_ keys: Set<Profile.Key>) throws -> [Profile] {
        try transaction.queryEach(
            "SELECT \(Self.profileColumns) FROM profiles WHERE app = $1 AND mpid = $2",
            keys.sorted().map { [.text($0.app.text), .integer($0.mpid.value)] }
        ).joined().map(Self.profile)
    }

    /// The profiles that a link marked with one of these users.
    func profiles(of users: Set<ForgottenUser>) throws -> [Profile] {
        guard !users.isEmpty else { return [] }
        return try transaction.queryEach(
            "SELECT \(Self.profileColumns) FROM profiles WHERE app = $1 AND user_id = $2",
            users.sorted().map { [.text($0.app.text), .text($0.userID.text)] }
        ).joined().map(Self.profile)
    }

    private static func profile(_ row: SQLRow) throws -> Profile {
        var profile = Profile(app: try row.text(0), mpid: try mpid(row.integer(1)), seen: try row.integer(3))
        profile.identities = try WireJSONDecoder().decode([Identity].self, from: Array(row.text(2).utf8))
        profile.lastSeen = try row.integer(4)
        profile.isOrphaned = try row.integer(5) != 0
        profile.name = try row.optionalText(6)
        profile.userID = try row.optionalText(7)
        profile.aliasedSince = try row.optionalInteger(8)
        profile.aliasWindows = try numbers(row.text(9), 2).map { $0[0]...max($0[0], $0[1]) }
        profile.aliasSources = Int(try row.integer(10))
        profile.isErased = try row.integer(11) != 0
        return profile
    }

    func identities(_ keys: Set<IdentityEntry.Key>) throws -> [IdentityEntry] {
        let sorted = keys.sorted()
        let answers = try transaction.queryEach(
            "SELECT holders, tokens, tokens_at, is_told FROM identities WHERE app = $1 AND type = $2 AND value_key = $3",
            sorted.map { [.text($0.app.text), .text($0.type.rawValue), Self.digest($0.value)] })
        var entries: [IdentityEntry] = []
        for (key, rows) in zip(sorted, answers) {
            guard let row = rows.first else { continue }
            entries.append(
                IdentityEntry(
                    key: key, holders: try Self.numbers(row.text(0), 1).map { try Self.mpid($0[0]) },
                    bucket: try Self.bucket(row.optionalInteger(1), row.optionalInteger(2)),
                    isTold: try row.integer(3) != 0))
        }
        return entries
    }

    private static let deviceColumns = "app, device_id, current_mpid, anonymous_mpid, users, tokens, tokens_at"

    func devices(_ keys: Set<DeviceRecord.Key>) throws -> [DeviceRecord] {
        try transaction.queryEach(
            "SELECT \(Self.deviceColumns) FROM devices WHERE app = $1 AND device_id = $2",
            keys.sorted().map { [.text($0.app.text), .text($0.id.text)] }
        ).joined().map(Self.device)
    }

    /// The devices whose current or anonymous user is one of these.
    func devices(of users: Set<Profile.Key>) throws -> [DeviceRecord] {
        let parameters: [[SQLValue]] = users.sorted().map { [.text($0.app.text), .integer($0.mpid.value)] }
        var devices: [DeviceRecord.Key: DeviceRecord] = [:]
        for column in ["current_mpid", "anonymous_mpid"] {
            let rows = try transaction.queryEach(
                "SELECT \(Self.deviceColumns) FROM devices WHERE app = $1 AND \(column) = $2", parameters)
            for device in try rows.joined().map(Self.device) { devices[device.key] = device }
        }
        return Array(devices.values)
    }

    private static func device(_ row: SQLRow) throws -> DeviceRecord {
        var device = DeviceRecord(key: DeviceRecord.Key(app: try row.text(0), id: try row.text(1)))
        device.current = try row.optionalInteger(2).map(mpid)
        device.anonymous = try row.optionalInteger(3).map(mpid)
        device.users = try numbers(row.text(4), 3).map {
            DeviceRecord.SeenUser(mpid: try mpid($0[0]), firstSeen: $0[1], lastSeen: $0[2])
        }
        device.bucket = try bucket(row.optionalInteger(5), row.optionalInteger(6))
        return device
    }

    /// Forgets devices on which nobody was seen, that asked something before `horizon` and not since.
    func pruneDevices(before horizon: Int64, limit: Int) throws {
        try transaction.execute(
            """
            DELETE FROM devices WHERE (app, device_id) IN (
                SELECT app, device_id FROM devices WHERE users = '' AND tokens_at < $1 ORDER BY tokens_at LIMIT $2)
            """, [.integer(horizon), SQLValue(limit)])
    }

    private static let aliasColumns =
        "app, alias_id, source_mpid, destination_mpid, start_at, end_at, reach, stamp, due_at"

    func aliases(_ keys: Set<AliasRecord.Key>) throws -> [AliasRecord] {
        try transaction.queryEach(
            "SELECT \(Self.aliasColumns) FROM aliases WHERE app = $1 AND alias_id = $2",
            keys.sorted().map { [.text($0.app.text), .text($0.id.text)] }
        ).joined().map(Self.alias)
    }

    /// The aliases that wait for their time with one of these as source or destination.
    func aliases(of profiles: Set<Profile.Key>) throws -> [AliasRecord] {
        let parameters: [[SQLValue]] = profiles.sorted().map { [.text($0.app.text), .integer($0.mpid.value)] }
        return try ["source_mpid", "destination_mpid"].flatMap { column in
            try transaction.queryEach(
                "SELECT \(Self.aliasColumns) FROM aliases WHERE app = $1 AND \(column) = $2", parameters
            ).joined().map(Self.alias)
        }
    }

    // MARK: Erasure

    /// No round trip when nothing is asked, as with most batches.
    func forgotten(among users: Set<ForgottenUser>) throws -> Set<ForgottenUser> {
        guard !users.isEmpty else { return [] }
        let sorted = users.sorted()
        let answers = try transaction.queryEach(
            "SELECT 1 FROM forgotten_users WHERE app = $1 AND user_key = $2",
            sorted.map { [.text($0.app.text), Self.digest($0.userID)] })
        return Set(zip(sorted, answers).filter { !$0.1.isEmpty }.map(\.0))
    }

    func erasures(waitingFor forwards: Set<ForwardKey>) throws -> [Erasure] {
        guard !forwards.isEmpty else { return [] }
        let rows = try transaction.queryEach(
            """
            SELECT erasures.app, erasures.source, erasures.command_id, mpids, waiting, has_failed
            FROM erasure_forwards JOIN erasures ON erasures.app = erasure_forwards.app
            AND erasures.source = erasure_forwards.source AND erasures.command_id = erasure_forwards.command_id
            WHERE erasure_forwards.app = $1 AND forward_id = $2
            """, forwards.sorted().map { [.text($0.app.text), .text($0.id.text)] })
        return try rows.joined().map { row in
            var erasure = Erasure(
                command: CommandKey(app: try row.text(0), source: try row.text(1), id: try row.text(2)),
                mpids: try Self.numbers(row.text(3), 1).map { try Self.mpid($0[0]) },
                waiting: try row.text(4).split(separator: ",").map(String.init))
            erasure.hasFailed = try row.integer(5) != 0
            return erasure
        }
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
