// SPDX-License-Identifier: Apache-2.0

import Contracts

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

    var place: TopicPartition { TopicPartition(topic: topic, partition: partition) }

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

/// What a replica holds after it has claimed a partition.
public struct PartitionClaim: Sendable, Hashable {
    /// How the claim relates to what was known of the partition.
    public enum Start: Sendable, Hashable {
        /// The partition was never read.
        case new
        /// Reading goes on where it stopped.
        case resumed
        /// The offsets no longer meant anything (another cluster, a topic made anew), or nobody knows them any more (the
        /// progress was deleted). A new incarnation has begun.
        case setAside(previous: Int64, publishedThrough: Int64)
    }

    public let topic: String
    public let partition: Int32
    public let incarnation: Int64
    /// Proves ownership in every later update: it is raised by each claim.
    public let epoch: Int64
    /// Where to read on. Nil leaves it to the broker: from the earliest message.
    public let nextOffset: Int64?
    /// Offsets that were never read and that the partition no longer has. Reading goes on behind them. Only the claim
    /// that finds them names them.
    public let gap: Range<Int64>?
    /// The last offset of this incarnation that was published, -1 for none.
    public let publishedThrough: Int64
    /// How often the partition was claimed since its offset last moved, this claim included. A crash loop shows here.
    /// Renewals do not count, nor claims of a partition that has nothing to read, and a
    /// ``Progress/release(_:in:)`` starts anew.
    public let idleClaims: Int64
    /// The offset that was marked as suspect and not passed since.
    public let suspectOffset: Int64?
    /// How often it was marked.
    public let suspectCount: Int64
    /// The highest time of a record that was read, in milliseconds since 1970, -1 for none. Of all incarnations.
    public let logTime: Int64
    /// Decisions on records that are older than this may have been forgotten: milliseconds since 1970, -1 for none.
    /// Of all incarnations.
    public let forgottenBefore: Int64
    /// The time of the record just before `nextOffset`, see ``ProgressUpdate/lastTime``; nil when it is not known.
    public let lastTime: Int64?
    public let start: Start
    /// Earlier incarnations with messages still to be published, oldest first. They come before everything else.
    public let unpublished: [SetAsideIncarnation]

    public var held: HeldPartition { HeldPartition(topic: topic, partition: partition, epoch: epoch) }
    public var log: LogID { LogID(TopicPartition(topic: topic, partition: partition), incarnation: incarnation) }
}

/// An earlier incarnation of a partition whose messages were not all published.
public struct SetAsideIncarnation: Sendable, Hashable {
    public let incarnation: Int64
    /// The last offset that was published, -1 for none.
    public let publishedThrough: Int64

    public init(incarnation: Int64, publishedThrough: Int64) {
        self.incarnation = incarnation
        self.publishedThrough = publishedThrough
    }
}

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
