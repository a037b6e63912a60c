// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka

/// One DescribeConfigs request.
struct ConfigQuery {
    let client: OpaquePointer
    let timeout: Duration

    /// The settings of topics, by topic; those that refuse are missing.
    ///
    /// - Throws: when there is no answer at all, and when all refuse.
    func topics(_ names: [String]) throws(KafkaError) -> [String: [String: String]] {
        try run(RD_KAFKA_RESOURCE_TOPIC, names)
    }

    /// The settings of one broker.
    func broker(_ id: Int32) throws(KafkaError) -> [String: String] {
        try run(RD_KAFKA_RESOURCE_BROKER, ["\(id)"])["\(id)"] ?? [:]
    }

    private func run(
        _ type: rd_kafka_ResourceType_t, _ names: [String]
    ) throws(KafkaError) -> [String: [String: String]] {
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
        return try Self.read(event)
    }

    private static func read(_ event: OpaquePointer) throws(KafkaError) -> [String: [String: String]] {
        var count = 0
        guard let result = rd_kafka_event_DescribeConfigs_result(event),
            let resources = rd_kafka_DescribeConfigs_result_resources(result, &count)
        else { return [:] }
        var found: [String: [String: String]] = [:]
        var refusal: KafkaError?
        for resource in UnsafeBufferPointer(start: resources, count: count) {
            let code = rd_kafka_ConfigResource_error(resource)
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let name = rd_kafka_ConfigResource_name(resource) else {
                refusal = KafkaError(code)
                continue
            }
            var size = 0
            let entries = rd_kafka_ConfigResource_configs(resource, &size)
            let pairs = UnsafeBufferPointer(start: entries, count: size).compactMap { entry -> (String, String)? in
                guard let name = rd_kafka_ConfigEntry_name(entry), let value = rd_kafka_ConfigEntry_value(entry)
                else { return nil }
                return (String(cString: name), String(cString: value))
            }
            found[String(cString: name)] = Dictionary(pairs) { first, _ in first }
        }
        if found.isEmpty, let refusal { throw refusal }
        return found
    }
}
