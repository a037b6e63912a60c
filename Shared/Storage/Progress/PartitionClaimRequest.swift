// SPDX-License-Identifier: Apache-2.0

/// A partition that Kafka has assigned to this replica, or that this replica holds and claims again.
public struct PartitionClaimRequest: Sendable, Hashable {
    public let topic: String
    public let partition: Int32
    /// The offset of the oldest message that the partition still has, if it is known.
    public let lowWatermark: Int64?
    /// The offset that the partition's next message will get, if it is known.
    public let highWatermark: Int64?
    /// For a renewal: the epoch by which this replica believes to hold the partition. To be made after a new
    /// connection (``SQLDatabase/connectionNumber``), because the store behind it may be an earlier copy.
    public let heldEpoch: Int64?

    public init(
        topic: String, partition: Int32, lowWatermark: Int64? = nil, highWatermark: Int64? = nil,
        heldEpoch: Int64? = nil
    ) {
        self.topic = topic
        self.partition = partition
        self.lowWatermark = lowWatermark
        self.highWatermark = highWatermark
        self.heldEpoch = heldEpoch
    }
}
