// SPDX-License-Identifier: Apache-2.0

public import Contracts
import Crypto

/// One log: a partition of a topic, in one of its incarnations.
///
/// The incarnation tells apart topics of the same name that followed each other (a broker that was replaced, a topic
/// that was deleted and created again): offsets of different incarnations have nothing to do with each other.
public struct LogID: Sendable, Hashable, CustomStringConvertible {
    public var partition: TopicPartition
    public var incarnation: Int64

    public init(_ partition: TopicPartition, incarnation: Int64) {
        self.partition = partition
        self.incarnation = incarnation
    }

    /// What the store writes for it: 48 bits of a hash. It follows from the log, so no two replicas, and no earlier copy
    /// of a store, call one log by two numbers; ``Logs`` sees to it that no two logs have one.
    public var number: Int64 {
        var hash = SHA256()
        hash.update(data: Array("\(partition.topic)\n\(partition.partition)\n\(incarnation)".utf8))
        return hash.finalize().prefix(6).reduce(0) { $0 << 8 | Int64($1) }
    }

    public var description: String { "\(partition)#\(incarnation)" }
}

/// Where a record stood.
public struct LogPosition: Sendable, Hashable, CustomStringConvertible {
    public var log: LogID
    public var offset: Int64

    public init(log: LogID, offset: Int64) {
        self.log = log
        self.offset = offset
    }

    public init(topic: String, partition: Int32, incarnation: Int64, offset: Int64) {
        self.init(
            log: LogID(TopicPartition(topic: topic, partition: partition), incarnation: incarnation), offset: offset)
    }

    public var description: String { "\(log)@\(offset)" }
}

/// The numbers of logs, for rows of which those of one log come together.
struct LogNumbers {
    private var last: (log: LogID, number: Int64)?

    mutating func number(of log: LogID) -> Int64 {
        if let last, last.log == log { return last.number }
        let number = log.number
        last = (log, number)
        return number
    }
}

/// The names behind the numbers of logs. A log is entered by the first claim of it.
enum Logs {
    /// - Throws: `invalid` when another log has one of the numbers: one case in 10¹⁰ with a thousand logs.
    static func enter(_ logs: [LogID], in transaction: any SQLTransaction) throws(StorageError) {
        try transaction.executeEach(
            """
            INSERT INTO logs (number, topic, partition, incarnation) VALUES ($1, $2, $3, $4)
            ON CONFLICT (number) DO NOTHING
            """,
            logs.map { log in
                [
                    .integer(log.number), .text(log.partition.topic), SQLValue(log.partition.partition),
                    .integer(log.incarnation),
                ]
            })
        let found = try transaction.queryEach(
            "SELECT topic, partition, incarnation FROM logs WHERE number = $1", logs.map { [.integer($0.number)] })
        for (log, rows) in zip(logs, found) {
            guard let row = rows.first else {
                throw StorageError(kind: .conflict, message: "another replica enters the log \(log)")
            }
            let place = TopicPartition(topic: try row.text(0), partition: Int32(truncatingIfNeeded: try row.integer(1)))
            guard LogID(place, incarnation: try row.integer(2)) == log else {
                throw .invalid("the logs \(log) and \(place) have one number")
            }
        }
    }

    /// The newest incarnation of each partition; nil for one that was never claimed.
    static func newestIncarnations(
        of partitions: [TopicPartition], in transaction: any SQLTransaction
    ) throws(StorageError) -> [Int64?] {
        let answers = try transaction.queryEach(
            "SELECT MAX(incarnation) FROM logs WHERE topic = $1 AND partition = $2",
            partitions.map { [.text($0.topic), SQLValue($0.partition)] })
        var newest: [Int64?] = []
        for rows in answers { newest.append(try rows.first?.optionalInteger(0)) }
        return newest
    }

    static func all(in transaction: any SQLTransaction) throws(StorageError) -> [LogID] {
        var logs: [LogID] = []
        for row in try transaction.query("SELECT topic, partition, incarnation FROM logs") {
            let place = TopicPartition(topic: try row.text(0), partition: Int32(truncatingIfNeeded: try row.integer(1)))
            logs.append(LogID(place, incarnation: try row.integer(2)))
        }
        return logs
    }
}
