// SPDX-License-Identifier: Apache-2.0

/// A command whose final answer comes later: what that answer is written from, and the answer once it is there.
public struct Saga: Sendable, Hashable {
    public let key: CommandKey
    /// The command's envelope attributes, encoded by the caller.
    public let origin: [UInt8]
    /// The Kafka key of the command's record.
    public let recordKey: [UInt8]?
    /// The latest reply behind the first one, encoded by the caller.
    public var reply: [UInt8]?
    /// Whether `reply` is the final one.
    public var isSettled: Bool
    /// In milliseconds since 1970.
    public let begunAt: Int64

    public init(
        key: CommandKey, origin: [UInt8], recordKey: [UInt8]?, reply: [UInt8]? = nil, isSettled: Bool = false,
        begunAt: Int64
    ) {
        self.key = key
        self.origin = origin
        self.recordKey = recordKey
        self.reply = reply
        self.isSettled = isSettled
        self.begunAt = begunAt
    }
}

/// The sagas that a service began, beside the ``Journal``, which has their first decision.
///
/// All functions work inside the caller's transaction and on its thread.
public enum Sagas {
    /// One round trip.
    public static func find(
        _ keys: [CommandKey], in transaction: any SQLTransaction
    ) throws(StorageError) -> [CommandKey: Saga] {
        let answers = try transaction.queryEach(
            """
            SELECT origin, record_key, reply, is_settled, begun_at FROM saga
            WHERE app = $1 AND source = $2 AND id = $3
            """,
            keys.map { [.text($0.app), .text($0.source), .text($0.id)] })
        var found: [CommandKey: Saga] = [:]
        for (key, rows) in zip(keys, answers) {
            guard let row = rows.first else { continue }
            found[key] = Saga(
                key: key, origin: try row.blob(0), recordKey: try row.optionalBlob(1), reply: try row.optionalBlob(2),
                isSettled: try row.integer(3) != 0, begunAt: try row.integer(4))
        }
        return found
    }

    /// Writes sagas that began, or that got a reply; one that begins anew takes the place of the old one. One round
    /// trip.
    public static func save(_ sagas: [Saga], in transaction: any SQLTransaction) throws(StorageError) {
        try transaction.executeEach(
            """
            INSERT INTO saga (app, source, id, origin, record_key, reply, is_settled, begun_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT (app, source, id) DO UPDATE SET
                origin = excluded.origin, record_key = excluded.record_key, reply = excluded.reply,
                is_settled = excluded.is_settled, begun_at = excluded.begun_at
            """,
            sagas.map { saga in
                [
                    .text(saga.key.app), .text(saga.key.source), .text(saga.key.id), .blob(saga.origin),
                    saga.recordKey.map { .blob($0) } ?? .null, saga.reply.map { .blob($0) } ?? .null,
                    .integer(saga.isSettled ? 1 : 0), .integer(saga.begunAt),
                ]
            })
    }

    /// Forgets settled sagas that began before `cutoff` (milliseconds since 1970) and whose command the journal has
    /// forgotten, at most `limit` of them. One that still waits for its answer stays, however old it is.
    /// - Returns: how many.
    public static func prune(
        olderThan cutoff: Int64, limit: Int, in transaction: any SQLTransaction
    ) throws(StorageError) -> Int {
        // A count, because PostgreSQL may turn NOT EXISTS into a join that reads the whole journal.
        try transaction.execute(
            """
            DELETE FROM saga WHERE (app, source, id) IN (
                SELECT app, source, id FROM saga
                WHERE begun_at < $1 AND is_settled = 1 AND 0 = (
                    SELECT COUNT(*) FROM journal
                    WHERE journal.app = saga.app AND journal.source = saga.source AND journal.id = saga.id)
                ORDER BY begun_at LIMIT $2)
            """,
            [.integer(cutoff), SQLValue(limit)])
    }
}
