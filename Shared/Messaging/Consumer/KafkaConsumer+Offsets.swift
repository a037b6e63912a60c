// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka
internal import Logging

extension KafkaConsumer {
    /// The longest that a commit with `wait` takes.
    private static let commitTimeout: Duration = .seconds(5)

    /// Tells the group the NEXT offset to read of each partition.
    ///
    /// Never throws, because the group's offsets are only a hint: errors are logged, and quietly where they only say
    /// that the group has moved on. With `wait` the call blocks until the broker answers, at most 5 seconds; without,
    /// the answer is logged from a later `poll`.
    ///
    /// - Returns: whether the offsets were handed over (without `wait`) or stored by the broker (with it). False after
    ///   `close`.
    @discardableResult
    public func commit(_ offsets: [TopicPartition: Int64], wait: Bool) -> Bool {
        if isClosed { return false }
        guard !offsets.isEmpty else { return true }
        guard let list = PartitionList(offsets.sorted { $0.key < $1.key }) else { return false }
        let code = wait ? commitAndWait(list) : rd_kafka_commit(handle.pointer, list.pointer, 1)
        if code == RD_KAFKA_RESP_ERR_NO_ERROR { return true }
        let isSoft = KafkaError.softCommitCodes.contains(code.rawValue)
        logger.log(level: isSoft ? .debug : .warning, "Offset commit failed: \(KafkaError(code))")
        return false
    }

    /// The offsets that the group has committed; partitions without one are missing from the answer.
    ///
    /// - Throws: when the group's coordinator does not answer in time, or refuses.
    public func committed(
        _ partitions: [TopicPartition], timeout: Duration
    ) throws(KafkaError) -> [TopicPartition: Int64] {
        try checkOpen()
        let empty = partitions.map { (key: $0, value: KafkaOffset.committed) }
        guard !empty.isEmpty, let list = PartitionList(empty) else { return [:] }
        let code = rd_kafka_committed(handle.pointer, list.pointer, timeout.kafkaMilliseconds)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code) }
        var offsets: [TopicPartition: Int64] = [:]
        for element in list.pointer.elements where element.offset >= 0 {
            offsets[element.address] = element.offset
        }
        return offsets
    }

    /// The id of the cluster that this consumer reads, as the latest metadata say: another one than before when the
    /// cluster was replaced. `nil` when no broker says in time; waits only for the first answer.
    public func clusterID(timeout: Duration) throws(KafkaError) -> String? {
        try checkOpen()
        return handle.clusterID(timeout: timeout)
    }

    /// A commit of its own queue, because the blocking call of librdkafka has no time-out.
    private func commitAndWait(_ list: borrowing PartitionList) -> rd_kafka_resp_err_t {
        guard let queue = rd_kafka_queue_new(handle.pointer) else { return RD_KAFKA_RESP_ERR__FAIL }
        defer { rd_kafka_queue_destroy(queue) }
        let code = rd_kafka_commit_queue(handle.pointer, list.pointer, queue, nil, nil)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { return code }
        guard let event = rd_kafka_queue_poll(queue, Self.commitTimeout.kafkaMilliseconds) else {
            return RD_KAFKA_RESP_ERR__TIMED_OUT
        }
        defer { rd_kafka_event_destroy(event) }
        return rd_kafka_event_error(event)
    }
}
