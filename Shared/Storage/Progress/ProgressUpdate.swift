// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

/// How far a replica has got in a partition.
public struct ProgressUpdate: Sendable, Hashable {
    public let topic: String
    public let partition: Int32
    /// From the claim.
    public let epoch: Int64
    /// The offset to read next.
    public let nextOffset: Int64
    /// The last offset that was published, -1 for none. A lower one than before is ignored.
    public let publishedThrough: Int64

    public init(topic: String, partition: Int32, epoch: Int64, nextOffset: Int64, publishedThrough: Int64) {
        self.topic = topic
        self.partition = partition
        self.epoch = epoch
        self.nextOffset = nextOffset
        self.publishedThrough = publishedThrough
    }
}
