// SPDX-License-Identifier: Apache-2.0

/// The messages that a decision led to, until they are published.
public struct OutboxRow: Sendable, Hashable {
    /// Of the record that was decided.
    public var position: LogPosition
    /// Encoded by the caller.
    public var messages: [UInt8]

    public init(position: LogPosition, messages: [UInt8]) {
        self.position = position
        self.messages = messages
    }
}

/// What is to be published: written with the decision, gone once it is published.
///
/// All functions work inside the caller's transaction and on its thread.
public enum Outbox {
    /// - Throws: `conflict`, or a later call does, when the position of a row is there already.
    public static func append(_ rows: [OutboxRow], in transaction: any SQLTransaction) throws(StorageError) {
        var logs = LogNumbers()
        try transaction.send(insert, count: rows.count) { (index, binder) throws(StorageError) in
            let row = rows[index]
            try binder.bind(logs.number(of: row.position.log))
            try binder.bind(row.position.offset)
            try binder.bind(row.messages)
        }
    }

    private static let insert = SQLRowStatement.insert(
        into: "outbox", [("log", .integer), ("log_offset", .integer), ("messages", .bytes)])

    /// What stands behind `after`, in the order of the offsets, at most `limit` rows.
    ///
    /// - Parameter after: the last offset that was published, -1 for none.
    public static func unpublished(
        _ log: LogID, after: Int64, limit: Int, in transaction: any SQLTransaction
    ) throws(StorageError) -> [OutboxRow] {
        let rows = try transaction.query(
            "SELECT log_offset, messages FROM outbox WHERE log = $1 AND log_offset > $2 ORDER BY log_offset LIMIT $3",
            [.integer(log.number), .integer(after), SQLValue(limit)])
        var found: [OutboxRow] = []
        for row in rows {
            found.append(
                OutboxRow(position: LogPosition(log: log, offset: try row.integer(0)), messages: try row.blob(1)))
        }
        return found
    }

    /// What is published of one log.
    public struct Published: Sendable, Hashable {
        public var log: LogID
        /// Up to here it was removed before, -1 for nothing: rows that are gone are not looked for.
        public var after: Int64
        /// The last offset that is published.
        public var through: Int64

        public init(_ log: LogID, after: Int64, through: Int64) {
            self.log = log
            self.after = after
            self.through = through
        }
    }

    /// Forgets what is published: in the transaction that notes how far publishing has come, behind its fence.
    public static func remove(_ published: [Published], in transaction: any SQLTransaction) throws(StorageError) {
        try transaction.sendEach(
            "DELETE FROM outbox WHERE log = $1 AND log_offset > $2 AND log_offset <= $3",
            published.map { [.integer($0.log.number), .integer($0.after), .integer($0.through)] })
    }
}
