// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// A record that a dry run waits with: its command, or an answer to a command that it sent on.
public struct DryRunRecord: Sendable, Hashable {
    public var app: AppID
    /// The id of the answer that the dry run will get.
    public var id: String
    /// 0 for the command; the answers count from 1, as they came. -1 for the reply to a dry run that has waited for too
    /// long, which stands in place of all these until it is delivered.
    public var number: Int64
    /// When the command was decided, in milliseconds since 1970.
    public var begunAt: Int64
    /// When this record was, in milliseconds since 1970.
    public var decidedAt: Int64
    /// Where it was read.
    public var topic: String
    public var partition: Int64
    public var incarnation: Int64
    public var offset: Int64
    /// Milliseconds since 1970, as Kafka says it.
    public var loggedAt: Int64
    /// Whether that is by a broker's clock.
    public var isBrokersTime: Bool
    /// Key, value and headers, encoded by the caller.
    public var message: [UInt8]

    public init(
        app: AppID, id: String, number: Int64, begunAt: Int64, decidedAt: Int64, record: KafkaRecord,
        incarnation: Int64, message: [UInt8]
    ) {
        self.app = app
        self.id = id
        self.number = number
        self.begunAt = begunAt
        self.decidedAt = decidedAt
        topic = record.topicPartition.topic
        partition = Int64(record.topicPartition.partition)
        self.incarnation = incarnation
        offset = record.offset
        loggedAt = record.timestampMs
        isBrokersTime = record.clock == .broker
        self.message = message
    }

    /// The record as it was read.
    /// - Parameter message: what ``message`` stands for.
    public func record(_ message: Record) -> KafkaRecord {
        KafkaRecord(
            topicPartition: TopicPartition(topic: topic, partition: Int32(truncatingIfNeeded: partition)),
            offset: offset, timestampMs: loggedAt, clock: isBrokersTime ? .broker : .producer, key: message.key,
            value: message.value, headers: message.headers)
    }
}

extension DryRunRecord: SQLRecord {
    public static let table = SQLTable<DryRunRecord>("dry_run")
    public static var blank: DryRunRecord {
        DryRunRecord(
            app: "", id: "", number: 0, begunAt: 0, decidedAt: 0,
            record: KafkaRecord(
                topicPartition: TopicPartition(topic: "", partition: 0), offset: 0, key: nil, value: nil),
            incarnation: 0, message: [])
    }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("app", &app, .key)
        try columns.column("id", &id, .key)
        try columns.column("number", &number, .key)
        try columns.column("begun_at", &begunAt)
        try columns.column("decided_at", &decidedAt)
        try columns.column("topic", &topic)
        try columns.column("partition", &partition)
        try columns.column("incarnation", &incarnation)
        try columns.column("log_offset", &offset)
        try columns.column("logged_at", &loggedAt)
        try columns.column("is_brokers_time", &isBrokersTime)
        try columns.column("message", &message)
    }
}

/// The dry runs that wait for other services (docs/loop.md "Dry runs").
///
/// All functions work inside the caller's transaction and on its thread. Times are milliseconds since 1970.
public enum DryRuns {
    /// How long one waits, in milliseconds.
    public static let patience: Int64 = 30_000

    /// The command and the answers of one, in order; nothing of one that has gone.
    public static func find(
        app: AppID, id: String, in transaction: any SQLTransaction
    ) throws(StorageError) -> [DryRunRecord] {
        let found = try DryRunRecord.table.find(
            "app = $1 AND id = $2 ORDER BY number", [.text(app.text), .text(id)], in: transaction)
        return found.first?.number == 0 ? found : []
    }

    public static func append(
        _ records: [DryRunRecord], in transaction: any SQLTransaction
    ) throws(StorageError) {
        try DryRunRecord.table.insert(records, in: transaction)
    }

    /// How many of an app wait, but at most `limit`.
    public static func count(
        of app: AppID, limit: Int, in transaction: any SQLTransaction
    ) throws(StorageError) -> Int {
        let rows = try transaction.query(
            "SELECT COUNT(*) FROM (SELECT 1 FROM dry_run WHERE app = $1 AND number = 0 LIMIT $2) AS waiting",
            [.text(app.text), SQLValue(limit)])
        return Int(try rows.first?.integer(0) ?? 0)
    }

    public static func remove(
        app: AppID, id: String, in transaction: any SQLTransaction
    ) throws(StorageError) {
        try transaction.execute("DELETE FROM dry_run WHERE app = $1 AND id = $2", [.text(app.text), .text(id)])
    }

    /// Puts the reply in place of what one waited with.
    /// - Parameter reply: encoded by the caller.
    public static func end(
        _ command: DryRunRecord, with reply: [UInt8], in transaction: any SQLTransaction
    ) throws(StorageError) {
        try remove(app: command.app, id: command.id, in: transaction)
        var row = command
        (row.number, row.message) = (-1, reply)
        try append([row], in: transaction)
    }

    /// The replies to dry runs that have waited for too long, at most `limit`.
    public static func ended(
        limit: Int, in transaction: any SQLTransaction
    ) throws(StorageError) -> [DryRunRecord] {
        try DryRunRecord.table.find(
            "number = -1 ORDER BY begun_at, app, id LIMIT $1", [SQLValue(limit)], in: transaction)
    }

    /// Those that have waited for too long, at most `limit`. One that a clock of before says to have begun in the
    /// future has, too.
    public static func overdue(
        now: Int64, limit: Int, in transaction: any SQLTransaction
    ) throws(StorageError) -> [(app: AppID, id: String)] {
        let rows = try transaction.query(
            """
            SELECT app, id FROM dry_run WHERE number >= 0 AND (begun_at <= $1 OR begun_at > $2)
            GROUP BY app, id ORDER BY MIN(begun_at), app, id LIMIT $3
            """,
            [.integer(now - patience), .integer(now + patience), SQLValue(limit)])
        var found: [(app: AppID, id: String)] = []
        for row in rows { found.append((AppID(try row.text(0)), try row.text(1))) }
        return found
    }
}

extension SQLTransaction {
    /// Runs `work` and takes back what it wrote. What others wrote to the same rows is a conflict all the same.
    public func undoing<Value>(_ work: () throws -> Value) throws -> Value {
        try execute("SAVEPOINT scratch")
        let value = try work()
        try execute("ROLLBACK TO SAVEPOINT scratch")
        try execute("RELEASE SAVEPOINT scratch")
        return value
    }
}
