// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

extension Progress {
    /// Takes partitions over: raises their epochs, which shuts out whoever held them before.
    ///
    /// Offsets that no longer mean anything are set aside: when the row comes from another cluster, or when it says
    /// that more was read than the partition has. The incarnation is raised then, reading starts at the earliest
    /// message, and the claim names what is left to publish of the old one. (A topic that was made anew and has already
    /// grown past the old offset is not noticed.)
    ///
    /// - Parameters:
    ///   - requests: each partition once.
    ///   - owner: a name for people.
    /// - Returns: the claims in the order of the requests.
    /// - Throws: `conflict` when another replica claims one of them at the same time.
    public static func claim(
        _ requests: [PartitionClaimRequest], clusterID: String, owner: String, in transaction: any SQLTransaction
    ) throws(StorageError) -> [PartitionClaim] {
        let old = try ProgressRow.read(requests, in: transaction)
        var claimed: [(PartitionClaimRequest, ProgressRow)] = []
        var starts: [PartitionClaim.Start] = []
        var left: [(PartitionClaimRequest, ProgressRow)] = []
        for (request, row) in zip(requests, old) {
            let (next, start) = successor(of: row, request, clusterID)
            claimed.append((request, next))
            starts.append(start)
            if case .setAside = start, let row { left.append((request, row)) }
        }
        try setAside(left, in: transaction)
        try ProgressRow.write(claimed, owner: owner, in: transaction)
        let unpublished = try unpublished(requests, in: transaction)
        return claimed.indices.map { index in
            claim(claimed[index].0, claimed[index].1, starts[index], unpublished[index])
        }
    }

    private static func successor(
        of row: ProgressRow?, _ request: PartitionClaimRequest, _ clusterID: String
    ) -> (ProgressRow, PartitionClaim.Start) {
        var next = row ?? ProgressRow(clusterID: clusterID)
        var start = row == nil ? PartitionClaim.Start.new : .resumed
        if let row, !row.fits(clusterID: clusterID, highWatermark: request.highWatermark) {
            next = ProgressRow(clusterID: clusterID)
            next.incarnation = row.incarnation + 1
            next.epoch = row.epoch
            start = .setAside(previous: row.incarnation, publishedThrough: row.publishedThrough)
        }
        next.epoch += 1
        next.idleClaims += 1
        return (next, start)
    }

    /// Remembers the incarnations that have messages to publish, until these are published.
    private static func setAside(
        _ rows: [(PartitionClaimRequest, ProgressRow)], in transaction: any SQLTransaction
    ) throws(StorageError) {
        let parameters: [[SQLValue]] = rows.map { request, row in
            [
                .text(request.topic), SQLValue(request.partition), .integer(row.incarnation),
                .integer(row.publishedThrough),
            ]
        }
        try transaction.executeEach(
            """
            INSERT INTO set_aside (topic, partition, incarnation, published_through)
            SELECT topic, partition, incarnation, $4 FROM journal
            WHERE topic = $1 AND partition = $2 AND incarnation = $3 AND log_offset > $4 LIMIT 1
            """,
            parameters)
    }

    private static func unpublished(
        _ requests: [PartitionClaimRequest], in transaction: any SQLTransaction
    ) throws(StorageError) -> [[SetAsideIncarnation]] {
        let answers = try transaction.queryEach(
            """
            SELECT incarnation, published_through FROM set_aside WHERE topic = $1 AND partition = $2
            ORDER BY incarnation
            """,
            requests.map { [.text($0.topic), SQLValue($0.partition)] })
        var found: [[SetAsideIncarnation]] = []
        for rows in answers {
            var incarnations: [SetAsideIncarnation] = []
            for row in rows {
                incarnations.append(
                    SetAsideIncarnation(incarnation: try row.integer(0), publishedThrough: try row.integer(1)))
            }
            found.append(incarnations)
        }
        return found
    }

    private static func claim(
        _ request: PartitionClaimRequest, _ row: ProgressRow, _ start: PartitionClaim.Start,
        _ unpublished: [SetAsideIncarnation]
    ) -> PartitionClaim {
        PartitionClaim(
            topic: request.topic, partition: request.partition, incarnation: row.incarnation, epoch: row.epoch,
            nextOffset: row.nextOffset == ProgressRow.earliest ? nil : row.nextOffset,
            publishedThrough: row.publishedThrough, idleClaims: row.idleClaims, suspectOffset: row.suspectOffset,
            suspectCount: row.suspectCount, start: start, unpublished: unpublished)
    }
}
