// SPDX-License-Identifier: Apache-2.0

/// How far a replica has got in a partition.
public struct ProgressUpdate: Sendable, Hashable {
    public let topic: String
    public let partition: Int32
    /// From the claim.
    public let epoch: Int64
    /// Where the store has to stand: the `nextOffset` of the claim, later the one of the update before. Nil stands for
    /// "from the earliest message", as in the claim.
    public let expectedOffset: Int64?
    /// The offset to read next.
    public let nextOffset: Int64
    /// The last offset that was published, -1 for none. A lower one than before is ignored.
    public let publishedThrough: Int64
    /// The highest time that Kafka gave to a record of this partition so far, in milliseconds since 1970, -1 for none.
    /// A lower one than before is ignored. Old entries are forgotten by it (``Journal/prune(partitions:retention:limit:in:)``),
    /// so a time that a producer made up (`CreateTime`) must not get here from the future.
    public let logTime: Int64
    /// The time of the record just before `nextOffset`, exactly as the log has it. By it a log is known again: one that
    /// was made anew under the same name, and has grown past this offset, has another record there.
    public let lastTime: Int64?

    public init(
        topic: String, partition: Int32, epoch: Int64, expectedOffset: Int64?, nextOffset: Int64,
        publishedThrough: Int64, logTime: Int64, lastTime: Int64? = nil
    ) {
        self.topic = topic
        self.partition = partition
        self.epoch = epoch
        self.expectedOffset = expectedOffset
        self.nextOffset = nextOffset
        self.publishedThrough = publishedThrough
        self.logTime = logTime
        self.lastTime = lastTime
    }
}
