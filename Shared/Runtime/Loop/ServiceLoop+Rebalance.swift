// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
import Logging
import Messaging
import Storage

/// Called inside `KafkaConsumer.poll` and `close`, on the loop's thread, always between two batches.
extension ServiceLoop: RebalanceHandler {
    /// Claims the partitions, publishes what earlier owners still owe, and says where to read on.
    func partitionsAssigned(_ partitions: [TopicPartition]) -> [TopicPartition: Int64] {
        health.joined()
        guard !partitions.isEmpty, let claims = persist({ try claim(partitions) }) else { return [:] }
        var starts: [TopicPartition: Int64] = [:]
        for claim in claims {
            ownership.add(claim)
            let partition = TopicPartition(topic: claim.topic, partition: claim.partition)
            starts[partition] = claim.nextOffset ?? KafkaOffset.beginning
            if case .setAside(let previous, _) = claim.start {
                logger.notice(
                    "the log is another one than before, reading it from its beginning",
                    metadata: ["partition": "\(partition)", "set_aside": "\(previous)"])
            }
            publishOwed(claim)
        }
        logger.info("partitions assigned", metadata: ["partitions": "\(list(partitions))"])
        return starts
    }

    func partitionsRevoked(_ partitions: [TopicPartition]) {
        drain(for: signals.isStopping ? configuration.drainTimeout : .seconds(2))
        saveProgress(wait: true, currentConsumer)
        letGo(of: partitions)
        logger.info("partitions revoked", metadata: ["partitions": "\(list(partitions))"])
    }

    func partitionsLost(_ partitions: [TopicPartition]) {
        letGo(of: partitions)
        logger.warning("partitions lost", metadata: ["partitions": "\(list(partitions))"])
    }

    private func letGo(of partitions: [TopicPartition]) {
        ownership.remove(partitions)
        publisher.forgetProgress(of: Set(partitions))
    }

    private func claim(_ partitions: [TopicPartition]) throws -> [PartitionClaim] {
        let requests = partitions.sorted().map { partition in
            PartitionClaimRequest(
                topic: partition.topic, partition: partition.partition, highWatermark: highWatermark(partition))
        }
        return try database.transaction {
            try Progress.claim(requests, clusterID: cluster, owner: configuration.owner, in: $0)
        }
    }

    /// `nil` when the broker does not say in time; the check for a recreated topic is then left out.
    private func highWatermark(_ partition: TopicPartition) -> Int64? {
        (try? currentConsumer?.bounds(of: [partition], timeout: .seconds(5)))?[partition]?.high
    }

    /// What was decided by an earlier owner, and perhaps not published: every message has its first id and content.
    private func publishOwed(_ claim: PartitionClaim) {
        for old in claim.unpublished {
            let isDone = publishOwed(claim, incarnation: old.incarnation, after: old.publishedThrough) { _ in nil }
            guard isDone else { return }
            drain(for: .seconds(10))
            guard publisher.pending == 0 else { return }
            _ = persist {
                try database.transaction {
                    try Progress.markSetAsidePublished(
                        topic: claim.topic, partition: claim.partition, epoch: claim.epoch,
                        incarnation: old.incarnation, through: old.publishedThrough, finished: true, in: $0)
                }
            }
        }
        let partition = TopicPartition(topic: claim.topic, partition: claim.partition)
        _ = publishOwed(claim, incarnation: claim.incarnation, after: claim.publishedThrough) { [partition: $0] }
    }

    /// - Parameter through: what the delivery of everything up to an offset proves.
    /// - Returns: whether all of it was handed to the publisher.
    private func publishOwed(
        _ claim: PartitionClaim, incarnation: Int64, after start: Int64,
        through: (Int64) -> [TopicPartition: Int64]?
    ) -> Bool {
        var after = start
        while true {
            let entries = persist {
                try database.transaction {
                    try Journal.unpublished(
                        topic: claim.topic, partition: claim.partition, incarnation: incarnation, after: after,
                        limit: 500, in: $0)
                }
            }
            guard let entries else { return false }
            guard let last = entries.last else { return true }
            let messages = entries.flatMap { entry -> [OutboundMessage] in
                do {
                    return try vault.open(entry.messages)
                } catch {
                    logger.critical("\(error)", metadata: ["position": "\(entry.position)"])
                    return []
                }
            }
            publisher.publish(messages, through: through(last.position.offset) ?? [:])
            after = last.position.offset
            if publisher.pending > 5000 { drain(for: .seconds(10)) }
        }
    }

    /// Waits for deliveries, for a while.
    private func drain(for limit: Duration) {
        let deadline = ContinuousClock.now + limit
        repeat {
            ownership.published(publisher.poll(timeout: .milliseconds(20)))
        } while publisher.pending > 0 && ContinuousClock.now < deadline && !signals.isStoppingAtOnce
    }

    private func list(_ partitions: [TopicPartition]) -> String {
        Dictionary(grouping: partitions, by: \.topic).sorted { $0.key < $1.key }.map { topic, members in
            "\(topic)[\(members.map(\.partition).sorted().map(String.init).joined(separator: ","))]"
        }.joined(separator: " ")
    }
}
