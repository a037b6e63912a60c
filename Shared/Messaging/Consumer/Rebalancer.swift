// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka
public import Contracts
internal import Logging

/// Told which partitions come and go.
///
/// All calls are made synchronously by the thread that polls the consumer, from inside its `poll` or `close`, and never
/// with an empty list. They may call `commit`, `committed`, `bounds` and `clusterID` of that consumer, but nothing else of
/// it. The whole group waits until they return: be quick.
public protocol RebalanceHandler: AnyObject {
    /// The partitions are about to become ours; nothing of them has been read yet.
    ///
    /// - Returns: where to start reading, as an offset or one of ``KafkaOffset``. Partitions that are missing start at
    ///   the group's committed offset, and without one show in ``KafkaConsumer/takeOutOfRange()``.
    func partitionsAssigned(_ partitions: [TopicPartition]) -> [TopicPartition: Int64]

    /// The partitions are about to be given up in good order: they are still ours during the call, and the last
    /// offsets may be committed. Records of them that the running `poll` has read are not returned.
    func partitionsRevoked(_ partitions: [TopicPartition])

    /// The partitions are someone else's already (session timed out, thrown out of the group): do not commit.
    func partitionsLost(_ partitions: [TopicPartition])
}

/// Answers rebalances: tells the handler, then librdkafka. Runs on the thread that polls, inside the poll.
final class Rebalancer {
    var tracker = AssignmentTracker()
    var errors = ConsumerErrors()

    /// Whether the group's last word was an assignment, be it an empty one.
    var isMember = false

    /// Set when librdkafka did not take an assignment: what the handler thinks is ours is not read.
    private(set) var refusal: KafkaError?

    /// Whether the handler is being called right now.
    private(set) var isActive = false

    /// When the group first gave us an assignment, be it an empty one.
    private(set) var assignedSince: ContinuousClock.Instant?
    var hasBeenAssigned: Bool { assignedSince != nil }

    /// Whether there was ever something in one.
    private(set) var hasHadPartitions = false

    private let client: OpaquePointer
    private let queues: PartitionQueues
    private weak var handler: (any RebalanceHandler)?
    private let statistics: StatisticsReporter
    private let logger: Logger

    /// - Parameters:
    ///   - client: owned by the caller, who polls it only while it lives.
    ///   - queues: are opened and closed with what is assigned.
    init(
        client: OpaquePointer, queues: PartitionQueues, handler: any RebalanceHandler, statistics: StatisticsReporter,
        logger: Logger
    ) {
        self.client = client
        self.queues = queues
        self.handler = handler
        self.statistics = statistics
        self.logger = logger
    }

    /// librdkafka's rebalance callback. Every event must be answered, those with empty lists too.
    func handle(_ code: rd_kafka_resp_err_t, _ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?) {
        isActive = true
        defer { isActive = false }
        switch code {
        case RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS where list != nil:
            if let list { assign(list) }
        case RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS where list != nil:
            if let list { revoke(list) }
        default:
            logger.error(
                "kafka rebalance failed",
                metadata: ["event": "group.rebalance-failed", "error": "\(KafkaError(code))"])
            let partitions = tracker.partitions.sorted()
            if !partitions.isEmpty { handler?.partitionsLost(partitions) }
            isMember = false
            check(rd_kafka_assign(client, nil))
            remove(partitions)
        }
    }

    /// Answers for a consumer that nobody uses any more: it takes nothing and gives up all.
    static func decline(
        _ client: OpaquePointer, _ code: rd_kafka_resp_err_t,
        _ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?
    ) {
        var error: OpaquePointer?
        switch code {
        case RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS where isCooperative(client):
            error = rd_kafka_incremental_unassign(client, list)
        case RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS where isCooperative(client):
            if let none = PartitionList(topics: []) { error = rd_kafka_incremental_assign(client, none.pointer) }
        default: _ = rd_kafka_assign(client, nil)
        }
        // Whoever is beyond that stays in memory.
        if let error { rd_kafka_error_destroy(error) }
    }

    /// The rebalance that the group is in, as the client told last.
    var rebalance: Rebalance? { statistics.rebalance }

    /// Forgets every partition, after the client has left its group.
    func forgetAll() {
        isMember = false
        remove(Array(tracker.partitions))
        statistics.close()
    }

    private func assign(_ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) {
        let partitions = list.partitions
        if assignedSince == nil { assignedSince = .now }
        if !partitions.isEmpty { hasHadPartitions = true }
        let starts = partitions.isEmpty ? [:] : handler?.partitionsAssigned(partitions) ?? [:]
        for (index, partition) in partitions.enumerated() {
            list.elements[index].offset = starts[partition] ?? Int64(RD_KAFKA_OFFSET_INVALID)
        }
        queues.open(partitions)
        if isCooperative {
            if !check(rd_kafka_incremental_assign(client, list)), let none = PartitionList(topics: []) {
                // The group waits for an answer, if only to be left.
                check(rd_kafka_incremental_assign(client, none.pointer))
            }
        } else {
            check(rd_kafka_assign(client, list))
        }
        isMember = true
        statistics.rebalanceIsOver()
        errors.assigned(partitions)
        tracker.add(partitions)
        log("kafka partitions assigned", partitions)
    }

    private func revoke(_ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) {
        let partitions = list.partitions
        let isLost = rd_kafka_assignment_lost(client) != 0
        if !partitions.isEmpty {
            if isLost { handler?.partitionsLost(partitions) } else { handler?.partitionsRevoked(partitions) }
        }
        // A pause would outlive the ownership.
        let paused = tracker.paused.intersection(partitions)
        if !paused.isEmpty, let list = PartitionList(paused.map { ($0, KafkaOffset.committed) }) {
            _ = rd_kafka_resume_partitions(client, list.pointer)
        }
        if isCooperative {
            check(rd_kafka_incremental_unassign(client, list))
        } else {
            check(rd_kafka_assign(client, nil))
        }
        if isLost { isMember = false }
        remove(partitions)
        log(isLost ? "kafka partitions lost" : "kafka partitions revoked", partitions)
    }

    private func remove(_ partitions: [TopicPartition]) {
        queues.close(partitions)
        tracker.remove(partitions)
        errors.removed(partitions)
    }

    /// Eager is not configurable here, but a group of older members may force it.
    var isCooperative: Bool { Self.isCooperative(client) }

    private static func isCooperative(_ client: OpaquePointer) -> Bool {
        rd_kafka_rebalance_protocol(client).map { String(cString: $0) } == "COOPERATIVE"
    }

    @discardableResult
    private func check(_ error: OpaquePointer?) -> Bool {
        guard let error else { return true }
        refused(KafkaError(consuming: error))
        return false
    }

    private func check(_ code: rd_kafka_resp_err_t) {
        if code != RD_KAFKA_RESP_ERR_NO_ERROR { refused(KafkaError(code)) }
    }

    private func refused(_ error: KafkaError) {
        logger.error(
            "kafka refused the assignment", metadata: ["event": "group.assignment-refused", "error": "\(error)"])
        refusal = KafkaError(
            code: error.code, message: "the assignment was refused: \(error.message)", isFatal: true)
    }

    private func log(_ text: Logger.Message, _ partitions: [TopicPartition]) {
        logger.debug(text, metadata: ["partitions": "\(partitions.map(\.description).joined(separator: " "))"])
    }
}

/// What is assigned, and which of the records just read must not be returned any more. Pure state, no I/O.
struct AssignmentTracker {
    private(set) var partitions: Set<TopicPartition> = []
    private var removed: Set<TopicPartition> = []

    /// Assigned partitions that are not read for now.
    var paused: Set<TopicPartition> = []

    /// Assigned partitions whose position the log does not have.
    var outOfRange: Set<TopicPartition> = []

    /// Assigned partitions that have nothing behind what was read.
    var ends: Set<TopicPartition> = []

    /// Topics with assigned partitions that were told to be missing.
    var vanished: Set<String> = []

    /// Counts every change, so that caches of partitions know when they are out of date.
    private(set) var changes = 0

    mutating func add(_ added: [TopicPartition]) {
        partitions.formUnion(added)
        changes += 1
    }

    mutating func remove(_ gone: [TopicPartition]) {
        partitions.subtract(gone)
        paused.subtract(gone)
        restart(gone)
    }

    /// The partitions are read anew from somewhere.
    mutating func restart(_ restarted: [TopicPartition]) {
        removed.formUnion(restarted)
        outOfRange.subtract(restarted)
        ends.subtract(restarted)
        changes += 1
    }

    /// Takes the records of partitions that went away since the last call out of `records`, which were all read before
    /// they went. A partition that went and came back keeps nothing from before: it is read anew from its start.
    mutating func discardRemoved(from records: inout [KafkaRecord]) {
        if removed.isEmpty { return }
        records.removeAll { removed.contains($0.topicPartition) }
        removed = []
    }
}
