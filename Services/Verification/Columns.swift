// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage

/// Rows go in sorted by key: neighbours share pages, and two replicas take their row locks in one order.
extension VerificationStore {
    /// - Parameter shard: whose counters this replica adds to, so that replicas do not wait for each other's.
    func save(_ state: SessionState, shard: Int64) throws {
        try save(sessions: state)
        try save(people: state)
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
        let keys = state.changedSessions.sorted()
        try transaction.executeEach(
            """
            INSERT INTO sessions
            (app, device_id, state, may_file_issues, mpid, number, shown, moved, has_login, basis, key_id, since)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (app, device_id) DO UPDATE SET
            state = excluded.state, may_file_issues = excluded.may_file_issues, mpid = excluded.mpid,
            number = excluded.number, shown = excluded.shown, moved = excluded.moved, has_login = excluded.has_login,
            basis = excluded.basis, key_id = excluded.key_id, since = excluded.since
            """,
            keys.compactMap { state.sessions[$0] }.map { session in
                [
                    .text(session.app), .text(session.deviceID), .text(session.state.rawValue),
                    .integer(session.mayFileIssues ? 1 : 0), SQLValue(session.mpid?.value),
                    .integer(session.number), .integer(session.shown), .integer(session.moved),
                    .integer(session.hasLogin ? 1 : 0), SQLValue(session.standing?.basis.number),
                    SQLValue(session.standing?.keyID), SQLValue(session.standing?.since?.milliseconds),
                ]
            })
        try transaction.executeEach(
            "DELETE FROM sessions WHERE app = $1 AND device_id = $2",
            keys.filter { state.sessions[$0] == nil }.map { [.text($0.app.text), .text($0.deviceID.text)] })
    }

    /// A row is written also for those who are not erased: a login and an erasure that two replicas decide at one time
    /// then meet in it, and one of them is decided again.
    private func save(people state: SessionState) throws {
        try transaction.executeEach(
            """
            INSERT INTO people (app, mpid, is_erased) VALUES ($1, $2, $3) ON CONFLICT (app, mpid) DO UPDATE SET
            is_erased = CASE WHEN people.is_erased = 1 THEN 1 ELSE excluded.is_erased END
            """,
            state.changedPeople.sorted().map {
                [.text($0.app.text), .integer($0.mpid.value), .integer(state.erased.contains($0) ? 1 : 0)]
            })
    }

    private func save(sagas state: SessionState) throws {
        let begun = state.begunSagas.subtracting(state.endedSagas).sorted().compactMap { state.sagas[$0] }
        try transaction.executeEach(
            """
            INSERT INTO login_sagas (forward_id, app, source, command_id, device_id, kind, number, state,
            may_file_issues, key_id, anonymous_reason, basis, since, user_digest, email_digest)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
            """,
            begun.map { saga in
                [
                    .text(saga.forwardID), .text(saga.command.app), .text(saga.command.source),
                    .text(saga.command.id), .text(saga.deviceID), .text(saga.kind.rawValue), .integer(saga.number),
                    .text(saga.result.state.rawValue), .integer(saga.result.mayFileIssues ? 1 : 0),
                    SQLValue(saga.result.keyId), SQLValue(saga.result.anonymousReason?.rawValue),
                    SQLValue(saga.standing?.basis.number), SQLValue(saga.standing?.since?.milliseconds),
                    SQLValue(saga.userID?.bytes), SQLValue(saga.email?.bytes),
                ]
            })
        try transaction.executeEach(
            "DELETE FROM login_sagas WHERE forward_id = $1",
            state.endedSagas.subtracting(state.begunSagas).sorted().map { [.text($0.text)] })
    }
}
