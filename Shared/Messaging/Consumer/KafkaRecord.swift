// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// A message read from Kafka, copied out of librdkafka's buffers: it may be kept and sent anywhere.
public struct KafkaRecord: Sendable {
    /// Where the message was read.
    public var topicPartition: TopicPartition

    /// The message's offset in its partition.
    public var offset: Int64

    /// Milliseconds since 1970 UTC, as the producer or the broker wrote them; -1 when the message has none.
    public var timestampMs: Int64

    /// The key, `nil` for a message without one. An empty key is not `nil`.
    public var key: [UInt8]?

    /// The value, `nil` for a tombstone. An empty value is not `nil`.
    public var value: [UInt8]?

    /// The headers in the order of the message.
    public var headers: [Header]

    public init(
        topicPartition: TopicPartition,
        offset: Int64,
        timestampMs: Int64 = -1,
        key: [UInt8]?,
        value: [UInt8]?,
        headers: [Header] = []
    ) {
        self.topicPartition = topicPartition
        self.offset = offset
        self.timestampMs = timestampMs
        self.key = key
        self.value = value
        self.headers = headers
    }

    /// The bytes of the last header of that name; `nil` when there is none or when its value is null.
    public func header(_ name: String) -> [UInt8]? {
        headers.last { $0.name == name }?.value
    }
}

/// The logical offsets that may stand where ``RebalanceHandler/partitionsAssigned(_:)`` gives a start offset.
public enum KafkaOffset {
    /// The oldest message that the broker still has.
    public static let beginning: Int64 = -2

    /// After the newest message.
    public static let end: Int64 = -1

    /// The group's committed offset. Without one, the partition shows in ``KafkaConsumer/takeOutOfRange()``.
    public static let committed: Int64 = -1000
}
