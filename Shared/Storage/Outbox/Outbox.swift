// SPDX-License-Identifier: Apache-2.0

public import Contracts

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

/// A command that was sent to another service and is not yet answered.
public struct UnansweredForward: Sendable, Hashable {
    public internal(set) var app: AppID
    /// The command's own id. It stays the same however often the command is sent, so the other service applies it once.
    public internal(set) var id: CommandID
    /// The command, encoded by the caller.
    public internal(set) var message: [UInt8]
    /// How often it was sent: 1 after the first time.
    public internal(set) var asked: Int64
    /// When it is to be sent again, in milliseconds since 1970.
    public internal(set) var nextAsk: Int64
    /// When it was sent for the first time, in milliseconds since 1970.
    public internal(set) var begunAt: Int64

    /// One that is sent for the first time.
    public init(app: AppID, id: CommandID, message: [UInt8], begunAt: Int64) {
        self.init(
            app: app, id: id, message: message, asked: 1, nextAsk: begunAt + Forwards.pause(asked: 1),
            begunAt: begunAt)
    }

    init(app: AppID, id: CommandID, message: [UInt8], asked: Int64, nextAsk: Int64, begunAt: Int64) {
        self.app = app
        self.id = id
        self.message = message
        self.asked = asked
        self.nextAsk = nextAsk
        self.begunAt = begunAt
    }
}

extension UnansweredForward: SQLKeyedRecord {
    public static let table = SQLTable<UnansweredForward>("forward")
    public static var blank: UnansweredForward { UnansweredForward(app: "", id: "", message: [], begunAt: 0) }

    public var key: Scoped<CommandID> { Scoped(app: app, id: id) }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("app", &app, .key)
        try columns.column("id", &id, .key)
        try columns.column("message", &message, .fixed)
        try columns.column("asked", &asked, .fixed)
        try columns.column("next_ask", &nextAsk, .fixed)
        try columns.column("begun_at", &begunAt, .fixed)
    }
}

/// The commands that a service sent to others and that wait for an answer: each is sent again, with growing pauses,
/// until it is answered, so that whatever gets lost on the way ends no saga.
///
/// All functions work inside the caller's transaction and on its thread. Times are milliseconds since 1970.
public enum Forwards {
    /// What ``count(in:)`` counts up to.
    public static let countLimit: Int64 = 10_000

    /// How long to wait for an answer after a forward was sent for the `asked`th time, in milliseconds: 5 s, then each
    /// time twice as long, at most 10 minutes.
    public static func pause(asked: Int64) -> Int64 {
        let doublings = min(max(asked, 1) - 1, 7)
        return min(5000 << doublings, 600_000)
    }

    /// How much later than now a turn may stand, in milliseconds: an hour beyond the longest pause, for clocks that differ.
    private static let furthest: Int64 = 4_200_000

    /// Remembers forwards, in the transaction that decides on them. One that is known already stays as it is.
    public static func save(
        _ forwards: [UnansweredForward], in transaction: any SQLTransaction
    ) throws(StorageError) {
        try UnansweredForward.table.save(forwards, in: transaction)
    }

    /// Forgets forwards that are answered, in the transaction that decides on the answer. Unknown ones are no error.
    public static func answered(
        _ forwards: Set<Scoped<CommandID>>, in transaction: any SQLTransaction
    ) throws(StorageError) {
        try UnansweredForward.table.remove(forwards.sorted(), in: transaction)
    }

    /// The forwards whose time has come, longest overdue first, at most `limit` of them, as they stand after they
    /// will have been sent again: to be sent after the commit. Two round trips.
    ///
    /// A crash between the commit and the sending costs one pause.
    ///
    /// - Throws: `conflict` when another replica asks for the same ones, or an answer comes, at the same time.
    public static func due(
        now: Int64, limit: Int, in transaction: any SQLTransaction
    ) throws(StorageError) -> [UnansweredForward] {
        var due = try UnansweredForward.table.find(
            "next_ask <= $1 ORDER BY next_ask LIMIT $2", [.integer(now), SQLValue(limit)], in: transaction)
        if due.count < limit {
            // Put off by a clock that was ahead: by ours, its turn would come in days.
            due += try UnansweredForward.table.find(
                "next_ask > $1 ORDER BY next_ask LIMIT $2",
                [.integer(now + furthest), SQLValue(limit - due.count)], in: transaction)
        }
        for index in due.indices {
            due[index].asked += 1
            due[index].nextAsk = now + pause(asked: due[index].asked)
        }
        try transaction.sendEach(
            "UPDATE forward SET asked = $3, next_ask = $4 WHERE app = $1 AND id = $2",
            due.map { [.text($0.app.text), .text($0.id.text), .integer($0.asked), .integer($0.nextAsk)] })
        return due
    }

    /// When the oldest unanswered forward was first sent; nil when all are answered. Reads one entry of an index.
    public static func oldest(in transaction: any SQLTransaction) throws(StorageError) -> Int64? {
        try transaction.query("SELECT MIN(begun_at) FROM forward").first?.optionalInteger(0)
    }

    /// How many forwards are unanswered, but at most ``countLimit``: to show that they pile up, not to bill them.
    public static func count(in transaction: any SQLTransaction) throws(StorageError) -> Int64 {
        let rows = try transaction.query(
            "SELECT COUNT(*) FROM (SELECT 1 FROM forward LIMIT \(countLimit)) AS unanswered")
        return try rows.first?.integer(0) ?? 0
    }
}
