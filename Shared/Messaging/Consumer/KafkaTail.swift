// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

internal import CLibrdkafka
public import Logging

/// Reads whole topics without being in a group: for people who look on, and for waiting for a reply. Commits nothing
/// and disturbs nobody. Where its position is no longer in the log (retention, a log that came back shorter), it goes on
/// at the oldest message by itself. Confined to one thread.
public final class KafkaTail {
    /// Where reading starts.
    public enum Start: Sendable, Hashable {
        /// The end of every partition at the moment of ``init(configuration:partitions:from:logger:)``: everything
        /// produced after it returned is read.
        case end
        case beginning
    }

    private let handle: ClientHandle
    private var reader = RecordReader()
    private var tracker = AssignmentTracker()

    /// - Parameter partitions: how many partitions each topic has (`KafkaAdmin.existingTopics`).
    /// - Throws: ``KafkaConfigurationError``, or ``KafkaError`` when the ends cannot be asked for.
    public init(
        configuration: KafkaConfiguration, partitions: [String: Int], from start: Start, logger: Logger
    ) throws {
        let callbacks = ClientCallbacks(logger: logger)
        handle = try ClientHandle(
            role: .tail, configuration: configuration, groupID: "identitybus.tail", callbacks: callbacks)
        rd_kafka_poll_set_consumer(handle.pointer)
        let all = partitions.flatMap { topic, count in
            (0..<Int32(clamping: count)).map { TopicPartition(topic: topic, partition: $0) }
        }
        var offsets: [(key: TopicPartition, value: Int64)] = []
        for partition in all.sorted() {
            offsets.append(
                (partition, start == .beginning ? KafkaOffset.beginning : try Self.end(of: partition, handle)))
        }
        guard let list = PartitionList(offsets) else { throw KafkaError(code: KafkaError.Code.fatal) }
        let code = rd_kafka_assign(handle.pointer, list.pointer)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code) }
        tracker.add(all)
    }

    /// Waits for the first record, at most `timeout`, then takes what is there. Errors of single partitions are left
    /// to librdkafka, which tries again.
    public func poll(maxRecords: Int, timeout: Duration) -> [KafkaRecord] {
        var records: [KafkaRecord] = []
        var wait = timeout
        while records.count < maxRecords {
            guard let message = rd_kafka_consumer_poll(handle.pointer, wait.kafkaMilliseconds) else { break }
            defer { rd_kafka_message_destroy(message) }
            if message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR, let record = reader.read(message, assignment: tracker)
            {
                records.append(record)
                wait = .zero
            }
        }
        return records
    }

    public func close() {
        rd_kafka_assign(handle.pointer, nil)
        handle.destroy(timeout: .seconds(2))
    }

    private static func end(of partition: TopicPartition, _ handle: ClientHandle) throws(KafkaError) -> Int64 {
        var low: Int64 = 0
        var high: Int64 = 0
        let code = rd_kafka_query_watermark_offsets(
            handle.pointer, partition.topic, partition.partition, &low, &high, 10_000)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code) }
        return high
    }
}
