// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Runtime
public import Storage
import WireJSON

/// The user service's tables. Runs inside the batch's transaction; every call is one round trip, whatever the size of
/// the batch.
public struct UserStore {
    public static let migrations = [
        Migration(
            number: 100, name: "installations, codes and users",
            statements: [
                // `record` is the whole installation; the other columns are what it is looked up by.
                """
                CREATE TABLE installations (
                  app TEXT NOT NULL, install_id TEXT NOT NULL, phase TEXT NOT NULL, user_id TEXT, forward_id TEXT,
                  due_at BIGINT, record TEXT NOT NULL, PRIMARY KEY (app, install_id))
                """,
                "CREATE INDEX installations_of_user ON installations (user_id)",
                "CREATE INDEX installations_of_forward ON installations (forward_id)",
                "CREATE INDEX installations_due ON installations (due_at)",
                """
                CREATE TABLE auth_codes (
                  digest BYTEA NOT NULL PRIMARY KEY, app TEXT NOT NULL, external_id TEXT NOT NULL,
                  external_key BYTEA NOT NULL, expires_at BIGINT NOT NULL, use_kind TEXT NOT NULL, install_id TEXT)
                """,
                "CREATE INDEX auth_codes_of_external_id ON auth_codes (app, external_key)",
                "CREATE INDEX auth_codes_expiring ON auth_codes (expires_at)",
                "CREATE TABLE users (user_id TEXT NOT NULL PRIMARY KEY, is_erased BIGINT NOT NULL)",
            ])
    ]

    let transaction: any SQLTransaction

    // MARK: Reading

    func installs(_ keys: Set<InstallKey>) throws -> [Installation] {
        try transaction.queryEach(
            "SELECT record FROM installations WHERE app = $1 AND install_id = $2",
            keys.sorted().map { [.text($0.app.text), .text($0.id.text)] }
        ).joined().map(Self.install)
    }

    func installs(awaiting forwards: Set<ExactText>) throws -> [Installation] {
        try transaction.queryEach(
            "SELECT record FROM installations WHERE forward_id = $1", forwards.sorted().map { [.text($0.text)] }
        ).joined().map(Self.install)
    }

    func installs(of userIDs: Set<ExactText>) throws -> [Installation] {
        try transaction.queryEach(
            "SELECT record FROM installations WHERE user_id = $1", userIDs.sorted().map { [.text($0.text)] }
        ).joined().map(Self.install)
    }

    private static let codeColumns = "digest, app, external_id, expires_at, use_kind, install_id"

    func codes(_ digests: Set<CodeDigest>) throws -> [AuthCode] {
        try transaction.queryEach(
            "SELECT \(Self.codeColumns) FROM auth_codes WHERE digest = $1", digests.map { [.blob($0.bytes)] }
        ).joined().map(Self.code)
    }

    func codes(of externalIDs: Set<InstallKey>) throws -> [AuthCode] {
        try transaction.queryEach(
            "SELECT \(Self.codeColumns) FROM auth_codes WHERE app = $1 AND external_key = $2",
            externalIDs.sorted().map { [.text($0.app.text), Self.key($0.id.text)] }
        ).joined().map(Self.code)
    }

    func erased(among userIDs: Set<ExactText>) throws -> [String] {
        try transaction.queryEach(
            "SELECT user_id FROM users WHERE user_id = $1 AND is_erased = 1",
            userIDs.sorted().map { [.text($0.text)] }
        ).joined().map { try $0.text(0) }
    }

    private static func install(_ row: SQLRow) throws -> Installation {
        try WireJSONDecoder().decode(Installation.self, from: Array(try row.text(0).utf8))
    }

    private static func code(_ row: SQLRow) throws -> AuthCode {
        let use: AuthCode.Use =
            switch (try row.text(4), try row.optionalText(5)) {
            case ("none", _): .none
            case ("reserved", let install?): .reserved(installID: install)
            case ("used", let install?): .used(installID: install)
            default: throw StorageError(kind: .invalid, message: "auth_codes: a use of no known value")
            }
        return AuthCode(
            digest: CodeDigest(bytes: try row.blob(0)), app: try row.text(1), externalID: try row.text(2),
            expires: Timestamp(milliseconds: try row.integer(3)), use: use)
    }

    // MARK: Writing

    /// Rows go in sorted by key: two replicas take their row locks in one order.
    func save(_ state: UserState) throws {
        let keys = state.changedInstalls.sorted()
        try transaction.executeEach(
            """
            INSERT INTO installations (app, install_id, phase, user_id, forward_id, due_at, record)
            VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (app, install_id) DO UPDATE SET phase = excluded.phase,
            user_id = excluded.user_id, forward_id = excluded.forward_id, due_at = excluded.due_at,
            record = excluded.record
            """, try keys.compactMap { state.installs[$0] }.map(Self.values))
        try transaction.executeEach(
            "DELETE FROM installations WHERE app = $1 AND install_id = $2",
            keys.filter { state.installs[$0] == nil }.map { [.text($0.app.text), .text($0.id.text)] })
        try save(state.changedCodes.compactMap { state.codes[$0] })
        try transaction.executeEach(
            "DELETE FROM auth_codes WHERE digest = $1",
            state.changedCodes.filter { state.codes[$0] == nil }.map { [.blob($0.bytes)] })
        try saveUsers(state)
    }

    private static func values(_ install: Installation) throws -> [SQLValue] {
        [
            .text(install.app), .text(install.id), .text(install.phase.rawValue), SQLValue(install.facts.userID),
            SQLValue(install.saga?.forward), SQLValue(install.deadline),
            .text(String(decoding: try WireJSONEncoder().encode(install), as: UTF8.self)),
        ]
    }

    private func save(_ codes: [AuthCode]) throws {
        try transaction.executeEach(
            """
            INSERT INTO auth_codes (digest, app, external_id, external_key, expires_at, use_kind, install_id)
            VALUES ($1, $2, $3, $4, $5, $6, $7)
            ON CONFLICT (digest) DO UPDATE SET use_kind = excluded.use_kind, install_id = excluded.install_id
            """,
            codes.sorted { $0.digest.bytes.lexicographicallyPrecedes($1.digest.bytes) }.map { code in
                let (use, install): (String, String?) =
                    switch code.use {
                    case .none: ("none", nil)
                    case .reserved(let install): ("reserved", install)
                    case .used(let install): ("used", install)
                    }
                return [
                    .blob(code.digest.bytes), .text(code.app), .text(code.externalID), Self.key(code.externalID),
                    .integer(code.expires.milliseconds), .text(use), SQLValue(install),
                ]
            })
    }

    private func saveUsers(_ state: UserState) throws {
        let users = state.changedUsers.keys.sorted()
        try transaction.executeEach(
            """
            INSERT INTO users (user_id, is_erased) VALUES ($1, $2)
            ON CONFLICT (user_id) DO UPDATE
            SET is_erased = CASE WHEN users.is_erased = 1 THEN 1 ELSE excluded.is_erased END
            """,
            users.filter { state.changedUsers[$0] == true || state.erased.contains($0) }.map {
                [.text($0.text), .integer(state.erased.contains($0) ? 1 : 0)]
            })
        try transaction.executeEach(
            "DELETE FROM users WHERE user_id = $1 AND is_erased = 0",
            users.filter { state.changedUsers[$0] == false && !state.erased.contains($0) }.map { [.text($0.text)] })
    }

    // MARK: What becomes due

    /// The installs whose linker has taken too long. Each comes again after 30 seconds at the earliest, and after longer
    /// and longer while it is not decided.
    func due(now: Timestamp, limit: Int) throws -> [Installation] {
        let due = try transaction.query(
            "SELECT record FROM installations WHERE due_at <= $1 ORDER BY due_at, app, install_id LIMIT $2",
            [.integer(now.milliseconds), SQLValue(limit)]
        ).map(Self.install)
        try transaction.executeEach(
            "UPDATE installations SET due_at = $3 WHERE app = $1 AND install_id = $2",
            due.map { install in
                let overdue = now.milliseconds - (install.deadline ?? now.milliseconds)
                return [
                    .text(install.app), .text(install.id),
                    .integer(now.milliseconds + DueCommand.pause(overdue: overdue)),
                ]
            })
        return due
    }

    /// Forgets codes that expired before `horizon`; not those that a creation goes on with.
    func prune(before horizon: Timestamp, limit: Int) throws {
        try transaction.execute(
            """
            DELETE FROM auth_codes WHERE digest IN (SELECT digest FROM auth_codes
              WHERE expires_at < $1 AND use_kind <> 'reserved' ORDER BY expires_at LIMIT $2)
            """, [.integer(horizon.milliseconds), SQLValue(limit)])
    }

    /// What an external id is found by: its SHA-256. The id itself may be longer than an index entry can be.
    private static func key(_ externalID: String) -> SQLValue {
        .blob(Array(SHA256.hash(data: Array(externalID.utf8))))
    }
}
