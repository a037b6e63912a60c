// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka

/// librdkafka's handles of the topics that are produced to, made once each: naming the topic anew for every message
/// costs more than the rest of sending it. Confined to the producer's thread.
final class TopicHandles {
    /// Reply topics are named by senders, so their number has no bound; that of the handles has.
    static let limit = 1000

    private let client: OpaquePointer
    private let collector: DeliveryCollector
    private var handles: [String: OpaquePointer] = [:]

    init(client: OpaquePointer, collector: DeliveryCollector) {
        self.client = client
        self.collector = collector
    }

    /// Whether the next new topic should find the others gone; that is allowed only while no message is on its way.
    var isFull: Bool { handles.count >= Self.limit }

    /// - Throws: when librdkafka refuses the name.
    func handle(for topic: String) throws(KafkaError) -> OpaquePointer {
        if let known = handles[topic] { return known }
        guard let made = rd_kafka_topic_new(client, topic, nil) else {
            throw KafkaError(rd_kafka_last_error(), message: "librdkafka refuses the topic name")
        }
        handles[topic] = made
        collector.names[made] = topic
        return made
    }

    /// Gives all handles back.
    func removeAll() {
        for handle in handles.values { rd_kafka_topic_destroy(handle) }
        handles = [:]
        collector.names = [:]
    }
}
