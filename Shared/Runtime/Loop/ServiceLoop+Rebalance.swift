// SPDX-License-Identifier: Apache-2.0

import Apps
package import Contracts
import Logging
import Messaging
import Storage

/// Called inside a consumer's `poll` and `close`, on the loop's thread, always between two batches. The whole group
/// waits meanwhile, so nothing is done here but to claim, once.
extension ServiceLoop: RebalanceHandler {
    /// Claims the partitions and says where to read on. What cannot be claimed now is claimed by the loop
    /// (``claimAgain(_:)``), and read from there on.
    package func partitionsAssigned(_ partitions: [TopicPartition]) -> [TopicPartition: Int64] {
        var starts: [TopicPartition: Int64] = [:]
        do {
            let requests = partitions.sorted().map { PartitionClaimRequest(topic: $0.topic, partition: $0.partition) }
            for claim in try claim(requests) {
                let partition = add(claim)
                starts[partition] = ownership.start(of: partition)
            }
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

    /// What is not delivered by then is still on its way, and the next owner publishes it again: with the same ids.
    package func partitionsRevoked(_ partitions: [TopicPartition]) {
        awaitDeliveries(of: partitions)
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

    package func partitionsLost(_ partitions: [TopicPartition]) {
        forget(partitions)
        logger.warning("partitions lost", metadata: ["partitions": "\(list(partitions))"])
    }

    /// How long the whole group waits at most so that nothing is published twice.
    private static var handoverLimit: Duration { .milliseconds(500) }

    private func awaitDeliveries(of partitions: [TopicPartition]) {
        let lanes = partitions.compactMap { ownership.lane($0) }
        let deadline = clock.now() + Self.handoverLimit
        note(publisher.poll(timeout: .zero))
        // Whoever stops has waited for longer, and whoever was fenced cannot say how far it came.
        while lanes.contains(where: publisher.isDelivering), clock.now() < deadline, !signals.isStopping, !mustRejoin {
            note(publisher.poll(timeout: .milliseconds(5)))
        }
    }

    func forget(_ partitions: [TopicPartition]) {
        consumers?.forget(partitions)
        for partition in partitions {
            if let lane = ownership.lane(partition) { publisher.forget(lane) }
            held[partition] = nil
            displaced[partition] = nil
        }
        paused.subtract(partitions)
        unclaimed.subtract(partitions)
        ownership.remove(partitions)
        if ownership.isEmpty { isDecidingFailing = false }
    }

    // MARK: Claims

    private func claim(_ requests: [PartitionClaimRequest]) throws -> [PartitionClaim] {
        var tries = 0
        while true {
            do {
                // The salt with the claim: a store in which this claim is valid has this salt, an earlier copy too.
                // The same holds for the number of who decides.
                let (claims, salt, number) = try database.transaction {
                    try migrator.check(in: $0)
                    if let problem = try Service.refusal(of: apps.apps, in: $0) { throw apps.named(problem) }
                    return (
                        try Storage.Progress.claim(requests, clusterID: cluster, owner: configuration.owner, in: $0),
                        try Salt.read(in: $0), try Deciders.number(of: decider, in: $0)
                    )
                }
                deciderNumber = number
                secrets = DerivedSecrets(configuration.keys, salt: salt)
                return claims
            } catch let error as StorageError where error.kind == .conflict && tries < 10 {
                tries += 1
                sleep(milliseconds: 1...20)
            } catch let problem as AppsFile.Problem {
                // Perhaps the file is another one by now, as it is for the replica that changed the store.
                guard !reloadApps() else { continue }
                mismatch = problem
                throw problem
            } catch let error as SchemaMismatch {
                mismatch = error
                throw error
            }
        }
    }

    private func add(_ claim: PartitionClaim, isSeen: Bool = false) -> TopicPartition {
        let partition = TopicPartition(topic: claim.topic, partition: claim.partition)
        if case .setAside(let previous, _) = claim.start {
            logger.notice(
                "the log was replaced by another one; reading it from its beginning",
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
        ownership.add(claim, isSeen: isSeen || claim.gap != nil) { publisher.handed($0, publishedThrough: $1) }
        held[partition] = nil
        unclaimed.remove(partition)
        displaced[partition] = nil
        return partition
    }

    /// Claims what could not be claimed before, what has no place to read from, and all that is owned when the database
    /// connection is a new one: the store behind it may be an earlier copy, or lack the last commits. Reading goes on
    /// where the store says.
    func claimAgain(_ consumers: Consumers) {
        if !(ownership.isEmpty && unclaimed.isEmpty), database.connectionNumber != claimedConnection {
            logger.notice("there is a new database connection; claiming all partitions again")
            unclaimed.formUnion(ownership.partitions.keys)
            do {
                // A copy that was put back may be older than the last migration.
                try migrator.run(on: database)
            } catch {
                note(error)
                return wait("the store cannot be migrated: \(error)")
            }
            claimedConnection = database.connectionNumber
        }
        let bounds = lookAtLogs()
        guard !unclaimed.isEmpty || !displaced.isEmpty else { return health.partitions(nil) }
        let requests = unclaimed.union(displaced.keys).sorted().compactMap { request($0, bounds) }
        guard !requests.isEmpty else { return }
        do {
            let connection = claimedConnection
            var starts: [TopicPartition: Int64] = [:]
            for claim in try claim(requests) {
                let place = TopicPartition(topic: claim.topic, partition: claim.partition)
                // The record before the next one may have been removed by now, which is no gap.
                let isGone = bounds[place].map { $0.low >= claim.nextOffset ?? 0 } ?? false
                let partition = add(claim, isSeen: isGone)
                starts[partition] = ownership.start(of: partition)
            }
            claimedConnection = connection
            let resumed = paused.intersection(starts.keys).sorted()
            let isTold = tell { () throws(KafkaError) in
                try consumers.restart(starts)
                try consumers.resume(resumed)
            }
            guard isTold else { return }
            paused.subtract(resumed)
            databaseWorks()
            logger.info("partitions claimed again", metadata: ["partitions": "\(list(starts.keys.sorted()))"])
        } catch {
            note(error)
            if (error as? StorageError)?.isFenced != true { wait("partitions cannot be claimed: \(error)") }
        }
    }

    /// Where the displaced logs begin and end. The other partitions do not wait for one that has not said so yet.
    private func lookAtLogs() -> [TopicPartition: BrokerWatch.Bounds] {
        let bounds = watch.bounds(of: Set(displaced.keys))
        let silent = displaced.keys.filter { bounds[$0] == nil }
        if !silent.isEmpty { health.partitions("\(list(silent)) have not reported yet where they begin and end") }
        return bounds
    }

    /// A log that does not have the position, and begins at or before it, ended before it when it said so: it is another
    /// log, even if it has grown past it since.
    private func request(
        _ partition: TopicPartition, _ bounds: [TopicPartition: BrokerWatch.Bounds]
    ) -> PartitionClaimRequest? {
        let owned = ownership[partition]
        guard let displacement = displaced[partition] else {
            return PartitionClaimRequest(
                topic: partition.topic, partition: partition.partition, heldEpoch: owned?.claim.epoch)
        }
        guard var (low, high) = bounds[partition] else { return nil }
        if let owned, let position = ownership.start(of: partition) {
            let isReplaced =
                switch displacement {
                case .replaced: true
                case .outOfRange: low <= position
                case .vanished: false
                }
            if isReplaced { (low, high) = (0, min(high, owned.nextOffset - 1)) }
        }
        return PartitionClaimRequest(
            topic: partition.topic, partition: partition.partition, lowWatermark: low, highWatermark: high,
            heldEpoch: owned?.claim.epoch)
    }

    /// Takes in what the consumers and the records say about the logs.
    func noteDisplaced(_ consumers: Consumers, _ records: [KafkaRecord]) {
        for partition in consumers.takeOutOfRange() where ownership[partition] != nil {
            displaced[partition] = .outOfRange
        }
        for topic in consumers.takeVanished() {
            for partition in ownership.partitions.keys where partition.topic == topic && displaced[partition] == nil {
                displaced[partition] = .vanished
            }
        }
        for partition in ownership.check(records) { displaced[partition] = .replaced }
    }

    private func wait(_ problem: String) {
        health.partitions(problem)
        clock.sleep(.milliseconds(200))
    }

    func list(_ partitions: [TopicPartition]) -> String {
        Dictionary(grouping: partitions, by: \.topic).sorted { $0.key < $1.key }.map { topic, members in
            "\(topic)[\(members.map(\.partition).sorted().map(String.init).joined(separator: ","))]"
        }.joined(separator: " ")
    }
}
