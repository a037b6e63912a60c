// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka
public import Contracts
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
    ///   `close`, and while the member joins its group (``JoinWatch``): hand them over again later.
    @discardableResult
    public func commit(_ offsets: [TopicPartition: Int64], wait: Bool) -> Bool {
        if isClosed { return false }
        guard !offsets.isEmpty else { return true }
        if handle.isJoining { return false }
        guard let list = PartitionList(offsets.sorted { $0.key < $1.key }) else { return false }
        let code = wait ? commitAndWait(list) : rd_kafka_commit(handle.pointer, list.pointer, 1)
        if code == RD_KAFKA_RESP_ERR_NO_ERROR { return true }
        let isSoft =
            KafkaError.softCommitCodes.contains(code.rawValue) || KafkaError.unreachableCodes.contains(code.rawValue)
        logger.log(
            level: isSoft ? .debug : .warning, "offset commit failed",
            metadata: ["event": "group.commit-failed", "error": "\(KafkaError(code))"])
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

/// Where an assigned partition is read. All of these are for between two polls, not for inside the handler, and ignore
/// partitions that are not ours (any more).
extension KafkaConsumer {
    /// The assigned partitions whose position the log does not have, each once until it happens again: retention has
    /// overtaken it, the log came back shorter, or there is no committed offset to start from.
    ///
    /// Nothing is read of them until ``restart(_:)`` says where to go on.
    public func takeOutOfRange() -> [TopicPartition] {
        if rebalancer.tracker.outOfRange.isEmpty { return [] }
        defer { rebalancer.tracker.outOfRange = [] }
        return rebalancer.tracker.outOfRange.sorted()
    }

    /// The assigned partitions of which everything was polled that they had, each once until there is more. Known only
    /// where ``KafkaConfiguration/reportsEnds`` is set.
    public func takeEnds() -> Set<TopicPartition> {
        if rebalancer.tracker.ends.isEmpty { return [] }
        defer { rebalancer.tracker.ends = [] }
        return rebalancer.tracker.ends
    }

    /// The topics with assigned partitions that were missing for a moment, each once until it happens again. They may have
    /// been made anew since, with other records at the same offsets.
    public func takeVanished() -> Set<String> {
        if rebalancer.tracker.vanished.isEmpty { return [] }
        defer { rebalancer.tracker.vanished = [] }
        return rebalancer.tracker.vanished
    }

    /// Reads the partitions anew from these offsets (or one of ``KafkaOffset``), forwards or backwards. Records that
    /// were fetched before do not come any more. A paused partition stays paused.
    ///
    /// - Throws: an error whose disposition is `.fatal` when librdkafka does not do it: close this consumer and make
    ///   another one. `_STATE` after `close` and inside the handler.
    public func restart(_ starts: [TopicPartition: Int64]) throws(KafkaError) {
        try checkUsable()
        // What is lost already is about to be taken from us by the next poll.
        let mine = starts.filter { assignment.contains($0.key) }
        if mine.isEmpty || isAssignmentLost { return }
        guard rebalancer.isCooperative, let list = PartitionList(mine.sorted { $0.key < $1.key }) else {
            throw KafkaError(
                RD_KAFKA_RESP_ERR__STATE, message: "only a cooperative member can restart", isFatal: true)
        }
        // Seeking does nothing to a partition whose reading has stopped with an error.
        for change in [rd_kafka_incremental_unassign, rd_kafka_incremental_assign] {
            guard let error = change(handle.pointer, list.pointer) else { continue }
            let cause = KafkaError(consuming: error)
            throw KafkaError(code: cause.code, message: "restart refused: \(cause.message)", isFatal: true)
        }
        rebalancer.tracker.restart(Array(mine.keys))
    }

    /// Assigned partitions that are paused.
    public var paused: Set<TopicPartition> { rebalancer.tracker.paused }

    /// Stops reading the partitions. Records of them that were fetched and not yet polled are dropped and fetched again
    /// later; nothing of them comes out of `poll` until ``resume(_:)``. Ends with the ownership of the partition.
    public func pause(_ partitions: some Sequence<TopicPartition>) throws(KafkaError) {
        try checkUsable()
        let mine = assignment.intersection(partitions).subtracting(paused)
        guard !mine.isEmpty, let list = PartitionList(mine.map { ($0, KafkaOffset.committed) }) else { return }
        let code = rd_kafka_pause_partitions(handle.pointer, list.pointer)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code) }
        rebalancer.tracker.paused.formUnion(mine)
    }

    /// Goes on reading behind the last record of each partition that `poll` returned.
    public func resume(_ partitions: some Sequence<TopicPartition>) throws(KafkaError) {
        try checkUsable()
        let mine = paused.intersection(partitions)
        guard !mine.isEmpty, let list = PartitionList(mine.map { ($0, KafkaOffset.committed) }) else { return }
        let code = rd_kafka_resume_partitions(handle.pointer, list.pointer)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code) }
        rebalancer.tracker.paused.subtract(mine)
    }
}

/// The logical offsets that may stand where ``RebalanceHandler/partitionsAssigned(_:)`` gives a start offset.
public enum KafkaOffset {
    /// The oldest message that the broker still has.
    public static let beginning: Int64 = -2

    /// After the newest message.
    public static let end: Int64 = -1

    /// The group's committed offset. Without one, the partition shows in ``KafkaConsumer/takeOutOfRange()``.
    public static let committed: Int64 = -1000
}
