// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka
public import Contracts
public import Logging

/// Reads topics, or some of their partitions, without being in a group: for people who look on, and for waiting for a
/// reply. Commits nothing and disturbs nobody. Where its position is no longer in the log (retention, a log that came back
/// shorter), it goes on at the oldest message by itself. Confined to one thread.
public final class KafkaTail {
    /// Where reading starts.
    public enum Start: Sendable, Hashable {
        /// The end of every partition at the moment of ``init(configuration:reading:from:logger:)``: everything produced
        /// after it returned is read.
        case end
        case beginning
        /// The first message of each partition that is not older. The embedded broker does not know: there it is
        /// ``beginning``.
        case time(Timestamp)
    }

    /// Where it began in each partition: an offset, or a negative number for its beginning.
    public let starts: [TopicPartition: Int64]
    /// Where it is in each partition: the offset behind the last record that `poll` gave, or where it began.
    public private(set) var positions: [TopicPartition: Int64]

    private let handle: ClientHandle
    private var reader = RecordReader()
    private var tracker = AssignmentTracker()
    private var errors = ConsumerErrors()

    /// - Parameter partitions: how many partitions each topic has (`KafkaAdmin.existingTopics`); all are read.
    /// - Throws: ``KafkaConfigurationError``, or ``KafkaError`` when the ends cannot be asked for.
    public convenience init(
        configuration: KafkaConfiguration, partitions: [String: Int], from start: Start, logger: Logger
    ) throws {
        let all = partitions.flatMap { topic, count in
            (0..<Int32(clamping: count)).map { TopicPartition(topic: topic, partition: $0) }
        }
        try self.init(configuration: configuration, reading: all, from: start, logger: logger)
    }

    /// - Throws: ``KafkaConfigurationError``, or ``KafkaError`` when the ends cannot be asked for.
    public init(
        configuration: KafkaConfiguration, reading partitions: [TopicPartition], from start: Start, logger: Logger
    ) throws {
        handle = try Self.client(configuration, logger)
        starts = try Self.offsets(of: partitions, start, handle)
        positions = starts
        try assign(starts)
    }

    /// Reads from these offsets.
    ///
    /// - Throws: ``KafkaConfigurationError``, or ``KafkaError`` when librdkafka does not do it.
    package init(configuration: KafkaConfiguration, readingFrom offsets: [TopicPartition: Int64], logger: Logger) throws
    {
        handle = try Self.client(configuration, logger)
        starts = offsets
        positions = offsets
        try assign(offsets)
    }

    private static func client(
        _ configuration: KafkaConfiguration, _ logger: Logger
    ) throws(KafkaConfigurationError) -> ClientHandle {
        let handle = try ClientHandle(
            role: .tail, configuration: configuration, groupID: "identitybus.tail",
            callbacks: ClientCallbacks(logger: logger))
        rd_kafka_poll_set_consumer(handle.pointer)
        return handle
    }

    private func assign(_ offsets: [TopicPartition: Int64]) throws(KafkaError) {
        guard let list = PartitionList(offsets.sorted { $0.key < $1.key }) else {
            throw KafkaError(code: KafkaError.Code.fatal)
        }
        let code = rd_kafka_assign(handle.pointer, list.pointer)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code) }
        tracker.add(Array(offsets.keys))
    }

    /// The topics of which a partition cannot be read, and why, as of the last `poll`. Over when a record has come from it, and
    /// otherwise ten seconds after the cause is gone.
    public var unreadable: [String: KafkaError] { errors.unreadable }

    /// Waits for the first record, at most `timeout`, then takes what is there. What keeps a partition from being read is kept
    /// in ``unreadable``, and tried again.
    public func poll(maxRecords: Int, timeout: Duration) -> [KafkaRecord] {
        handle.renewPassword()
        var records: [KafkaRecord] = []
        var wait = timeout
        while records.count < maxRecords {
            guard let message = rd_kafka_consumer_poll(handle.pointer, wait.kafkaMilliseconds) else { break }
            defer { rd_kafka_message_destroy(message) }
            if message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR, let record = reader.read(message, assignment: tracker)
            {
                records.append(record)
                positions[record.topicPartition] = record.offset + 1
                errors.received(from: record.topicPartition)
                wait = .zero
            } else {
                note(message)
            }
        }
        if !errors.isEmpty { reviewErrors() }
        return records
    }

    private func note(_ message: UnsafePointer<rd_kafka_message_t>) {
        guard message.pointee.err != RD_KAFKA_RESP_ERR_NO_ERROR, let topic = message.pointee.rkt else { return }
        let partition = TopicPartition(
            topic: String(cString: rd_kafka_topic_name(topic)), partition: message.pointee.partition)
        guard tracker.partitions.contains(partition) else { return }
        _ = errors.note(KafkaError(message.pointee.err), at: .partition(partition), mayPass: true, now: .now)
    }

    private func reviewErrors() {
        let (_, unread) = errors.turn(now: .now)
        PartitionList.fetchAnew(unread, of: handle.pointer)
    }

    /// Reads no more of the partition, and drops what was fetched of it.
    package func leave(_ partition: TopicPartition) {
        guard let list = PartitionList([(partition, KafkaOffset.committed)]) else { return }
        rd_kafka_pause_partitions(handle.pointer, list.pointer)
    }

    public func close() {
        rd_kafka_assign(handle.pointer, nil)
        handle.destroy(timeout: .seconds(2))
    }

    private static func offsets(
        of partitions: [TopicPartition], _ start: Start, _ handle: ClientHandle
    ) throws(KafkaError) -> [TopicPartition: Int64] {
        let deadline = Deadline(after: .seconds(10))
        let ask = PartitionBounds(client: handle.pointer, deadline: deadline)
        let fromTheBeginning = Dictionary(partitions.map { ($0, KafkaOffset.beginning) }) { first, _ in first }
        var later: [TopicPartition: Int64] = [:]
        switch start {
        case .beginning: return fromTheBeginning
        case .time where handle.isEmbedded(timeout: deadline.remaining): return fromTheBeginning
        case .time(let time): later = ask.first(of: partitions, since: time.milliseconds)
        case .end: break
        }
        let ends = ask.ask(partitions).mapValues(\.high)
        let silent = partitions.filter { ends[$0] == nil }
        guard silent.isEmpty else {
            throw KafkaError(
                code: KafkaError.Code.timedOut,
                message: "no end known of \(silent.sorted().map(\.description).joined(separator: " "))")
        }
        return ends.merging(later) { _, later in later }
    }
}
