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
