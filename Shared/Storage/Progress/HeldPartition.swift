// SPDX-License-Identifier: Apache-2.0

/// A partition, and the epoch of the claim by which a replica holds it.
public struct HeldPartition: Sendable, Hashable {
    public let topic: String
    public let partition: Int32
    /// From the claim.
    public let epoch: Int64

    public init(topic: String, partition: Int32, epoch: Int64) {
        self.topic = topic
        self.partition = partition
        self.epoch = epoch
    }

    /// Topic and partition, as `$1` and `$2`.
    var place: [SQLValue] { [.text(topic), SQLValue(partition)] }
    /// Topic, partition and epoch, as `$1` to `$3`.
    var parameters: [SQLValue] { place + [.integer(epoch)] }
}
