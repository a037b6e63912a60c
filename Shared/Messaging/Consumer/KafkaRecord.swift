// SPDX-License-Identifier: Apache-2.0

import CLibrdkafka
public import Contracts
import Glibc

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

/// Copies messages out of librdkafka's buffers.
///
/// Keeps the topic's name as one string per topic handle: making it anew would be the dearest part of reading a
/// message. A handle lives at least as long as one of its partitions is assigned, so the names are forgotten whenever
/// the assignment changes.
struct RecordReader {
    private struct Topic {
        let handle: OpaquePointer
        let name: String
        let partitions: Set<Int32>
    }

    private var topics: [Topic] = []
    private var current = 0
    private var changes = -1

    /// The record, or `nil` for a message of a partition that is not assigned.
    mutating func read(
        _ pointer: UnsafePointer<rd_kafka_message_t>, assignment: AssignmentTracker
    ) -> KafkaRecord? {
        let message = pointer.pointee
        guard let handle = message.rkt else { return nil }
        if changes != assignment.changes {
            topics = []
            changes = assignment.changes
        }
        let topic = topic(of: handle, assignment: assignment)
        guard topic.partitions.contains(message.partition) else { return nil }
        return KafkaRecord(
            topicPartition: TopicPartition(topic: topic.name, partition: message.partition),
            offset: message.offset,
            timestampMs: Self.timestamp(pointer),
            key: Self.bytes(message.key, message.key_len),
            value: Self.bytes(message.payload, message.len),
            headers: Self.headers(pointer))
    }

    private static func timestamp(_ message: UnsafePointer<rd_kafka_message_t>) -> Int64 {
        var type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
        let time = rd_kafka_message_timestamp(message, &type)
        return type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? -1 : time
    }

    private static func headers(_ message: UnsafePointer<rd_kafka_message_t>) -> [Header] {
        var list: OpaquePointer?
        guard rd_kafka_message_headers(message, &list) == RD_KAFKA_RESP_ERR_NO_ERROR, let list else { return [] }
        let count = rd_kafka_header_cnt(list)
        var headers: [Header] = []
        headers.reserveCapacity(count)
        for index in 0..<count {
            var name: UnsafePointer<CChar>?
            var value: UnsafeRawPointer?
            var size = 0
            let code = rd_kafka_header_get_all(list, index, &name, &value, &size)
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let name else { break }
            // Validating is cheaper than comparing afterwards, and nearly all names are UTF-8.
            if let text = String(validatingCString: name) {
                headers.append(Header(text, bytes(value, size)))
            } else if let raw = bytes(name, strlen(name)) {
                headers.append(Header(nameBytes: raw, bytes(value, size)))
            }
        }
        return headers
    }

    private mutating func topic(of handle: OpaquePointer, assignment: AssignmentTracker) -> Topic {
        if current < topics.count, topics[current].handle == handle { return topics[current] }
        if let known = topics.firstIndex(where: { $0.handle == handle }) {
            current = known
            return topics[known]
        }
        let name = rd_kafka_topic_name(handle).map { String(cString: $0) } ?? ""
        let numbers = assignment.partitions.lazy.filter { $0.topic == name }.map(\.partition)
        let topic = Topic(handle: handle, name: name, partitions: Set(numbers))
        current = topics.count
        topics.append(topic)
        return topic
    }

    /// A null pointer is a null field; a length of 0 alone is an empty one.
    private static func bytes(_ start: UnsafeRawPointer?, _ count: Int) -> [UInt8]? {
        guard let start else { return nil }
        return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
    }
}
