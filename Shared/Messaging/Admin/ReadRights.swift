// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka
import Contracts
package import Logging

/// Whether topics may be read and groups be joined, found out by trying, without effect: nothing is committed, and no group
/// has another member. Blocks.
package enum ReadRights {
    /// Reads at the end of the first partition of each topic.
    ///
    /// - Returns: what the brokers refuse, and the topics whose leaders have not answered in time.
    /// - Throws: when no client can be made.
    package static func look(
        at topics: some Sequence<String>, _ configuration: KafkaConfiguration, timeout: Duration, logger: Logger
    ) throws -> (denied: [String: KafkaError], unanswered: Set<String>) {
        var unanswered = Set(topics)
        guard !unanswered.isEmpty else { return ([:], []) }
        let handle = try client("identitybus.look", configuration, logger)
        defer {
            rd_kafka_assign(handle.pointer, nil)
            handle.destroy(timeout: .zero)
        }
        let ends = unanswered.map { (key: TopicPartition(topic: $0, partition: 0), value: KafkaOffset.end) }
        guard let list = PartitionList(ends) else { throw KafkaError(code: KafkaError.Code.fatal) }
        let code = rd_kafka_assign(handle.pointer, list.pointer)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code) }
        var denied: [String: KafkaError] = [:]
        let deadline = Deadline(after: timeout)
        while !unanswered.isEmpty, !deadline.isOver {
            guard let message = rd_kafka_consumer_poll(handle.pointer, 100) else { continue }
            defer { rd_kafka_message_destroy(message) }
            guard let topic = message.pointee.rkt.map({ String(cString: rd_kafka_topic_name($0)) }) else { continue }
            switch message.pointee.err {
            case RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_RESP_ERR__PARTITION_EOF: unanswered.remove(topic)
            case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
                denied[topic] = KafkaError(message.pointee.err)
                unanswered.remove(topic)
            default: continue
            }
        }
        return (denied, unanswered)
    }

    /// What a group's coordinator says of a right to it.
    package enum Answer: Sendable, Hashable {
        case allowed, denied, silent
    }

    /// Commits an offset of a topic that cannot exist, by its name: Kafka looks for the right to the group first, and then
    /// keeps nothing.
    ///
    /// - Throws: when no client can be made.
    package static func look(
        atGroup group: String, _ configuration: KafkaConfiguration, timeout: Duration, logger: Logger
    ) throws -> Answer {
        let handle = try client(group, configuration, logger)
        defer { handle.destroy(timeout: .zero) }
        let nowhere = TopicPartition(topic: "\(group)/none", partition: 0)
        guard let list = PartitionList([(key: nowhere, value: Int64(0))]) else {
            throw KafkaError(code: KafkaError.Code.fatal)
        }
        let queue = rd_kafka_queue_new(handle.pointer)
        defer { rd_kafka_queue_destroy(queue) }
        let code = rd_kafka_commit_queue(handle.pointer, list.pointer, queue, nil, nil)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code) }
        let deadline = Deadline(after: timeout)
        while !deadline.isOver {
            if let event = rd_kafka_queue_poll(queue, 50) {
                defer { rd_kafka_event_destroy(event) }
                let code = rd_kafka_event_error(event).rawValue
                if code == KafkaError.Code.groupAuthorizationFailed { return .denied }
                return KafkaError.unreachableCodes.contains(code) ? .silent : .allowed
            }
            // Who may not even see the group is told here, and the commit waits.
            guard let message = rd_kafka_consumer_poll(handle.pointer, 50) else { continue }
            defer { rd_kafka_message_destroy(message) }
            if message.pointee.err == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED { return .denied }
        }
        return .silent
    }

    private static func client(
        _ group: String, _ configuration: KafkaConfiguration, _ logger: Logger
    ) throws -> ClientHandle {
        var configuration = configuration
        configuration.reportsEnds = true
        configuration.consumer["statistics.interval.ms"] = "0"
        let handle = try ClientHandle(
            role: .consumer, configuration: configuration, groupID: group, callbacks: ClientCallbacks(logger: logger))
        rd_kafka_poll_set_consumer(handle.pointer)
        return handle
    }
}
