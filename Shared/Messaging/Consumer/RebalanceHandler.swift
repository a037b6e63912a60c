// SPDX-License-Identifier: Apache-2.0

/// Told which partitions come and go.
///
/// All calls are made synchronously by the thread that polls the consumer, from inside its `poll` or `close`, and never
/// with an empty list. They may call `commit`, `committed`, `bounds` and `clusterID` of that consumer, but nothing else of
/// it. The whole group waits until they return: be quick.
public protocol RebalanceHandler: AnyObject {
    /// The partitions are about to become ours; nothing of them has been read yet.
    ///
    /// - Returns: where to start reading, as an offset or one of ``KafkaOffset``. Partitions that are missing start at
    ///   the group's committed offset, and without one show in ``KafkaConsumer/takeOutOfRange()``.
    func partitionsAssigned(_ partitions: [TopicPartition]) -> [TopicPartition: Int64]

    /// The partitions are about to be given up in good order: they are still ours during the call, and the last
    /// offsets may be committed. Records of them that the running `poll` has read are not returned.
    func partitionsRevoked(_ partitions: [TopicPartition])

    /// The partitions are someone else's already (session timed out, thrown out of the group): do not commit.
    func partitionsLost(_ partitions: [TopicPartition])
}
