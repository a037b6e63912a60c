// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka

extension KafkaConsumer {
    /// Asks to be out of the group, and answers what the group still wants. To be called again and again, in place of
    /// `poll` and before ``close(timeout:)``, until it says that it is over.
    ///
    /// librdkafka 2.0.2 ends a consumer that has no partitions without leaving: the group counts it as a member, and its
    /// next rebalance waits for it, until its session is over. One that gives up its topics first leaves, but within a
    /// rebalance only once that is over. Who has partitions gives them back and leaves while it closes, and a static member
    /// stays one.
    ///
    /// - Returns: whether nothing is to be waited for any more.
    public func leave() -> Bool {
        if isClosed || rebalancer.isActive { return true }
        answerGroup()
        if !isLeaving {
            if isStatic || !assignment.isEmpty { return true }
            isLeaving = true
            _ = rd_kafka_unsubscribe(handle.pointer)
            answerGroup()
        }
        return !isMember
    }

    /// What the group asks before it knows that we go. Records that come with it are not ours any more.
    private func answerGroup() {
        while let message = rd_kafka_consumer_poll(handle.pointer, 0) { rd_kafka_message_destroy(message) }
    }

    /// Whether the group knows us by an id. librdkafka forgets it with the request to leave.
    private var isMember: Bool {
        guard let id = rd_kafka_memberid(handle.pointer) else { return false }
        defer { rd_kafka_mem_free(handle.pointer, id) }
        return id.pointee != 0
    }
}
