// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// A command whose final answer comes later: what that answer is written from, and the answer once it is there.
public struct Saga: Sendable, Hashable {
    public var key: CommandKey
    /// The command's envelope attributes, encoded by the caller.
    public var origin: [UInt8]
    /// The Kafka key of the command's record.
    public var recordKey: [UInt8]?
    /// The latest reply behind the first one, encoded by the caller.
    public var reply: [UInt8]?
    /// Whether `reply` is the final one.
    public var isSettled: Bool
    /// In milliseconds since 1970.
    public var begunAt: Int64

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

extension Saga: SQLKeyedRecord {
    public static let table = SQLTable<Saga>("saga")
    public static var blank: Saga {
        Saga(key: CommandKey(app: "", source: "", id: ""), origin: [], recordKey: nil, begunAt: 0)
    }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.command("app", "source", "id", &key, .key)
        try columns.written("inbox_key", StoredKey(key).bytes, .fixed)
        try columns.column("origin", &origin)
        try columns.column("record_key", &recordKey)
        try columns.column("reply", &reply)
        try columns.column("is_settled", &isSettled)
        try columns.column("begun_at", &begunAt)
    }
}

/// The sagas that a service began, beside the ``Inbox``, which has their first decision.
///
/// All functions work inside the caller's transaction and on its thread.
public enum Sagas {
    /// One round trip.
    public static func find(
        _ keys: [CommandKey], in transaction: any SQLTransaction
    ) throws(StorageError) -> [CommandKey: Saga] {
        var found: [CommandKey: Saga] = [:]
        for saga in try Saga.table.find(keys, in: transaction) { found[saga.key] = saga }
        return found
    }

    /// Writes sagas that began, or that got a reply; one that begins anew takes the place of the old one.
    public static func save(_ sagas: [Saga], in transaction: any SQLTransaction) throws(StorageError) {
        try Saga.table.save(sagas, in: transaction)
    }

    /// Forgets settled sagas that began before `cutoff` (milliseconds since 1970) and whose command the inbox has
    /// forgotten, at most `limit` of them. One that still waits for its answer stays, however old it is.
    /// - Returns: how many.
    public static func prune(
        olderThan cutoff: Int64, limit: Int, in transaction: any SQLTransaction
    ) throws(StorageError) -> Int {
        try transaction.execute(prune, [.integer(cutoff), SQLValue(limit)])
    }

    // Counts, because PostgreSQL may turn NOT EXISTS into a join that reads the whole inbox.
    private static let prune = """
        DELETE FROM saga WHERE (app, source, id) IN (
            SELECT app, source, id FROM saga
            WHERE begun_at < $1 AND is_settled = 1 AND 0 = \(Inbox.tables.map {
                "(SELECT COUNT(*) FROM \($0) WHERE \($0).key = saga.inbox_key)"
            }.joined(separator: " + "))
            ORDER BY begun_at LIMIT $2)
        """
}
