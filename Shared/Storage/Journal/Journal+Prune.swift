// SPDX-License-Identifier: Apache-2.0

extension Journal {
    /// Deletes old entries, at most `limit` of them: call it again and again, in transactions of their own.
    ///
    /// Each partition is pruned from its oldest entry on (by incarnation, then by offset) up to the first one that
    /// must stay: one that is too young, or not yet published. Works along the primary key, so a call reads little
    /// more than it deletes. What may have been forgotten is written down (``PartitionClaim/forgottenBefore``).
    ///
    /// Age is measured by the log itself (``ProgressUpdate/logTime``), so that neither a wrong clock nor a long
    /// downtime forgets what may still be read again. A partition without a log time keeps everything.
    ///
    /// - Parameters:
    ///   - partitions: those that the caller holds. One whose epoch is another by now is passed over.
    ///   - retention: in milliseconds. An entry whose record is that much older than the newest one read goes.
    /// - Returns: how many entries were deleted. Less than `limit` means that nothing is left to delete.
    /// - Throws: `conflict` when another replica claims one of the partitions at the same time.
    public static func prune(
        partitions: [HeldPartition], retention: Int64, limit: Int, in transaction: any SQLTransaction
    ) throws(StorageError) -> Int {
        var ranges: [[SQLValue]] = []
        var forgotten: [[SQLValue]] = []
        var rest = limit
        for fence in try PruneFence.of(partitions, retention: retention, in: transaction) where rest > 0 {
            let prunable = try prunable(fence, limit: rest, in: transaction)
            guard prunable.count > 0 else { continue }
            rest -= prunable.count
            ranges += prunable.ranges.map { range in
                fence.held.place + [.integer(range.incarnation), .integer(range.last)]
            }
            forgotten.append(fence.held.parameters + [.integer(fence.cutoff)])
        }
        let deleted = try transaction.executeEach(
            "DELETE FROM journal WHERE topic = $1 AND partition = $2 AND incarnation = $3 AND log_offset <= $4",
            ranges)
        try transaction.executeEach(
            """
            UPDATE progress
            SET forgotten_before = CASE WHEN forgotten_before < $4 THEN $4 ELSE forgotten_before END
            WHERE topic = $1 AND partition = $2 AND epoch = $3
            """,
            forgotten)
        return deleted.reduce(0, +)
    }

    /// How many entries are prunable, and the last prunable offset of each incarnation that has some.
    private static func prunable(
        _ fence: PruneFence, limit: Int, in transaction: any SQLTransaction
    ) throws(StorageError) -> (count: Int, ranges: [(incarnation: Int64, last: Int64)]) {
        let rows = try transaction.query(
            """
            SELECT incarnation, log_offset, \(loggedAt) FROM journal WHERE topic = $1 AND partition = $2
            ORDER BY incarnation, log_offset LIMIT $3
            """,
            fence.held.place + [SQLValue(limit)])
        var count = 0
        var ranges: [(incarnation: Int64, last: Int64)] = []
        for row in rows {
            let incarnation = try row.integer(0)
            let offset = try row.integer(1)
            guard try row.integer(2) < fence.cutoff, fence.isPublished(incarnation, offset) else { break }
            if ranges.last?.incarnation == incarnation { ranges.removeLast() }
            ranges.append((incarnation, offset))
            count += 1
        }
        return (count, ranges)
    }
}

/// What of a partition may be forgotten: what is older than the cutoff and published, in all its incarnations.
struct PruneFence {
    let held: HeldPartition
    /// By the log's own time, in milliseconds since 1970.
    let cutoff: Int64
    private let incarnation: Int64
    private let publishedThrough: Int64
    /// Older incarnations that are not published to their end.
    private var setAside: [Int64: Int64] = [:]

    /// The fences of those partitions that are still held, and whose oldest entry is older than their cutoff.
    static func of(
        _ partitions: [HeldPartition], retention: Int64, in transaction: any SQLTransaction
    ) throws(StorageError) -> [PruneFence] {
        let rows = try transaction.queryEach(
            """
            SELECT incarnation, published_through, log_time FROM progress
            WHERE topic = $1 AND partition = $2 AND epoch = $3 AND log_time >= 0
            """,
            partitions.map(\.parameters))
        var held: [PruneFence] = []
        for (partition, answer) in zip(partitions, rows) {
            guard let row = answer.first else { continue }
            held.append(
                PruneFence(
                    held: partition, cutoff: try row.integer(2) - retention, incarnation: try row.integer(0),
                    publishedThrough: try row.integer(1)))
        }
        var fences = try held.withOldEntries(in: transaction)
        let setAside = try transaction.queryEach(
            "SELECT incarnation, published_through FROM set_aside WHERE topic = $1 AND partition = $2",
            fences.map(\.held.place))
        for (index, rows) in setAside.enumerated() {
            for row in rows { fences[index].setAside[try row.integer(0)] = try row.integer(1) }
        }
        return fences
    }

    func isPublished(_ incarnation: Int64, _ offset: Int64) -> Bool {
        if incarnation == self.incarnation { return offset <= publishedThrough }
        guard let published = setAside[incarnation] else { return true }
        return offset <= published
    }

    private init(held: HeldPartition, cutoff: Int64, incarnation: Int64, publishedThrough: Int64) {
        self.held = held
        self.cutoff = cutoff
        self.incarnation = incarnation
        self.publishedThrough = publishedThrough
    }
}

extension [PruneFence] {
    fileprivate func withOldEntries(in transaction: any SQLTransaction) throws(StorageError) -> [PruneFence] {
        let oldest = try transaction.queryEach(
            """
            SELECT \(Journal.loggedAt) FROM journal WHERE topic = $1 AND partition = $2
            ORDER BY incarnation, log_offset LIMIT 1
            """,
            map(\.held.place))
        var found: [PruneFence] = []
        for (fence, rows) in zip(self, oldest) {
            if let row = rows.first, try row.integer(0) < fence.cutoff { found.append(fence) }
        }
        return found
    }
}
