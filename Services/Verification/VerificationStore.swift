// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
public import Storage

/// The verification service's tables. Runs inside the batch's transaction; every call is one round trip, whatever the
/// size of the batch.
public struct VerificationStore {
    public static let migrations = [
        Migration(
            number: 100, name: "sessions",
            statements: [
                """
                CREATE TABLE sessions (
                  app TEXT NOT NULL, device_id TEXT NOT NULL, state TEXT NOT NULL, may_file_issues BIGINT NOT NULL,
                  mpid BIGINT, number BIGINT NOT NULL, shown BIGINT NOT NULL, has_login BIGINT NOT NULL,
                  PRIMARY KEY (app, device_id))
                """,
                """
                CREATE TABLE login_sagas (
                  forward_id TEXT NOT NULL PRIMARY KEY, app TEXT NOT NULL, source TEXT NOT NULL,
                  command_id TEXT NOT NULL, device_id TEXT NOT NULL, kind TEXT NOT NULL, number BIGINT NOT NULL,
                  state TEXT NOT NULL, may_file_issues BIGINT NOT NULL, key_id TEXT, anonymous_reason TEXT)
                """,
                """
                CREATE TABLE verification_counts (
                  app TEXT NOT NULL, method TEXT NOT NULL, reason TEXT NOT NULL, key_id TEXT NOT NULL,
                  shard BIGINT NOT NULL, count BIGINT NOT NULL, last_used BIGINT NOT NULL,
                  PRIMARY KEY (app, method, reason, key_id, shard))
                """,
            ]),
        Migration(
            number: 101, name: "what sessions rest on, and erased people",
            statements: [
                // `basis`: see `Standing`. NULL where a session has nothing that could be taken away.
                "ALTER TABLE sessions ADD COLUMN basis BIGINT",
                "ALTER TABLE sessions ADD COLUMN key_id TEXT",
                "ALTER TABLE sessions ADD COLUMN since BIGINT",
                "ALTER TABLE sessions ADD COLUMN moved BIGINT NOT NULL DEFAULT 0",
                // When the service last told itself to look at it.
                "ALTER TABLE sessions ADD COLUMN asked_at BIGINT NOT NULL DEFAULT 0",
                // Of sessions from before nobody knows the key; they are as old as can be.
                "UPDATE sessions SET moved = shown",
                "UPDATE sessions SET basis = 0, since = 0 WHERE state = 'verified'",
                "UPDATE sessions SET basis = 1, since = 0 WHERE state = 'unchecked'",
                "UPDATE sessions SET basis = 2, since = 0 WHERE state = 'unverified' AND may_file_issues = 1",
                "CREATE INDEX sessions_by_basis ON sessions (app, basis)",
                "CREATE INDEX sessions_by_age ON sessions (app, since)",
                "CREATE INDEX sessions_of_user ON sessions (app, mpid)",
                "ALTER TABLE login_sagas ADD COLUMN basis BIGINT",
                "ALTER TABLE login_sagas ADD COLUMN since BIGINT",
                "ALTER TABLE login_sagas ADD COLUMN user_digest BYTEA",
                "ALTER TABLE login_sagas ADD COLUMN email_digest BYTEA",
                "UPDATE login_sagas SET basis = 0, since = 0 WHERE kind = 'login' AND state = 'verified'",
                "UPDATE login_sagas SET basis = 1, since = 0 WHERE kind = 'login' AND state = 'unchecked'",
                "UPDATE login_sagas SET basis = 2, since = 0 WHERE kind = 'login' AND state = 'unverified'",
                "CREATE INDEX login_sagas_of_device ON login_sagas (app, device_id)",
                "CREATE INDEX login_sagas_of_user ON login_sagas (app, user_digest)",
                "CREATE INDEX login_sagas_of_email ON login_sagas (app, email_digest)",
                // Everybody who was on a device, and whether they were erased since.
                """
                CREATE TABLE people (
                  app TEXT NOT NULL, mpid BIGINT NOT NULL, is_erased BIGINT NOT NULL, PRIMARY KEY (app, mpid))
                """,
            ]),
    ]

    let transaction: any SQLTransaction

    // MARK: Reading

    private static let sessionColumns =
        "app, device_id, state, may_file_issues, mpid, number, shown, moved, has_login, basis, key_id, since"

    func sessions(_ keys: Set<SessionState.DeviceKey>) throws -> [Session] {
        try transaction.queryEach(
            "SELECT \(Self.sessionColumns) FROM sessions WHERE app = $1 AND device_id = $2",
            keys.sorted().map { [.text($0.app.text), .text($0.deviceID.text)] }
        ).joined().map(Self.session)
    }

    func sessions(of mpids: [MPID], app: ExactText) throws -> [Session] {
        try transaction.queryEach(
            "SELECT \(Self.sessionColumns) FROM sessions WHERE app = $1 AND mpid = $2",
            mpids.map { [.text(app.text), .integer($0.value)] }
        ).joined().map(Self.session)
    }

    private static func session(_ row: SQLRow) throws -> Session {
        Session(
            app: try row.text(0), deviceID: try row.text(1), state: try word(row.text(2)),
            mayFileIssues: try row.integer(3) != 0, mpid: try row.optionalInteger(4).flatMap { MPID($0) },
            standing: try standing(row, basis: 9, keyID: 10, since: 11), number: try row.integer(5),
            shown: try row.integer(6), moved: try row.integer(7), hasLogin: try row.integer(8) != 0)
    }

    private static func standing(_ row: SQLRow, basis: Int, keyID: Int, since: Int) throws -> Standing? {
        guard let number = try row.optionalInteger(basis) else { return nil }
        return Standing(
            Standing.Basis(number: number), keyID: try row.optionalText(keyID),
            since: try row.optionalInteger(since).map { Timestamp(milliseconds: $0) })
    }

    private static let sagaColumns = """
        forward_id, app, source, command_id, device_id, kind, number, state, may_file_issues, key_id, anonymous_reason,
        basis, since, user_digest, email_digest
        """

    func sagas(forwardIDs: Set<ExactText>) throws -> [LoginSaga] {
        try transaction.queryEach(
            "SELECT \(Self.sagaColumns) FROM login_sagas WHERE forward_id = $1",
            forwardIDs.sorted().map { [.text($0.text)] }
        ).joined().map(Self.saga)
    }

    func sagas(of devices: [SessionState.DeviceKey]) throws -> [LoginSaga] {
        try transaction.queryEach(
            "SELECT \(Self.sagaColumns) FROM login_sagas WHERE app = $1 AND device_id = $2",
            devices.sorted().map { [.text($0.app.text), .text($0.deviceID.text)] }
        ).joined().map(Self.saga)
    }

    func sagas(userIDs: [PersonDigest], emails: [PersonDigest], app: ExactText) throws -> [LoginSaga] {
        let byUser = try transaction.queryEach(
            "SELECT \(Self.sagaColumns) FROM login_sagas WHERE app = $1 AND user_digest = $2",
            userIDs.map { [.text(app.text), .blob($0.bytes)] })
        let byEmail = try transaction.queryEach(
            "SELECT \(Self.sagaColumns) FROM login_sagas WHERE app = $1 AND email_digest = $2",
            emails.map { [.text(app.text), .blob($0.bytes)] })
        return try (byUser + byEmail).joined().map(Self.saga)
    }

    private static func saga(_ row: SQLRow) throws -> LoginSaga {
        LoginSaga(
            forwardID: try row.text(0),
            command: CommandKey(app: try row.text(1), source: try row.text(2), id: try row.text(3)),
            deviceID: try row.text(4), kind: try word(row.text(5)), number: try row.integer(6),
            result: VerificationResult(
                state: try word(row.text(7)), mayFileIssues: try row.integer(8) != 0, keyId: try row.optionalText(9),
                anonymousReason: try row.optionalText(10).map { try word($0) }),
            standing: try standing(row, basis: 11, keyID: 9, since: 12),
            userID: try row.optionalBlob(13).map { PersonDigest(bytes: $0) },
            email: try row.optionalBlob(14).map { PersonDigest(bytes: $0) })
    }

    func erased(among people: Set<SessionState.PersonKey>) throws -> [SessionState.PersonKey] {
        let asked = people.sorted()
        let rows = try transaction.queryEach(
            "SELECT 1 FROM people WHERE app = $1 AND mpid = $2 AND is_erased = 1",
            asked.map { [.text($0.app.text), .integer($0.mpid.value)] })
        return zip(asked, rows).filter { !$0.1.isEmpty }.map(\.0)
    }

    /// Sessions that stand on something else than what the settings allow now, or are too old, and that this was not
    /// asked of lately. They are noted as asked.
    func toReview(
        _ apps: [(app: ExactText, settings: VerificationSettings)], now: Timestamp, askedBefore: Int64, limit: Int
    ) throws -> [SessionState.DeviceKey] {
        var gaps: [[SQLValue]] = []
        var ages: [[SQLValue]] = []
        for (app, settings) in apps {
            // Those that are gone lie between those that are not: each gap is one look at the index.
            var below: Int64 = -1
            for basis in settings.standingBases(at: now) + [Int64.max] {
                gaps.append(
                    [.text(app.text), .integer(below), .integer(basis), .integer(askedBefore), SQLValue(limit)])
                below = basis
            }
            if let lifetime = settings.sessionLifetime {
                let oldest = now.milliseconds - lifetime
                ages.append([.text(app.text), .integer(oldest), .integer(askedBefore), SQLValue(limit)])
            }
        }
        let gone = try transaction.queryEach(
            """
            SELECT app, device_id FROM sessions WHERE app = $1 AND basis > $2 AND basis < $3 AND asked_at < $4
            ORDER BY basis LIMIT $5
            """, gaps)
        let aged = try transaction.queryEach(
            """
            SELECT app, device_id FROM sessions WHERE app = $1 AND since <= $2 AND asked_at < $3
            ORDER BY since LIMIT $4
            """, ages)
        let found = Set(
            try (gone + aged).joined().map { row in
                SessionState.DeviceKey(app: try row.text(0), deviceID: try row.text(1))
            }
        ).sorted().prefix(limit)
        try transaction.executeEach(
            "UPDATE sessions SET asked_at = $3 WHERE app = $1 AND device_id = $2",
            found.map { [.text($0.app.text), .text($0.deviceID.text), .integer(now.milliseconds)] })
        return Array(found)
    }

    func counts(app: ExactText) throws -> [Tally: Count] {
        let rows = try transaction.query(
            "SELECT method, reason, key_id, count, last_used FROM verification_counts WHERE app = $1",
            [.text(app.text)])
        var counts: [Tally: Count] = [:]
        for row in rows {
            let (reason, keyID) = (try row.text(1), try row.text(2))
            let tally = Tally(
                method: try Self.word(row.text(0)), keyID: keyID.isEmpty ? nil : keyID,
                reason: reason.isEmpty ? nil : try Self.word(reason))
            let count = Count(
                count: try row.integer(3), lastUsed: Timestamp(milliseconds: try row.integer(4)))
            counts.merge([tally: count], uniquingKeysWith: +)
        }
        return counts
    }

    private static func word<Word: RawRepresentable<String>>(_ text: String) throws -> Word {
        guard let word = Word(rawValue: text) else {
            throw StorageError(kind: .invalid, message: "\(Word.self): a value that is not known")
        }
        return word
    }
}
