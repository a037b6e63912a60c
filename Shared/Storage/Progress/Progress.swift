// SPDX-License-Identifier: Apache-2.0

public import Contracts
import Crypto

/// Who reads which partition, and how far: the store's word counts, Kafka's group offsets are only a hint.
///
/// Every update says with its epoch which claim it rests on, and progress also from where. A replica that lost its
/// partition, and does not know it yet, matches no row; nor does one whose store went back to an earlier copy (a standby
/// that lagged, a restored backup), where an epoch proves little because it may be given twice. It gets ``StorageError/Kind/fenced(_:)`` and must let that error end its transaction. Two
/// replicas that meet in the same instant on PostgreSQL get `conflict`; run again, the loser is fenced.
/// All functions work inside the caller's transaction and on its thread.
public enum Progress {
    /// Records decisions' progress, in the transaction that stores the decisions. One round trip.
    ///
    /// What the store holds must be what the update expects: whoever decides on top of a store that has lost earlier
    /// decisions would skip their commands for good.
    ///
    /// Where the next offset moves, the count of idle claims starts again; where it passes the suspect, the suspect
    /// is forgotten.
    public static func advance(
        _ updates: [ProgressUpdate], in transaction: any SQLTransaction
    ) throws(StorageError) {
        let counts = try transaction.executeEach(
            """
            UPDATE progress SET
                idle_claims = CASE WHEN next_offset = $4 THEN idle_claims ELSE 0 END,
                suspect_count = CASE WHEN suspect_offset < $4 THEN 0 ELSE suspect_count END,
                suspect_offset = CASE WHEN suspect_offset < $4 THEN NULL ELSE suspect_offset END,
                next_offset = $4,
                published_through = CASE WHEN published_through < $5 THEN $5 ELSE published_through END,
                log_time = CASE WHEN log_time < $6 THEN $6 ELSE log_time END,
                last_time = $8
            WHERE topic = $1 AND partition = $2 AND epoch = $3 AND next_offset = $7
            """,
            updates.map {
                [
                    .text($0.topic), SQLValue($0.partition), .integer($0.epoch), .integer($0.nextOffset),
                    .integer($0.publishedThrough), .integer($0.logTime),
                    .integer($0.expectedOffset ?? ProgressRow.earliest), SQLValue($0.lastTime),
                ]
            })
        try checkFence(updates.map { TopicPartition(topic: $0.topic, partition: $0.partition) }, counts)
    }

    /// Records that more was published, where nothing new was decided. One round trip.
    ///
    /// - Throws: `fenced` also when something was published that this store knows no decision of.
    public static func markPublished(
        _ updates: [PublishedUpdate], in transaction: any SQLTransaction
    ) throws(StorageError) {
        let counts = try transaction.executeEach(
            """
            UPDATE progress
            SET published_through = CASE WHEN published_through < $4 THEN $4 ELSE published_through END
            WHERE topic = $1 AND partition = $2 AND epoch = $3 AND $4 < next_offset
            """,
            updates.map {
                [.text($0.topic), SQLValue($0.partition), .integer($0.epoch), .integer($0.publishedThrough)]
            })
        try checkFence(updates.map { TopicPartition(topic: $0.topic, partition: $0.partition) }, counts)
    }

    /// Records how far the messages of an earlier incarnation have been published, and removes them from the outbox.
    ///
    /// - Parameter finished: nothing of it is left to publish; later claims do not name it any more.
    public static func markSetAsidePublished(
        topic: String, partition: Int32, epoch: Int64, incarnation: Int64, through: Int64, finished: Bool,
        in transaction: any SQLTransaction
    ) throws(StorageError) {
        // Changes nothing, but locks the row against a concurrent claim.
        let owned = try transaction.execute(
            "UPDATE progress SET epoch = epoch WHERE topic = $1 AND partition = $2 AND epoch = $3",
            [.text(topic), SQLValue(partition), .integer(epoch)])
        try checkFence([TopicPartition(topic: topic, partition: partition)], [owned])
        let log = LogID(TopicPartition(topic: topic, partition: partition), incarnation: incarnation)
        try Outbox.remove([Outbox.Published(log, after: -1, through: through)], in: transaction)
        let row: [SQLValue] = [.text(topic), SQLValue(partition), .integer(incarnation)]
        if finished {
            try transaction.execute(
                "DELETE FROM set_aside WHERE topic = $1 AND partition = $2 AND incarnation = $3", row)
        } else {
            try transaction.execute(
                """
                UPDATE set_aside SET published_through = $4
                WHERE topic = $1 AND partition = $2 AND incarnation = $3 AND published_through < $4
                """,
                row + [.integer(through)])
        }
    }

    /// Notes that the message at `offset` is about to be tried alone, because one of its kind may have ended the
    /// process before. Commit it before the attempt.
    ///
    /// - Returns: how often this offset was marked, this time included. Another offset starts again at 1.
    public static func markSuspect(
        topic: String, partition: Int32, epoch: Int64, offset: Int64, in transaction: any SQLTransaction
    ) throws(StorageError) -> Int {
        let rows = try transaction.query(
            """
            UPDATE progress SET
                suspect_count = CASE WHEN suspect_offset = $4 THEN suspect_count + 1 ELSE 1 END,
                suspect_offset = $4
            WHERE topic = $1 AND partition = $2 AND epoch = $3
            RETURNING suspect_count
            """,
            [.text(topic), SQLValue(partition), .integer(epoch), .integer(offset)])
        try checkFence([TopicPartition(topic: topic, partition: partition)], [rows.count])
        return Int(try rows.first?.integer(0) ?? 0)
    }

    /// Takes one mark back: the attempt ended without telling anything about the message (the process was asked to stop,
    /// the database went away). Does nothing when the mark is of another offset.
    public static func unmarkSuspect(
        topic: String, partition: Int32, epoch: Int64, offset: Int64, in transaction: any SQLTransaction
    ) throws(StorageError) {
        let count = try transaction.execute(
            """
            UPDATE progress SET
                suspect_count = CASE WHEN suspect_offset = $4 AND suspect_count > 0
                    THEN suspect_count - 1 ELSE suspect_count END,
                suspect_offset = CASE WHEN suspect_offset = $4 AND suspect_count <= 1
                    THEN NULL ELSE suspect_offset END
            WHERE topic = $1 AND partition = $2 AND epoch = $3
            """,
            [.text(topic), SQLValue(partition), .integer(epoch), .integer(offset)])
        try checkFence([TopicPartition(topic: topic, partition: partition)], [count])
    }

    /// Hands partitions over in good order: the claim that follows is no sign of a crash. One round trip.
    ///
    /// A partition that another replica has claimed already is left alone; that is no error.
    public static func release(
        _ partitions: [HeldPartition], in transaction: any SQLTransaction
    ) throws(StorageError) {
        try transaction.executeEach(
            "UPDATE progress SET idle_claims = 0 WHERE topic = $1 AND partition = $2 AND epoch = $3",
            partitions.map(\.parameters))
    }

    /// Which of these partitions were claimed after the claim that is named with each. One round trip, none for none.
    package static func claimedSince(
        _ epochs: [TopicPartition: Int64], in transaction: any SQLTransaction
    ) throws(StorageError) -> [TopicPartition] {
        if epochs.isEmpty { return [] }
        var claimed: [TopicPartition] = []
        for row in try transaction.query("SELECT topic, partition, epoch FROM progress") {
            let place = TopicPartition(topic: try row.text(0), partition: Int32(truncatingIfNeeded: try row.integer(1)))
            if let mine = epochs[place], try row.integer(2) > mine { claimed.append(place) }
        }
        return claimed
    }

    /// Ends every claim: who holds a partition has to claim it again before anything more is written on it.
    package static func endClaims(in transaction: any SQLTransaction) throws(StorageError) {
        try transaction.execute("UPDATE progress SET epoch = epoch + 1")
    }

    /// Whether the store still stands where a claim or the last update left it: before what it has is taken for all.
    ///
    /// - Parameter expectedOffset: as ``ProgressUpdate/expectedOffset``.
    /// - Throws: `fenced` when it names another owner or another offset.
    public static func check(
        _ partition: TopicPartition, epoch: Int64, expectedOffset: Int64?, in transaction: any SQLTransaction
    ) throws(StorageError) {
        let rows = try transaction.query(
            "SELECT 1 FROM progress WHERE topic = $1 AND partition = $2 AND epoch = $3 AND next_offset = $4",
            [
                .text(partition.topic), SQLValue(partition.partition), .integer(epoch),
                .integer(expectedOffset ?? ProgressRow.earliest),
            ])
        try checkFence([partition], [rows.count])
    }

    /// Whether any record was ever decided in this store.
    public static func hasBegun(in transaction: any SQLTransaction) throws(StorageError) -> Bool {
        try !transaction.query(
            "SELECT 1 FROM progress WHERE next_offset <> $1 LIMIT 1", [.integer(ProgressRow.earliest)]
        ).isEmpty
    }

    static func checkFence(
        _ partitions: [TopicPartition], _ counts: [Int]
    ) throws(StorageError) {
        let lost = zip(partitions, counts).filter { $0.1 == 0 }.map(\.0)
        guard !lost.isEmpty else { return }
        let names = lost.map(\.description).joined(separator: ", ")
        throw StorageError(kind: .fenced(lost), message: "the store names another owner or another offset: \(names)")
    }
}

/// How far a replica has got in a partition.
public struct ProgressUpdate: Sendable, Hashable {
    public let topic: String
    public let partition: Int32
    /// From the claim.
    public let epoch: Int64
    /// Where the store has to stand: the `nextOffset` of the claim, later the one of the update before. Nil stands for
    /// "from the earliest message", as in the claim.
    public let expectedOffset: Int64?
    /// The offset to read next.
    public let nextOffset: Int64
    /// The last offset that was published, -1 for none. A lower one than before is ignored.
    public let publishedThrough: Int64
    /// The highest time that Kafka gave to a record of this partition so far, in milliseconds since 1970, -1 for none.
    /// A lower one than before is ignored. Old rows are forgotten by it (``InboxSweep``),
    /// so a time that a producer made up (`CreateTime`) must not get here from the future.
    public let logTime: Int64
    /// The time of the record just before `nextOffset`, exactly as the log has it. By it a log is known again: one that
    /// was made anew under the same name, and has grown past this offset, has another record there.
    public let lastTime: Int64?

    public var place: TopicPartition { TopicPartition(topic: topic, partition: partition) }

    public init(
        topic: String, partition: Int32, epoch: Int64, expectedOffset: Int64?, nextOffset: Int64,
        publishedThrough: Int64, logTime: Int64, lastTime: Int64? = nil
    ) {
        self.topic = topic
        self.partition = partition
        self.epoch = epoch
        self.expectedOffset = expectedOffset
        self.nextOffset = nextOffset
        self.publishedThrough = publishedThrough
        self.logTime = logTime
        self.lastTime = lastTime
    }
}

/// How far the messages of a partition's decisions have been published.
public struct PublishedUpdate: Sendable, Hashable {
    public let topic: String
    public let partition: Int32
    /// From the claim.
    public let epoch: Int64
    /// The last offset that was published: one that was decided. A lower one than before is ignored.
    public let publishedThrough: Int64

    public var place: TopicPartition { TopicPartition(topic: topic, partition: partition) }

    public init(topic: String, partition: Int32, epoch: Int64, publishedThrough: Int64) {
        self.topic = topic
        self.partition = partition
        self.epoch = epoch
        self.publishedThrough = publishedThrough
    }
}

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
public enum Logs {
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

    public static func all(in transaction: any SQLTransaction) throws(StorageError) -> [LogID] {
        var logs: [LogID] = []
        for row in try transaction.query("SELECT topic, partition, incarnation FROM logs") {
            let place = TopicPartition(topic: try row.text(0), partition: Int32(truncatingIfNeeded: try row.integer(1)))
            logs.append(LogID(place, incarnation: try row.integer(2)))
        }
        return logs
    }
}
