// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka

/// One CreateTopics request.
struct TopicCreation {
    let client: OpaquePointer
    let specs: [TopicSpec]
    let timeout: Duration

    /// Creates the topics and waits until the controller has them.
    ///
    /// - Throws: naming every topic that is still missing; a topic that exists by now is not.
    func run() throws(KafkaError) {
        var topics: [OpaquePointer?] = []
        defer { for topic in topics { rd_kafka_NewTopic_destroy(topic) } }
        for spec in specs { topics.append(try make(spec)) }
        let options = rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_CREATETOPICS)
        defer { rd_kafka_AdminOptions_destroy(options) }
        var text = [CChar](repeating: 0, count: 256)
        let time = timeout.kafkaMilliseconds
        _ = rd_kafka_AdminOptions_set_request_timeout(options, time, &text, text.count)
        _ = rd_kafka_AdminOptions_set_operation_timeout(options, time, &text, text.count)
        let queue = rd_kafka_queue_new(client)
        defer { rd_kafka_queue_destroy(queue) }
        rd_kafka_CreateTopics(client, &topics, topics.count, options, queue)
        // librdkafka answers at its own time-out; the second more only keeps a lost answer from hanging us.
        guard let event = rd_kafka_queue_poll(queue, (timeout + .seconds(1)).kafkaMilliseconds) else {
            throw failure(RD_KAFKA_RESP_ERR__TIMED_OUT, "no answer", specs.map(\.name))
        }
        defer { rd_kafka_event_destroy(event) }
        try check(event)
    }

    private func make(_ spec: TopicSpec) throws(KafkaError) -> OpaquePointer {
        var text = [CChar](repeating: 0, count: 256)
        let made = rd_kafka_NewTopic_new(
            spec.name, Int32(clamping: spec.partitions), Int32(clamping: spec.replicationFactor), &text, text.count)
        guard let made else {
            let words = text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
            throw failure(RD_KAFKA_RESP_ERR__INVALID_ARG, words, [spec.name])
        }
        for (key, value) in spec.config.sorted(by: { $0.key < $1.key }) {
            rd_kafka_NewTopic_set_config(made, key, value)
        }
        return made
    }

    private func check(_ event: OpaquePointer) throws(KafkaError) {
        let code = rd_kafka_event_error(event)
        if code != RD_KAFKA_RESP_ERR_NO_ERROR {
            let words = rd_kafka_event_error_string(event).map { String(cString: $0) } ?? ""
            throw failure(code, words, specs.map(\.name))
        }
        var count = 0
        guard let result = rd_kafka_event_CreateTopics_result(event),
            let topics = rd_kafka_CreateTopics_result_topics(result, &count)
        else { return }
        var first: (code: rd_kafka_resp_err_t, words: String)?
        var missing: [String] = []
        for topic in UnsafeBufferPointer(start: topics, count: count) {
            let code = rd_kafka_topic_result_error(topic)
            if code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS { continue }
            missing.append(rd_kafka_topic_result_name(topic).map { String(cString: $0) } ?? "?")
            let words = rd_kafka_topic_result_error_string(topic).map { String(cString: $0) }
            first = first ?? (code, words ?? KafkaError(code).message)
        }
        if let first { throw failure(first.code, first.words, missing) }
    }

    private func failure(_ code: rd_kafka_resp_err_t, _ words: String, _ topics: [String]) -> KafkaError {
        KafkaError(code, message: "topics missing and not created: \(topics.joined(separator: ", ")) (\(words))")
    }
}
