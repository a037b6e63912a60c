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

/// One DescribeConfigs request.
struct ConfigQuery {
    let client: OpaquePointer
    let timeout: Duration

    typealias Answer = (settings: [String: [String: String]], refused: [String: KafkaError])

    /// The settings of topics, by topic.
    ///
    /// - Throws: when there is no answer at all.
    func topics(_ names: [String]) throws(KafkaError) -> Answer { try run(RD_KAFKA_RESOURCE_TOPIC, names) }

    /// The settings of one broker.
    func broker(_ id: Int32) throws(KafkaError) -> [String: String] {
        let answer = try run(RD_KAFKA_RESOURCE_BROKER, ["\(id)"])
        if let refusal = answer.refused["\(id)"] { throw refusal }
        return answer.settings["\(id)"] ?? [:]
    }

    private func run(_ type: rd_kafka_ResourceType_t, _ names: [String]) throws(KafkaError) -> Answer {
        var resources: [OpaquePointer?] = names.map { rd_kafka_ConfigResource_new(type, $0) }
        defer { for resource in resources where resource != nil { rd_kafka_ConfigResource_destroy(resource) } }
        let options = rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS)
        defer { rd_kafka_AdminOptions_destroy(options) }
        _ = rd_kafka_AdminOptions_set_request_timeout(options, timeout.kafkaMilliseconds, nil, 0)
        let queue = rd_kafka_queue_new(client)
        defer { rd_kafka_queue_destroy(queue) }
        rd_kafka_DescribeConfigs(client, &resources, resources.count, options, queue)
        // librdkafka answers at its own time-out; the second more only keeps a lost answer from hanging us.
        guard let event = rd_kafka_queue_poll(queue, (timeout + .seconds(1)).kafkaMilliseconds) else {
            throw KafkaError(RD_KAFKA_RESP_ERR__TIMED_OUT)
        }
        defer { rd_kafka_event_destroy(event) }
        let code = rd_kafka_event_error(event)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
            throw KafkaError(code, message: rd_kafka_event_error_string(event).map { String(cString: $0) })
        }
        return Self.read(event)
    }

    private static func read(_ event: OpaquePointer) -> Answer {
        var count = 0
        guard let result = rd_kafka_event_DescribeConfigs_result(event),
            let resources = rd_kafka_DescribeConfigs_result_resources(result, &count)
        else { return ([:], [:]) }
        var answer: Answer = ([:], [:])
        for resource in UnsafeBufferPointer(start: resources, count: count) {
            guard let name = rd_kafka_ConfigResource_name(resource) else { continue }
            let code = rd_kafka_ConfigResource_error(resource)
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
                let words = rd_kafka_ConfigResource_error_string(resource).map { String(cString: $0) }
                answer.refused[String(cString: name)] = KafkaError(code, message: words)
                continue
            }
            var size = 0
            let entries = rd_kafka_ConfigResource_configs(resource, &size)
            let pairs = UnsafeBufferPointer(start: entries, count: size).compactMap { entry -> (String, String)? in
                guard let name = rd_kafka_ConfigEntry_name(entry), let value = rd_kafka_ConfigEntry_value(entry)
                else { return nil }
                return (String(cString: name), String(cString: value))
            }
            answer.settings[String(cString: name)] = Dictionary(pairs) { first, _ in first }
        }
        return answer
    }
}

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
