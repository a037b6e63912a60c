// SPDX-License-Identifier: Apache-2.0

/// The logical offsets that may stand where ``RebalanceHandler/partitionsAssigned(_:)`` gives a start offset.
public enum KafkaOffset {
    /// The oldest message that the broker still has.
    public static let beginning: Int64 = -2

    /// After the newest message.
    public static let end: Int64 = -1

    /// The group's committed offset. Without one, the partition shows in ``KafkaConsumer/takeOutOfRange()``.
    public static let committed: Int64 = -1000
}
