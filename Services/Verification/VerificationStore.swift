// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

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
            ])
    ]

    let transaction: any SQLTransaction

    // MARK: Reading

    func sessions(_ keys: Set<SessionState.DeviceKey>) throws -> [Session] {
        try transaction.queryEach(
            """
            SELECT app, device_id, state, may_file_issues, mpid, number, shown, has_login FROM sessions
            WHERE app = $1 AND device_id = $2
            """, keys.sorted().map { [.text($0.app.text), .text($0.deviceID.text)] }
        ).joined().map { row in
            Session(
                app: try row.text(0), deviceID: try row.text(1), state: try Self.word(row.text(2)),
                mayFileIssues: try row.integer(3) != 0, mpid: try row.optionalInteger(4).flatMap { MPID($0) },
                number: try row.integer(5), shown: try row.integer(6), hasLogin: try row.integer(7) != 0)
        }
    }

    func sagas(forwardIDs: Set<ExactText>) throws -> [LoginSaga] {
        try transaction.queryEach(
            """
            SELECT forward_id, app, source, command_id, device_id, kind, number, state, may_file_issues, key_id,
            anonymous_reason FROM login_sagas WHERE forward_id = $1
            """, forwardIDs.sorted().map { [.text($0.text)] }
        ).joined().map { row in
            LoginSaga(
                forwardID: try row.text(0),
                command: CommandKey(app: try row.text(1), source: try row.text(2), id: try row.text(3)),
                deviceID: try row.text(4), kind: try Self.word(row.text(5)), number: try row.integer(6),
                result: VerificationResult(
                    state: try Self.word(row.text(7)), mayFileIssues: try row.integer(8) != 0,
                    keyId: try row.optionalText(9),
                    anonymousReason: try row.optionalText(10).map { try Self.word($0) }))
        }
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

    // MARK: Writing

    /// Rows go in sorted by key: neighbours share pages, and two replicas take their row locks in one order.
    /// - Parameter shard: whose counters this replica adds to, so that replicas do not wait for each other's.
    func save(_ state: SessionState, shard: Int64) throws {
        try save(sessions: state)
        try save(sagas: state)
        let counts = state.counted.sorted { $0.key < $1.key }.flatMap { app, counts in
            counts.sorted { $0.key.order.lexicographicallyPrecedes($1.key.order) }.map { (app, $0.key, $0.value) }
        }
        try transaction.executeEach(
            """
            INSERT INTO verification_counts (app, method, reason, key_id, shard, count, last_used)
            VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (app, method, reason, key_id, shard) DO UPDATE SET
            count = verification_counts.count + excluded.count, last_used = excluded.last_used
            """,
            counts.map { app, tally, count in
                [
                    .text(app.text), .text(tally.method.rawValue), .text(tally.reason?.rawValue ?? ""),
                    .text(tally.keyID ?? ""), .integer(shard), .integer(count.count),
                    .integer(count.lastUsed.milliseconds),
                ]
            })
    }

    private func save(sessions state: SessionState) throws {
        try transaction.executeEach(
            """
            INSERT INTO sessions (app, device_id, state, may_file_issues, mpid, number, shown, has_login)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (app, device_id) DO UPDATE SET
            state = excluded.state, may_file_issues = excluded.may_file_issues, mpid = excluded.mpid,
            number = excluded.number, shown = excluded.shown, has_login = excluded.has_login
            """,
            state.changedSessions.sorted().compactMap { state.sessions[$0] }.map { session in
                [
                    .text(session.app), .text(session.deviceID), .text(session.state.rawValue),
                    .integer(session.mayFileIssues ? 1 : 0), session.mpid.map { .integer($0.value) } ?? .null,
                    .integer(session.number), .integer(session.shown), .integer(session.hasLogin ? 1 : 0),
                ]
            })
    }

    private func save(sagas state: SessionState) throws {
        let begun = state.begunSagas.subtracting(state.endedSagas).sorted().compactMap { state.sagas[$0] }
        try transaction.executeEach(
            """
            INSERT INTO login_sagas (forward_id, app, source, command_id, device_id, kind, number, state,
            may_file_issues, key_id, anonymous_reason) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
            """,
            begun.map { saga in
                [
                    .text(saga.forwardID), .text(saga.command.app), .text(saga.command.source),
                    .text(saga.command.id), .text(saga.deviceID), .text(saga.kind.rawValue), .integer(saga.number),
                    .text(saga.result.state.rawValue), .integer(saga.result.mayFileIssues ? 1 : 0),
                    Self.text(saga.result.keyId), Self.text(saga.result.anonymousReason?.rawValue),
                ]
            })
        try transaction.executeEach(
            "DELETE FROM login_sagas WHERE forward_id = $1",
            state.endedSagas.subtracting(state.begunSagas).sorted().map { [.text($0.text)] })
    }

    private static func text(_ value: String?) -> SQLValue { value.map { .text($0) } ?? .null }
}
