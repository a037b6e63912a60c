// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

/// Up to where a partition's entries have been published, in all its incarnations.
struct PruneFence {
    let topic: String
    let partition: Int64
    private let incarnation: Int64
    private let publishedThrough: Int64
    /// Older incarnations that are not published to their end.
    private var setAside: [Int64: Int64] = [:]

    /// The fences of all partitions whose oldest entry was decided before `cutoff`.
    static func all(
        in transaction: any SQLTransaction, startingBefore cutoff: Int64
    ) throws(StorageError) -> [PruneFence] {
        let rows = try transaction.query(
            "SELECT topic, partition, incarnation, published_through FROM progress ORDER BY topic, partition")
        let oldest = try transaction.queryEach(
            """
            SELECT decided_at FROM journal WHERE topic = $1 AND partition = $2
            ORDER BY incarnation, log_offset LIMIT 1
            """,
            rows.map { [$0.values[0], $0.values[1]] })
        let setAside = try setAside(in: transaction)
        var fences: [PruneFence] = []
        for (row, first) in zip(rows, oldest) {
            guard let first = first.first, try first.integer(0) < cutoff else { continue }
            var fence = PruneFence(
                topic: try row.text(0), partition: try row.integer(1), incarnation: try row.integer(2),
                publishedThrough: try row.integer(3))
            fence.setAside = setAside[[row.values[0], row.values[1]]] ?? [:]
            fences.append(fence)
        }
        return fences
    }

    func isPublished(_ incarnation: Int64, _ offset: Int64) -> Bool {
        if incarnation == self.incarnation { return offset <= publishedThrough }
        guard let published = setAside[incarnation] else { return true }
        return offset <= published
    }

    private init(topic: String, partition: Int64, incarnation: Int64, publishedThrough: Int64) {
        self.topic = topic
        self.partition = partition
        self.incarnation = incarnation
        self.publishedThrough = publishedThrough
    }

    /// By topic and partition, then by incarnation.
    private static func setAside(
        in transaction: any SQLTransaction
    ) throws(StorageError) -> [[SQLValue]: [Int64: Int64]] {
        var found: [[SQLValue]: [Int64: Int64]] = [:]
        let rows = try transaction.query("SELECT topic, partition, incarnation, published_through FROM set_aside")
        for row in rows {
            found[Array(row.values[0...1]), default: [:]][try row.integer(2)] = try row.integer(3)
        }
        return found
    }
}
