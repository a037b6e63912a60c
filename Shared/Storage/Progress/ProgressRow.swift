// SPDX-License-Identifier: Apache-2.0

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

    /// Of a partition whose row is gone, with its newest incarnation in the journal. It fits no cluster.
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
