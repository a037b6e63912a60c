// SPDX-License-Identifier: Apache-2.0

import Contracts

/// What is known of the oldest generation on its way out.
public struct InboxSweep: Sendable {
    /// What may be forgotten of one partition, as it stood when the sweep began: it only grows.
    struct Fence: Sendable {
        var logTime: Int64
        var cutoff: Int64
        /// Of each log of the partition the last offset that is published; none for a log that is published to its end.
        var published: [Int64: Int64]
    }

    let generation: Int64
    var fences: [TopicPartition: Fence]
    let partitions: [Int64: TopicPartition]
    /// The last key that was looked at.
    var after: [UInt8] = []
    /// The partitions of which something is forgotten.
    var forgotten: Set<TopicPartition> = []
    /// Whether nothing is left in the generation that must stay.
    public internal(set) var isDone = false

    /// Age is measured by the log itself (``ProgressUpdate/logTime``), so that neither a wrong clock nor a long downtime
    /// forgets what may still be read again.
    func mayForget(log: Int64, offset: Int64, loggedAt: Int64) -> Bool {
        guard let partition = partitions[log], let fence = fences[partition] else { return false }
        return loggedAt < fence.cutoff && offset <= fence.published[log] ?? .max
    }
}

/// Old rows leave by whole generations. A generation lasts half of the retention, by the time of the newest record that
/// was read. When one has lasted that long, the oldest one is looked through in small steps, and what must stay of it
/// (of an idle or a lagging partition, or not yet published) is carried over into the newest one. Then it is emptied at
/// once, and its table is the next generation's.
///
/// So a row stays for once to one and a half times the retention. What may have been forgotten is written down
/// (``PartitionClaim/forgottenBefore``).
extension Inbox {
    /// Begins to look through the oldest generation, if the newest one has lasted long enough.
    ///
    /// - Parameters:
    ///   - keeper: the partition whose owner does this. Where its epoch is another by now, there is nothing to do.
    ///   - retention: in milliseconds.
    /// - Throws: `conflict` when another replica claims it at the same time.
    public static func beginSweep(
        keeper: HeldPartition, retention: Int64, in transaction: any SQLTransaction
    ) throws(StorageError) -> InboxSweep? {
        guard try hold(keeper, in: transaction),
            let state = try transaction.query("SELECT newest, begun_at FROM inbox_state WHERE id = 1").first,
            let newest = try transaction.query("SELECT MAX(log_time) FROM progress").first?.optionalInteger(0),
            newest >= 0
        else { return nil }
        let begunAt = try state.integer(1)
        // The first generation begins with the first records.
        if begunAt < 0 {
            try transaction.execute("UPDATE inbox_state SET begun_at = $1 WHERE id = 1", [.integer(newest)])
        }
        guard begunAt >= 0, newest - begunAt >= retention / 2 else { return nil }
        let oldest = try state.integer(0) - slotCount + 1
        let logs = try Logs.all(in: transaction)
        var sweep = InboxSweep(
            generation: oldest, fences: [:],
            partitions: Dictionary(logs.map { ($0.number, $0.partition) }, uniquingKeysWith: { first, _ in first }))
        sweep.isDone = oldest < 0
        for row in try transaction.query(
            "SELECT topic, partition, incarnation, published_through, log_time FROM progress")
        {
            let place = TopicPartition(topic: try row.text(0), partition: Int32(truncatingIfNeeded: try row.integer(1)))
            let log = LogID(place, incarnation: try row.integer(2))
            let logTime = try row.integer(4)
            sweep.fences[place] = InboxSweep.Fence(
                logTime: logTime, cutoff: logTime < 0 ? .min : logTime - retention,
                published: [log.number: try row.integer(3)])
        }
        for row in try transaction.query("SELECT topic, partition, incarnation, published_through FROM set_aside") {
            let place = TopicPartition(topic: try row.text(0), partition: Int32(truncatingIfNeeded: try row.integer(1)))
            let log = LogID(place, incarnation: try row.integer(2))
            sweep.fences[place]?.published[log.number] = try row.integer(3)
        }
        return sweep
    }

    /// Looks at the next `limit` rows, and carries over what must stay. Costs a read for each row, and writes only what
    /// stays.
    ///
    /// - Throws: `conflict` when another replica took over, or the store went back: begin anew.
    public static func carryOver(
        _ sweep: inout InboxSweep, keeper: HeldPartition, limit: Int, in transaction: any SQLTransaction
    ) throws(StorageError) {
        guard !sweep.isDone else { return }
        let isHeld = try hold(keeper, in: transaction)
        let newest = try generation(in: transaction)
        guard isHeld, newest == sweep.generation + slotCount - 1 else {
            throw StorageError(kind: .conflict, message: "another replica sweeps the inbox")
        }
        let (from, to) = (tables[slot(sweep.generation)], tables[slot(newest)])
        let rows = try transaction.query(
            "SELECT key, log, log_offset, logged_at FROM \(from) WHERE key > $1 ORDER BY key LIMIT $2",
            [.blob(sweep.after), SQLValue(limit)])
        var staying: [[SQLValue]] = []
        for row in rows {
            let (key, log) = (try row.blob(0), try row.integer(1))
            if sweep.mayForget(log: log, offset: try row.integer(2), loggedAt: try row.integer(3)) {
                if let partition = sweep.partitions[log] { sweep.forgotten.insert(partition) }
            } else {
                staying.append([.blob(key)])
            }
            sweep.after = key
        }
        try transaction.executeEach(
            "INSERT INTO \(to) (\(columns)) SELECT \(columns) FROM \(from) WHERE key = $1 ON CONFLICT (key) DO NOTHING",
            staying)
        sweep.isDone = rows.count < limit
    }

    /// Empties the oldest generation and begins the next one in its table. To be called in an exclusive transaction
    /// (``SQLDatabase/exclusiveTransaction(_:)``), when the sweep is done.
    ///
    /// - Throws: `conflict` when another replica took over, the store went back, or a batch takes long: begin anew; and
    ///   ``StorageError/generationIsRead``.
    public static func turn(
        _ sweep: InboxSweep, keeper: HeldPartition, in transaction: any SQLTransaction
    ) throws(StorageError) {
        if transaction.engine == .postgresql { try transaction.execute("SET LOCAL lock_timeout TO '1s'") }
        // The rows of progress first, in order, then the state, as every batch does it: nobody waits in a circle.
        guard sweep.isDone, try hold(keeper, in: transaction) else {
            throw StorageError(kind: .conflict, message: "another replica sweeps the inbox")
        }
        for (partition, fence) in sweep.fences.sorted(by: { $0.key < $1.key }) {
            let place: [SQLValue] = [.text(partition.topic), SQLValue(partition.partition)]
            let count = try transaction.execute(
                """
                UPDATE progress SET forgotten_before =
                    CASE WHEN forgotten_before < $3 THEN $3 ELSE forgotten_before END
                WHERE topic = $1 AND partition = $2 AND log_time >= $4
                """,
                place + [.integer(sweep.forgotten.contains(partition) ? fence.cutoff : -1), .integer(fence.logTime)])
            guard count == 1 else { throw StorageError(kind: .conflict, message: "the store went back in the sweep") }
        }
        let next = sweep.generation + slotCount
        let count = try transaction.execute(
            """
            UPDATE inbox_state SET newest = $1, begun_at = (SELECT MAX(log_time) FROM progress)
            WHERE id = 1 AND newest = $2
            """, [.integer(next), .integer(next - 1)])
        guard count == 1 else { throw StorageError(kind: .conflict, message: "another generation began meanwhile") }
        let (table, mentions) = (tables[slot(next)], Mentions.tables[slot(next)])
        switch transaction.engine {
        case .postgresql:
            do throws(StorageError) {
                try transaction.execute("LOCK TABLE \(table), \(mentions) IN ACCESS EXCLUSIVE MODE NOWAIT")
            } catch {
                throw error.isLockTimeout ? .generationIsRead : error
            }
            try transaction.execute("TRUNCATE \(table), \(mentions)")
        case .sqlite:
            // Without a condition SQLite drops the pages and looks at no row.
            try transaction.execute("DELETE FROM \(table)")
            try transaction.execute("DELETE FROM \(mentions)")
        }
    }

    /// Whether the epoch is still the keeper's; locks the row against a claim.
    private static func hold(_ keeper: HeldPartition, in transaction: any SQLTransaction) throws(StorageError) -> Bool {
        try transaction.execute(
            "UPDATE progress SET epoch = epoch WHERE topic = $1 AND partition = $2 AND epoch = $3", keeper.parameters)
            == 1
    }
}

extension StorageError {
    /// The generation of the inbox that is to be emptied is being read, by a back-up, say. That holds nobody up.
    package static let generationIsRead = StorageError(
        kind: .conflict, message: "somebody reads the generation that is to be emptied", sqlState: nil)
}
