// SPDX-License-Identifier: Apache-2.0

import Contracts
import Logging
import Messaging
import Storage

/// Called inside a consumer's `poll` and `close`, on the loop's thread, always between two batches. The whole group
/// waits meanwhile, so nothing is done here but to claim, once.
extension ServiceLoop: RebalanceHandler {
    /// Claims the partitions and says where to read on. What cannot be claimed now is claimed by the loop
    /// (``claimAgain(_:)``), and read from there on.
    func partitionsAssigned(_ partitions: [TopicPartition]) -> [TopicPartition: Int64] {
        var starts: [TopicPartition: Int64] = [:]
        do {
            let requests = partitions.sorted().map { PartitionClaimRequest(topic: $0.topic, partition: $0.partition) }
            for claim in try claim(requests) { starts[add(claim)] = claim.nextOffset ?? KafkaOffset.beginning }
            logger.info("partitions assigned", metadata: ["partitions": "\(list(partitions))"])
        } catch {
            logger.warning(
                "the partitions cannot be claimed yet",
                metadata: ["partitions": "\(list(partitions))", "error": "\(error)"])
            unclaimed.formUnion(partitions)
            for partition in partitions { starts[partition] = KafkaOffset.end }
        }
        return starts
    }

    /// What is on its way is still delivered, and published again by the next owner: with the same ids.
    func partitionsRevoked(_ partitions: [TopicPartition]) {
        note(publisher.poll(timeout: .zero))
        saveProgress()
        let held = partitions.compactMap { ownership[$0]?.claim.held }
        do {
            try database.transaction { try Storage.Progress.release(held, in: $0) }
        } catch {
            logger.debug("the partitions were not released", metadata: ["error": "\(error)"])
        }
        forget(partitions)
        logger.info("partitions revoked", metadata: ["partitions": "\(list(partitions))"])
    }

    func partitionsLost(_ partitions: [TopicPartition]) {
        forget(partitions)
        logger.warning("partitions lost", metadata: ["partitions": "\(list(partitions))"])
    }

    func forget(_ partitions: [TopicPartition]) {
        for partition in partitions {
            if let lane = ownership.lane(partition) { publisher.forget(lane) }
            held[partition] = nil
            shortSince[partition] = nil
        }
        paused.subtract(partitions)
        unclaimed.subtract(partitions)
        outOfRange.subtract(partitions)
        ownership.remove(partitions)
        if ownership.isEmpty { isDecidingFailing = false }
    }

    // MARK: Claims

    private func claim(_ requests: [PartitionClaimRequest]) throws -> [PartitionClaim] {
        var tries = 0
        while true {
            do {
                return try database.transaction {
                    try Storage.Progress.claim(requests, clusterID: cluster, owner: configuration.owner, in: $0)
                }
            } catch let error as StorageError where error.kind == .conflict && tries < 10 {
                tries += 1
                signals.sleep(.milliseconds(Int.random(in: 1...20)))
            }
        }
    }

    private func add(_ claim: PartitionClaim) -> TopicPartition {
        let partition = TopicPartition(topic: claim.topic, partition: claim.partition)
        if case .setAside(let previous, _) = claim.start {
            logger.notice(
                "the log is another one than before, reading it from its beginning",
                metadata: ["partition": "\(partition)", "set_aside": "\(previous)"])
        }
        if let gap = claim.gap {
            metrics.missed(gap.count, partition)
            logger.error(
                "records were removed from the log before they were read",
                metadata: [
                    "partition": "\(partition)", "first_offset": "\(gap.lowerBound)", "count": "\(gap.count)",
                ])
        }
        if ownership.isEmpty { claimedConnection = database.connectionNumber }
        ownership.add(claim) { publisher.handed($0, publishedThrough: $1) }
        held[partition] = nil
        shortSince[partition] = nil
        unclaimed.remove(partition)
        outOfRange.remove(partition)
        return partition
    }

    /// Claims what could not be claimed before, what has no place to read from, and all that is owned when the database
    /// connection is a new one: the store behind it may be an earlier copy, or lack the last commits. Reading goes on
    /// where the store says.
    func claimAgain(_ inputs: Inputs) {
        if !ownership.isEmpty, database.connectionNumber != claimedConnection {
            logger.notice("the database connection is a new one, claiming all partitions again")
            unclaimed.formUnion(ownership.partitions.keys)
            do {
                // A copy that was put back may be older than the last migration.
                try Migrator(StorageSchema.migrations + Service.migrations).run(on: database)
            } catch {
                note(error)
                return wait("the store cannot be migrated: \(error)")
            }
            claimedConnection = database.connectionNumber
        }
        guard !unclaimed.isEmpty || !outOfRange.isEmpty else { return health.partitions(nil) }
        let bounds = outOfRange.isEmpty ? [:] : inputs.bounds(of: outOfRange.sorted(), timeout: .seconds(3))
        let requests = unclaimed.union(outOfRange).sorted().compactMap { request($0, bounds) }
        guard !requests.isEmpty else { return wait("\(list(outOfRange.sorted())) have no place to read from") }
        do {
            let connection = claimedConnection
            var starts: [TopicPartition: Int64] = [:]
            for claim in try claim(requests) { starts[add(claim)] = claim.nextOffset ?? KafkaOffset.beginning }
            claimedConnection = connection
            paused.subtract(starts.keys)
            guard tell({ () throws(KafkaError) in try inputs.restart(starts) }) else { return }
            databaseWorks()
            logger.info("partitions claimed again", metadata: ["partitions": "\(list(starts.keys.sorted()))"])
        } catch {
            note(error)
            if (error as? StorageError)?.isFenced != true { wait("partitions cannot be claimed: \(error)") }
        }
    }

    /// A log that ends before the place where reading should go on is another one; but an answer that says so once is not
    /// believed, it may come from a broker that lags behind.
    private func request(
        _ partition: TopicPartition, _ bounds: [TopicPartition: (low: Int64, high: Int64)]
    ) -> PartitionClaimRequest? {
        let owned = ownership[partition]
        guard outOfRange.contains(partition) else {
            return PartitionClaimRequest(
                topic: partition.topic, partition: partition.partition, heldEpoch: owned?.claim.epoch)
        }
        guard let (low, high) = bounds[partition] else { return nil }
        if let next = owned?.storedOffset, high < next {
            let since = shortSince[partition] ?? .now
            shortSince[partition] = since
            guard ContinuousClock.now - since > .seconds(2) else { return nil }
        }
        return PartitionClaimRequest(
            topic: partition.topic, partition: partition.partition, lowWatermark: low, highWatermark: high,
            heldEpoch: owned?.claim.epoch)
    }

    private func wait(_ problem: String) {
        health.partitions(problem)
        signals.sleep(.milliseconds(200))
    }

    func list(_ partitions: [TopicPartition]) -> String {
        Dictionary(grouping: partitions, by: \.topic).sorted { $0.key < $1.key }.map { topic, members in
            "\(topic)[\(members.map(\.partition).sorted().map(String.init).joined(separator: ","))]"
        }.joined(separator: " ")
    }
}
