// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

/// A partition that Kafka has assigned to this replica.
public struct PartitionClaimRequest: Sendable, Hashable {
    public let topic: String
    public let partition: Int32
    /// The offset that the partition's next message will get, if it is known.
    public let highWatermark: Int64?

    public init(topic: String, partition: Int32, highWatermark: Int64?) {
        self.topic = topic
        self.partition = partition
        self.highWatermark = highWatermark
    }
}
