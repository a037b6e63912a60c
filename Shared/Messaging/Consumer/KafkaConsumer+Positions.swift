// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka

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
