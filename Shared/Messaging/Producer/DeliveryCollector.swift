// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

internal import CLibrdkafka

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
            error = fatalError ?? KafkaError(message.err)
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
