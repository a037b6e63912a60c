// SPDX-License-Identifier: Apache-2.0

/// How far the messages of a partition's decisions have been published.
public struct PublishedUpdate: Sendable, Hashable {
    public let topic: String
    public let partition: Int32
    /// From the claim.
    public let epoch: Int64
    /// The last offset that was published: one that was decided. A lower one than before is ignored.
    public let publishedThrough: Int64

    public init(topic: String, partition: Int32, epoch: Int64, publishedThrough: Int64) {
        self.topic = topic
        self.partition = partition
        self.epoch = epoch
        self.publishedThrough = publishedThrough
    }
}
