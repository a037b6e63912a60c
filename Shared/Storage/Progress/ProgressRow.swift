// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

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

    init(clusterID: String) {
        self.clusterID = clusterID
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
    }

    static func read(
        _ requests: [PartitionClaimRequest], in transaction: any SQLTransaction
    ) throws(StorageError) -> [ProgressRow?] {
        let answers = try transaction.queryEach(
            """
            SELECT incarnation, cluster_id, epoch, next_offset, published_through, idle_claims, suspect_offset,
                suspect_count
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
                published_through, idle_claims, suspect_offset, suspect_count)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
            ON CONFLICT (topic, partition) DO UPDATE SET
                incarnation = excluded.incarnation, cluster_id = excluded.cluster_id, epoch = excluded.epoch,
                owner = excluded.owner, next_offset = excluded.next_offset,
                published_through = excluded.published_through, idle_claims = excluded.idle_claims,
                suspect_offset = excluded.suspect_offset, suspect_count = excluded.suspect_count
            """,
            rows.map { request, row in
                [
                    .text(request.topic), SQLValue(request.partition), .integer(row.incarnation),
                    .text(row.clusterID), .integer(row.epoch), .text(owner), .integer(row.nextOffset),
                    .integer(row.publishedThrough), .integer(row.idleClaims), SQLValue(row.suspectOffset),
                    .integer(row.suspectCount),
                ]
            })
    }

    /// Whether its offsets mean something in this cluster, with this many messages in the partition.
    func fits(clusterID: String, highWatermark: Int64?) -> Bool {
        guard self.clusterID == clusterID else { return false }
        guard let highWatermark else { return true }
        return nextOffset <= highWatermark
    }
}
