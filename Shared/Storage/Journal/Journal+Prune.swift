// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

extension Journal {
    /// Deletes old entries, at most `limit` of them: call it again and again, in transactions of their own.
    ///
    /// Each partition is pruned from its oldest entry on (by incarnation, then by offset) up to the first one that
    /// must stay: one that was decided at or after `cutoff`, or that is not yet published. Works along the primary
    /// key, so a call reads little more than it deletes.
    ///
    /// - Parameter cutoff: in milliseconds since 1970. Must lie further back than the topics keep their messages,
    ///   or a command that is read again is no longer recognised.
    /// - Returns: how many entries were deleted. Less than `limit` means that nothing is left to delete.
    /// - Throws: `conflict` when another replica prunes at the same time.
    public static func prune(
        olderThan cutoff: Int64, limit: Int, in transaction: any SQLTransaction
    ) throws(StorageError) -> Int {
        var deleted = 0
        for fence in try PruneFence.all(in: transaction, startingBefore: cutoff) where deleted < limit {
            let ranges = try prunable(fence, before: cutoff, limit: limit - deleted, in: transaction)
            for (incarnation, last) in ranges {
                deleted += try transaction.execute(
                    """
                    DELETE FROM journal
                    WHERE topic = $1 AND partition = $2 AND incarnation = $3 AND log_offset <= $4
                    """,
                    [.text(fence.topic), .integer(fence.partition), .integer(incarnation), .integer(last)])
            }
        }
        return deleted
    }

    /// The last prunable offset of each incarnation that has prunable entries.
    private static func prunable(
        _ fence: PruneFence, before cutoff: Int64, limit: Int, in transaction: any SQLTransaction
    ) throws(StorageError) -> [(incarnation: Int64, last: Int64)] {
        let rows = try transaction.query(
            """
            SELECT incarnation, log_offset, decided_at FROM journal WHERE topic = $1 AND partition = $2
            ORDER BY incarnation, log_offset LIMIT $3
            """,
            [.text(fence.topic), .integer(fence.partition), SQLValue(limit)])
        var ranges: [(incarnation: Int64, last: Int64)] = []
        for row in rows {
            let incarnation = try row.integer(0)
            let offset = try row.integer(1)
            guard try row.integer(2) < cutoff, fence.isPublished(incarnation, offset) else { break }
            if ranges.last?.incarnation == incarnation { ranges.removeLast() }
            ranges.append((incarnation, offset))
        }
        return ranges
    }
}
