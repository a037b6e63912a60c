// SPDX-License-Identifier: Apache-2.0

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
