// SPDX-License-Identifier: Apache-2.0

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
    public var headers: [KafkaHeader]

    public init(
        topicPartition: TopicPartition,
        offset: Int64,
        timestampMs: Int64 = -1,
        key: [UInt8]?,
        value: [UInt8]?,
        headers: [KafkaHeader] = []
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

/// A message to be produced.
public struct ProducerRecord: Sendable {
    /// The topic. It is not created on the way.
    public var topic: String

    /// The key, which also chooses the partition (murmur2, as Java's clients do); `nil` spreads messages at random.
    public var key: [UInt8]?

    /// The value; `nil` is a tombstone.
    public var value: [UInt8]?

    /// The headers, sent in this order.
    public var headers: [KafkaHeader]

    /// A fixed partition, or `nil` to let the key choose.
    public var partition: Int32?

    /// Milliseconds since 1970 UTC, or `nil` for the moment of sending.
    public var timestampMs: Int64?

    public init(
        topic: String,
        key: [UInt8]? = nil,
        value: [UInt8]?,
        headers: [KafkaHeader] = [],
        partition: Int32? = nil,
        timestampMs: Int64? = nil
    ) {
        self.topic = topic
        self.key = key
        self.value = value
        self.headers = headers
        self.partition = partition
        self.timestampMs = timestampMs
    }
}

/// One header of a message. Names may repeat inside a message; the order is kept.
public struct KafkaHeader: Sendable, Hashable {
    /// The header's name, for people and for comparing: bytes that are not UTF-8 are replaced with U+FFFD.
    public let name: String

    /// The name's bytes when they are not UTF-8, otherwise `nil`. A header that is passed on keeps them.
    public let rawName: [UInt8]?

    /// The header's bytes, `nil` for a null value (which is not the same as an empty one).
    public var value: [UInt8]?

    public init(name: String, value: [UInt8]?) {
        self.name = name
        self.rawName = nil
        self.value = value
    }

    /// A header as it was read: Kafka does not demand that names be UTF-8.
    public init(nameBytes: [UInt8], value: [UInt8]?) {
        name = String(decoding: nameBytes, as: UTF8.self)
        rawName = Array(name.utf8) == nameBytes ? nil : nameBytes
        self.value = value
    }
}

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

/// The logical offsets that may stand where ``RebalanceHandler/partitionsAssigned(_:)`` gives a start offset.
public enum KafkaOffset {
    /// The oldest message that the broker still has.
    public static let beginning: Int64 = -2

    /// After the newest message.
    public static let end: Int64 = -1

    /// The group's committed offset. Without one, the partition shows in ``KafkaConsumer/takeOutOfRange()``.
    public static let committed: Int64 = -1000
}
