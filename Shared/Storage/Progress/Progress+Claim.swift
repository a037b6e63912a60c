// SPDX-License-Identifier: Apache-2.0

import Contracts

extension Progress {
    /// Takes partitions over: raises their epochs, which shuts out whoever held them before.
    ///
    /// Offsets that no longer mean anything are set aside: when the row comes from another cluster, or when it says
    /// that more was read than the partition has. The incarnation is raised then, reading starts at the earliest
    /// message, and the claim names what is left to publish of the old one. (A topic that was made anew and has already
    /// grown past the old offset is not noticed.) The same happens when the partition was claimed before and its row is
    /// gone.
    ///
    /// Where the partition no longer has what is to be read next, reading goes on at its oldest message, and the claim
    /// names the gap.
    ///
    /// A renewal (``PartitionClaimRequest/heldEpoch``) says what the store holds now, which after a failover may be an
    /// earlier offset than before. Its epoch is higher than the held one and the stored one. What the caller knew of
    /// the partition (offsets, what is published) gives way to the claim.
    ///
    /// - Parameters:
    ///   - requests: each partition once.
    ///   - owner: a name for people.
    /// - Returns: the claims in the order of the requests.
    /// - Throws: `conflict` when another replica claims one of them at the same time; `fenced` when one of the held
    ///   partitions was claimed by another replica meanwhile. Nothing is claimed then.
    public static func claim(
        _ requests: [PartitionClaimRequest], clusterID: String, owner: String, in transaction: any SQLTransaction
    ) throws(StorageError) -> [PartitionClaim] {
        var old = try ProgressRow.read(requests, in: transaction)
        try checkHeld(requests, old)
        try addLost(&old, requests, in: transaction)
        let successions = zip(requests, old).map { Succession(of: $1, $0, clusterID) }
        let left = zip(requests, old).filter { request, row in
            row.map { !$0.fits(clusterID: clusterID, highWatermark: request.highWatermark) } ?? false
        }
        try setAside(left.compactMap { request, row in row.map { (request, $0) } }, in: transaction)
        try ProgressRow.write(Array(zip(requests, successions.map(\.row))), owner: owner, in: transaction)
        try Logs.enter(
            zip(requests, successions).map { LogID($0.place, incarnation: $1.row.incarnation) }, in: transaction)
        let unpublished = try unpublished(requests, in: transaction)
        return requests.indices.map { claim(requests[$0], successions[$0], unpublished[$0]) }
    }

    /// A partition's row after the claim, and how it came to it.
    private struct Succession {
        var row: ProgressRow
        var start: PartitionClaim.Start
        var gap: Range<Int64>?

        init(of old: ProgressRow?, _ request: PartitionClaimRequest, _ clusterID: String) {
            row = old ?? ProgressRow(clusterID: clusterID)
            start = old == nil ? .new : .resumed
            if let old, !old.fits(clusterID: clusterID, highWatermark: request.highWatermark) {
                row = old.setAside(clusterID: clusterID)
                start = .setAside(previous: old.incarnation, publishedThrough: old.publishedThrough)
            }
            gap = row.passGap(before: request.lowWatermark)
            row.epoch = max(row.epoch, request.heldEpoch ?? 0) + 1
            if request.heldEpoch == nil, !row.isAtEnd(request) { row.idleClaims += 1 }
        }
    }

    private static func checkHeld(
        _ requests: [PartitionClaimRequest], _ rows: [ProgressRow?]
    ) throws(StorageError) {
        let lost = zip(requests, rows).filter { request, row in
            guard let held = request.heldEpoch, let row else { return false }
            return row.epoch > held
        }
        try checkFence(lost.map(\.0.place), lost.map { _ in 0 })
    }

    /// Stands in for rows that somebody deleted: without a new incarnation, what is read again would stand in the inbox
    /// and the outbox at positions that are taken.
    private static func addLost(
        _ rows: inout [ProgressRow?], _ requests: [PartitionClaimRequest], in transaction: any SQLTransaction
    ) throws(StorageError) {
        let missing = rows.indices.filter { rows[$0] == nil }
        let newest = try Logs.newestIncarnations(of: missing.map { requests[$0].place }, in: transaction)
        for (index, incarnation) in zip(missing, newest) {
            if let incarnation { rows[index] = ProgressRow(lost: incarnation) }
        }
    }

    /// Remembers the incarnations that have messages to publish, until these are published. (One that was set aside
    /// before is found again when a progress row is deleted twice.)
    private static func setAside(
        _ rows: [(PartitionClaimRequest, ProgressRow)], in transaction: any SQLTransaction
    ) throws(StorageError) {
        let parameters: [[SQLValue]] = rows.map { request, row in
            [
                .text(request.topic), SQLValue(request.partition), .integer(row.incarnation),
                .integer(row.publishedThrough), .integer(LogID(request.place, incarnation: row.incarnation).number),
            ]
        }
        try transaction.executeEach(
            """
            INSERT INTO set_aside (topic, partition, incarnation, published_through)
            SELECT CAST($1 AS TEXT), CAST($2 AS BIGINT), CAST($3 AS BIGINT), CAST($4 AS BIGINT) FROM outbox
            WHERE log = $5 AND log_offset > $4 LIMIT 1
            ON CONFLICT (topic, partition, incarnation) DO NOTHING
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
        _ request: PartitionClaimRequest, _ succession: Succession, _ unpublished: [SetAsideIncarnation]
    ) -> PartitionClaim {
        let row = succession.row
        return PartitionClaim(
            topic: request.topic, partition: request.partition, incarnation: row.incarnation, epoch: row.epoch,
            nextOffset: row.nextOffset == ProgressRow.earliest ? nil : row.nextOffset, gap: succession.gap,
            publishedThrough: row.publishedThrough, idleClaims: row.idleClaims, suspectOffset: row.suspectOffset,
            suspectCount: row.suspectCount, logTime: row.logTime, forgottenBefore: row.forgottenBefore,
            lastTime: row.lastTime,
            start: succession.start, unpublished: unpublished)
    }
}

/// A partition's row in the progress table.
struct ProgressRow {
    /// Stands for "from the earliest message" in the next_offset column.
    static let earliest: Int64 = -1001

    var incarnation: Int64 = 0
    var clusterID: String
    var epoch: Int64 = 0
    var nextOffset = earliest
    var publishedThrough: Int64 = -1
    var idleClaims: Int64 = 0
    var suspectOffset: Int64?
    var suspectCount: Int64 = 0
    var logTime: Int64 = -1
    var forgottenBefore: Int64 = -1
    var lastTime: Int64?
    private var isLost = false

    init(clusterID: String) {
        self.clusterID = clusterID
    }

    /// Of a partition whose row is gone, with its newest incarnation. It fits no cluster.
    init(lost incarnation: Int64) {
        clusterID = ""
        self.incarnation = incarnation
        isLost = true
    }

    init(_ row: SQLRow) throws(StorageError) {
        incarnation = try row.integer(0)
        clusterID = try row.text(1)
        epoch = try row.integer(2)
        nextOffset = try row.integer(3)
        publishedThrough = try row.integer(4)
        idleClaims = try row.integer(5)
        suspectOffset = try row.optionalInteger(6)
        suspectCount = try row.integer(7)
        logTime = try row.integer(8)
        forgottenBefore = try row.integer(9)
        lastTime = try row.optionalInteger(10)
    }

    static func read(
        _ requests: [PartitionClaimRequest], in transaction: any SQLTransaction
    ) throws(StorageError) -> [ProgressRow?] {
        let answers = try transaction.queryEach(
            """
            SELECT incarnation, cluster_id, epoch, next_offset, published_through, idle_claims, suspect_offset,
                suspect_count, log_time, forgotten_before, last_time
            FROM progress WHERE topic = $1 AND partition = $2
            """,
            requests.map { [.text($0.topic), SQLValue($0.partition)] })
        var rows: [ProgressRow?] = []
        for answer in answers {
            rows.append(try answer.first.map { (row) throws(StorageError) in try ProgressRow(row) })
        }
        return rows
    }

    static func write(
        _ rows: [(PartitionClaimRequest, ProgressRow)], owner: String, in transaction: any SQLTransaction
    ) throws(StorageError) {
        try transaction.executeEach(
            """
            INSERT INTO progress (topic, partition, incarnation, cluster_id, epoch, owner, next_offset,
                published_through, idle_claims, suspect_offset, suspect_count, log_time, forgotten_before,
                last_time)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
            ON CONFLICT (topic, partition) DO UPDATE SET
                incarnation = excluded.incarnation, cluster_id = excluded.cluster_id, epoch = excluded.epoch,
                owner = excluded.owner, next_offset = excluded.next_offset,
                published_through = excluded.published_through, idle_claims = excluded.idle_claims,
                suspect_offset = excluded.suspect_offset, suspect_count = excluded.suspect_count,
                log_time = excluded.log_time, forgotten_before = excluded.forgotten_before,
                last_time = excluded.last_time
            """,
            rows.map { request, row in
                [
                    .text(request.topic), SQLValue(request.partition), .integer(row.incarnation),
                    .text(row.clusterID), .integer(row.epoch), .text(owner), .integer(row.nextOffset),
                    .integer(row.publishedThrough), .integer(row.idleClaims), SQLValue(row.suspectOffset),
                    .integer(row.suspectCount), .integer(row.logTime), .integer(row.forgottenBefore),
                    SQLValue(row.lastTime),
                ]
            })
    }

    /// The row of the partition's next incarnation, before it is claimed.
    func setAside(clusterID: String) -> ProgressRow {
        var next = ProgressRow(clusterID: clusterID)
        next.incarnation = incarnation + 1
        next.epoch = epoch
        // What was forgotten stays forgotten, whichever log brings it again.
        next.logTime = logTime
        next.forgottenBefore = forgottenBefore
        return next
    }

    /// Moves on to the oldest message there is. Returns what was passed.
    mutating func passGap(before lowWatermark: Int64?) -> Range<Int64>? {
        guard let lowWatermark, nextOffset != Self.earliest, nextOffset < lowWatermark else { return nil }
        let gap = nextOffset..<lowWatermark
        nextOffset = lowWatermark
        lastTime = nil
        idleClaims = 0
        if let suspectOffset, suspectOffset < lowWatermark {
            self.suspectOffset = nil
            suspectCount = 0
        }
        return gap
    }

    /// Whether the partition, as the request knows it, has nothing left to read.
    func isAtEnd(_ request: PartitionClaimRequest) -> Bool {
        guard let end = request.highWatermark else { return false }
        return end == (nextOffset == Self.earliest ? request.lowWatermark ?? 0 : nextOffset)
    }

    /// Whether its offsets mean something in this cluster, with this many messages in the partition.
    func fits(clusterID: String, highWatermark: Int64?) -> Bool {
        guard !isLost, self.clusterID == clusterID else { return false }
        guard let highWatermark else { return true }
        return nextOffset <= highWatermark
    }
}
