// SPDX-License-Identifier: Apache-2.0

import CLibrdkafka
import Messaging

/// Takes the topics of a measurement away again: hundreds of partitions each, and a broker has files and memory for only
/// so many.
enum TopicDeletion {
    /// Waits for the broker's answer. What is not deleted stays, and does no harm to what was measured.
    static func run(_ topics: [String], kafka: KafkaConfiguration) {
        let conf = rd_kafka_conf_new()
        for (name, value) in kafka.common.merging(
            ["bootstrap.servers": kafka.bootstrapServers], uniquingKeysWith: { $1 })
        {
            rd_kafka_conf_set(conf, name, value, nil, 0)
        }
        guard let client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, nil, 0) else {
            rd_kafka_conf_destroy(conf)
            return
        }
        defer { rd_kafka_destroy(client) }
        var deletions: [OpaquePointer?] = topics.map { rd_kafka_DeleteTopic_new($0) }
        defer { for deletion in deletions { rd_kafka_DeleteTopic_destroy(deletion) } }
        let queue = rd_kafka_queue_new(client)
        defer { rd_kafka_queue_destroy(queue) }
        rd_kafka_DeleteTopics(client, &deletions, deletions.count, nil, queue)
        if let event = rd_kafka_queue_poll(queue, 30_000) { rd_kafka_event_destroy(event) }
    }
}
