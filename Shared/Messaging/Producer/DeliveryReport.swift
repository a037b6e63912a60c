// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka
public import Contracts

/// What became of one message given to ``KafkaProducer/send(_:token:)``. Each accepted message has exactly one report.
public struct DeliveryReport: Sendable {
    /// The number given with the message.
    public let token: Int

    /// `nil` when all in-sync replicas have the message.
    public let error: KafkaError?

    /// Where the message went; the partition is -1 when it failed before one was chosen.
    public let topicPartition: TopicPartition

    /// The message's offset; -1001 when unknown, which is always so for a failed message.
    public let offset: Int64

    public init(token: Int, error: KafkaError?, topicPartition: TopicPartition, offset: Int64) {
        self.token = token
        self.error = error
        self.topicPartition = topicPartition
        self.offset = offset
    }
}

/// Gathers delivery reports until the producer's owner asks for them. Confined to the thread that polls.
final class DeliveryCollector {
    private var reports: [DeliveryReport] = []

    /// Names by topic handle. The handles belong to ``TopicHandles``, which outlive the messages that use them.
    var names: [OpaquePointer: String] = [:]

    /// Set when the client has failed for good: every undelivered message then failed for that reason.
    var fatalError: KafkaError?

    var isEmpty: Bool { reports.isEmpty }

    func collect(_ report: UnsafePointer<rd_kafka_message_t>) {
        let message = report.pointee
        var error: KafkaError?
        if message.err != RD_KAFKA_RESP_ERR_NO_ERROR {
            // What was purged because of a fatal error failed for that reason; what was refused has one of its own.
            let isPurged = [RD_KAFKA_RESP_ERR__PURGE_QUEUE, RD_KAFKA_RESP_ERR__PURGE_INFLIGHT].contains(message.err)
            error = (isPurged ? fatalError : nil) ?? KafkaError(message.err)
        } else if message.offset == Int64(RD_KAFKA_OFFSET_INVALID) {
            // librdkafka 2.0.2 counts a message as delivered whose request was refused when a later request of the same
            // partition is accepted. That is right only for a broker that checks the producer's sequence numbers, and
            // even Kafka does not for a producer whose messages it has not yet seen in that partition. What a broker
            // has acknowledged has an offset.
            error = KafkaError(RD_KAFKA_RESP_ERR__INCONSISTENT, message: "no broker has acknowledged the message")
        }
        let name = message.rkt.flatMap { names[$0] ?? rd_kafka_topic_name($0).map { String(cString: $0) } } ?? ""
        reports.append(
            DeliveryReport(
                token: Int(bitPattern: message._private),
                error: error,
                topicPartition: TopicPartition(topic: name, partition: message.partition),
                offset: error == nil ? message.offset : Int64(RD_KAFKA_OFFSET_INVALID)))
    }

    /// All reports so far, in the order in which they came.
    func take() -> [DeliveryReport] {
        defer { reports = [] }
        return reports
    }
}
