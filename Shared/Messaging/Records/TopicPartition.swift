// SPDX-License-Identifier: Apache-2.0

/// The address of one partition.
///
/// Ordered by topic name, then by partition number, so that lists of partitions have one canonical order.
public struct TopicPartition: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The topic's name.
    public let topic: String

    /// The partition's number, from 0.
    public let partition: Int32

    public init(topic: String, partition: Int32) {
        self.topic = topic
        self.partition = partition
    }

    /// `topic[partition]`.
    public var description: String { "\(topic)[\(partition)]" }

    public static func < (lhs: TopicPartition, rhs: TopicPartition) -> Bool {
        (lhs.topic, lhs.partition) < (rhs.topic, rhs.partition)
    }
}
