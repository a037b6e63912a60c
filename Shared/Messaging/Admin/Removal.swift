// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka

extension KafkaAdmin {
    /// Deletes topics with all that is in them, and waits for the broker's answer. One that does not exist is fine.
    ///
    /// - Throws: naming every topic that is still there. Not for the embedded broker, which does not answer.
    public func deleteTopics(_ names: [String], timeout: Duration) throws(KafkaError) {
        try checkOpen()
        if names.isEmpty { return }
        var requests: [OpaquePointer?] = names.map { rd_kafka_DeleteTopic_new($0) }
        defer { for request in requests { rd_kafka_DeleteTopic_destroy(request) } }
        let queue = rd_kafka_queue_new(handle.pointer)
        defer { rd_kafka_queue_destroy(queue) }
        rd_kafka_DeleteTopics(handle.pointer, &requests, requests.count, nil, queue)
        let event = try answer(queue, timeout, "topics not deleted: \(names.joined(separator: ", "))")
        defer { rd_kafka_event_destroy(event) }
        var count = 0
        guard let topics = rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count) else {
            return
        }
        let refused = UnsafeBufferPointer(start: topics, count: count).compactMap { topic -> (String, KafkaError)? in
            let code = rd_kafka_topic_result_error(topic)
            if code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART { return nil }
            return (rd_kafka_topic_result_name(topic).map { String(cString: $0) } ?? "?", KafkaError(code))
        }
        try check(refused, "topics")
    }

    /// Deletes the consumer groups whose names begin so, and waits for the broker's answer. Their members have left.
    ///
    /// - Throws: naming every group that is still there. Not for the embedded broker, which does not answer.
    public func deleteGroups(prefix: String, timeout: Duration) throws(KafkaError) {
        try checkOpen()
        let names = try groups(timeout: timeout).filter { $0.hasPrefix(prefix) }
        if names.isEmpty { return }
        var requests: [OpaquePointer?] = names.map { rd_kafka_DeleteGroup_new($0) }
        defer { for request in requests { rd_kafka_DeleteGroup_destroy(request) } }
        let queue = rd_kafka_queue_new(handle.pointer)
        defer { rd_kafka_queue_destroy(queue) }
        rd_kafka_DeleteGroups(handle.pointer, &requests, requests.count, nil, queue)
        let event = try answer(queue, timeout, "groups not deleted: \(names.joined(separator: ", "))")
        defer { rd_kafka_event_destroy(event) }
        var count = 0
        guard let groups = rd_kafka_DeleteGroups_result_groups(rd_kafka_event_DeleteGroups_result(event), &count) else {
            return
        }
        let refused = UnsafeBufferPointer(start: groups, count: count).compactMap { group -> (String, KafkaError)? in
            guard let error = rd_kafka_group_result_error(group) else { return nil }
            let code = rd_kafka_error_code(error)
            if code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND { return nil }
            return (rd_kafka_group_result_name(group).map { String(cString: $0) } ?? "?", KafkaError(code))
        }
        try check(refused, "groups")
    }

    private func groups(timeout: Duration) throws(KafkaError) -> [String] {
        var list: UnsafePointer<rd_kafka_group_list>?
        let code = rd_kafka_list_groups(handle.pointer, nil, &list, timeout.kafkaMilliseconds)
        defer { if let list { rd_kafka_group_list_destroy(list) } }
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let list else { throw KafkaError(code, message: "groups not listed") }
        return UnsafeBufferPointer(start: list.pointee.groups, count: Int(list.pointee.group_cnt)).compactMap {
            $0.group.map { String(cString: $0) }
        }
    }

    private func answer(
        _ queue: OpaquePointer?, _ timeout: Duration, _ failure: String
    ) throws(KafkaError) -> OpaquePointer {
        guard let event = rd_kafka_queue_poll(queue, timeout.kafkaMilliseconds) else {
            throw KafkaError(RD_KAFKA_RESP_ERR__TIMED_OUT, message: failure)
        }
        let code = rd_kafka_event_error(event)
        if code != RD_KAFKA_RESP_ERR_NO_ERROR {
            rd_kafka_event_destroy(event)
            throw KafkaError(code, message: failure)
        }
        return event
    }

    private func check(_ refused: [(name: String, error: KafkaError)], _ what: String) throws(KafkaError) {
        guard let first = refused.first else { return }
        let names = refused.map(\.name).joined(separator: ", ")
        throw KafkaError(code: first.error.code, message: "\(what) not deleted: \(names) (\(first.error.message))")
    }
}
