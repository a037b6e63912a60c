// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka

/// One question to any broker about the cluster, and its answer.
struct MetadataQuery {
    struct Answer {
        var brokers: [Int32] = []
        var topics: [String: TopicState] = [:]
    }

    let client: OpaquePointer

    /// All topics that we may see, or else those that the client has a handle of; these with an error where there is
    /// one. The embedded broker creates the topics that it is asked about in the second way.
    ///
    /// - Throws: when no broker answers in time.
    func ask(allTopics: Bool, timeout: Duration) throws(KafkaError) -> Answer {
        var pointer: UnsafePointer<rd_kafka_metadata>?
        let code = rd_kafka_metadata(client, allTopics ? 1 : 0, nil, &pointer, timeout.kafkaMilliseconds)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let metadata = pointer?.pointee else { throw KafkaError(code) }
        defer { rd_kafka_metadata_destroy(pointer) }
        var answer = Answer()
        answer.brokers = UnsafeBufferPointer(start: metadata.brokers, count: Int(metadata.broker_cnt)).map(\.id)
        for topic in UnsafeBufferPointer(start: metadata.topics, count: Int(metadata.topic_cnt)) {
            guard let name = topic.topic else { continue }
            answer.topics[String(cString: name)] = Self.state(topic)
        }
        return answer
    }

    private static func state(_ topic: rd_kafka_metadata_topic) -> TopicState {
        let partitions = UnsafeBufferPointer(start: topic.partitions, count: Int(topic.partition_cnt))
        // A topic that is being created may have no leaders yet, and exists all the same.
        let isThere = [RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE].contains(topic.err)
        return TopicState(
            error: isThere ? nil : KafkaError(topic.err), partitions: isThere ? partitions.count : 0,
            leaderless: isThere ? partitions.filter { $0.leader < 0 }.map(\.id).sorted() : [],
            replicas: partitions.map { Int($0.replica_cnt) }.min() ?? 0)
    }
}
