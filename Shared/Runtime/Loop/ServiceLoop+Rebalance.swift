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
    package func partitionsAssigned(_ places: [TopicPartition]) -> [TopicPartition: Int64] {
        partitions.assign(places, isAlone: isAlone)
        // What cannot be claimed now is read from where its claim says.
        var starts = Dictionary(places.map { ($0, KafkaOffset.end) }) { first, _ in first }
        do {
            let requests = places.sorted().map { PartitionClaimRequest(topic: $0.topic, partition: $0.partition) }
            for claim in try claim(requests) {
                let (place, actions) = take(claim)
                for case .restart(let offset) in actions { starts[place] = offset }
            }
            logger.info(
                "partitions assigned", metadata: ["event": "partitions.assigned", "partitions": "\(list(places))"])
        } catch {
            logger.debug(
                "the partitions cannot be claimed yet",
                metadata: ["partitions": "\(list(places))", "error": "\(error)"])
            note(error)
        }
        return starts
    }

    /// What is not delivered by then is still on its way, and the next owner publishes it again: with the same ids.
    package func partitionsRevoked(_ places: [TopicPartition]) {
        awaitDeliveries(of: places)
        saveProgress()
        let held = places.compactMap { partitions.position($0)?.claim.held }
        do {
            try database.transaction { try Storage.Progress.release(held, in: $0) }
        } catch {
            logger.debug("the partitions were not released", metadata: ["error": "\(error)"])
        }
        forget(places)
        logger.info(
            "partitions revoked", metadata: ["event": "partitions.revoked", "partitions": "\(list(places))"])
    }

    package func partitionsLost(_ places: [TopicPartition]) {
        forget(places)
        logger.info("partitions lost", metadata: ["event": "partitions.lost", "partitions": "\(list(places))"])
    }

    /// How long the whole group waits at most so that nothing is published twice.
    private static var handoverLimit: Duration { .milliseconds(500) }

    private func awaitDeliveries(of places: [TopicPartition]) {
        let lanes = places.compactMap { partitions.lane($0) }
        let deadline = clock.now() + Self.handoverLimit
        note(publisher.poll(timeout: .zero))
        // Whoever stops has waited for longer, and whoever was fenced cannot say how far it came.
        while lanes.contains(where: publisher.isDelivering), clock.now() < deadline, !signals.isStopping,
            !membership.isLeaving
        {
            note(publisher.poll(timeout: .milliseconds(5)))
        }
    }

    func forget(_ places: [TopicPartition]) {
        consumers?.forget(places)
        for lane in places.compactMap(partitions.lane) { publisher.forget(lane) }
        partitions.remove(places)
        if partitions.isEmpty { store.isIdle() }
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
                store.decider = number
                store.secrets = DerivedSecrets(configuration.keys, salt: salt)
                return claims
            } catch let error as StorageError
                where error.kind == .conflict && !error.isLockTimeout && tries < 10
            {
                tries += 1
                sleep(milliseconds: 1...20)
            } catch let problem as AppsFile.Problem {
                // Perhaps the file is another one by now, as it is for the replica that changed the store.
                guard !reloadApps() else { continue }
                membership = .unfit(problem)
                throw problem
            } catch let error as SchemaMismatch {
                membership = .unfit(error)
                throw error
            }
        }
    }

    /// - Returns: what follows from the claim.
    private func take(
        _ claim: PartitionClaim, isSeen: Bool = false
    ) -> (place: TopicPartition, actions: [Partition.Action]) {
        let place = TopicPartition(topic: claim.topic, partition: claim.partition)
        if case .setAside(let previous, _) = claim.start {
            logger.notice(
                "the log was replaced by another one; reading it from its beginning",
                metadata: [
                    "event": "log.replaced", "partition": "\(place)", "set_aside": .stringConvertible(previous),
                ])
        }
        if let gap = claim.gap {
            metrics.missed(gap.count, place)
            logger.error(
                "records were removed from the log before they were read",
                metadata: [
                    "event": "log.gap", "partition": "\(place)", "first_offset": .stringConvertible(gap.lowerBound),
                    "count": .stringConvertible(gap.count),
                ])
        }
        if !partitions.positions.contains(where: { _ in true }) { store.claimedConnection = database.connectionNumber }
        let actions = partitions.claimed(
            claim, isSeen: isSeen || claim.gap != nil,
            handed: { publisher.handed($0, publishedThrough: $1) }, room: room)
        return (place, actions)
    }

    /// Claims what could not be claimed before, what has no place to read from, and all that is owned when the database
    /// connection is a new one: the store behind it may be an earlier copy, or lack the last commits. Reading goes on
    /// where the store says.
    func claimAgain(_ consumers: Consumers) {
        if !partitions.isEmpty, database.connectionNumber != store.claimedConnection {
            logger.debug("there is a new database connection; claiming all partitions again")
            doubt(partitions.all.keys)
            do {
                // A copy that was put back may be older than the last migration.
                try migrator.bringUpToDate(database, at: configuration.migrate)
            } catch {
                note(error)
                return wait("the store cannot be migrated: \(error)")
            }
            store.claimedConnection = database.connectionNumber
        }
        let places = partitions.places(\.awaitsClaim)
        let bounds = lookAtLogs()
        guard !places.isEmpty else { return health.partitions(nil) }
        let requests = places.compactMap { request($0, bounds) }
        guard !requests.isEmpty else { return }
        do {
            let connection = store.claimedConnection
            var starts: [TopicPartition: Int64] = [:]
            var resumed: [TopicPartition] = []
            for claim in try claim(requests) {
                let place = TopicPartition(topic: claim.topic, partition: claim.partition)
                // The record before the next one may have been removed by now, which is no gap.
                let isGone = bounds[place].map { $0.low >= claim.nextOffset ?? 0 } ?? false
                for action in take(claim, isSeen: isGone).actions {
                    switch action {
                    case .restart(let offset): starts[place] = offset
                    case .resume: resumed.append(place)
                    case .pause, .decide: break  // A claim leads to neither.
                    }
                }
            }
            store.claimedConnection = connection
            store.claimed()
            command { () throws(KafkaError) in
                try consumers.restart(starts)
                try consumers.resume(resumed.sorted())
            }
            if membership.isLeaving { return }
            databaseWorks(wrote: true)
            logger.debug("partitions claimed again", metadata: ["partitions": "\(list(starts.keys.sorted()))"])
        } catch {
            note(error)
            if (error as? StorageError)?.isFenced != true { wait("partitions cannot be claimed: \(error)") }
        }
    }

    /// Where the displaced logs begin and end. The other partitions do not wait for one that has not said so yet.
    private func lookAtLogs() -> [TopicPartition: BrokerWatch.Bounds] {
        let displaced = partitions.places(\.isDisplaced)
        let bounds = watch.bounds(of: Set(displaced))
        let silent = displaced.filter { bounds[$0] == nil }
        if !silent.isEmpty { health.partitions("\(list(silent)) have not reported yet where they begin and end") }
        return bounds
    }

    /// A log that does not have the position, and begins at or before it, ended before it when it said so: it is another
    /// log, even if it has grown past it since.
    private func request(
        _ partition: TopicPartition, _ bounds: [TopicPartition: BrokerWatch.Bounds]
    ) -> PartitionClaimRequest? {
        let position = partitions.position(partition)
        guard case .displaced(let displacement)? = partitions[partition]?.state else {
            return PartitionClaimRequest(
                topic: partition.topic, partition: partition.partition, heldEpoch: position?.claim.epoch)
        }
        guard var (low, high) = bounds[partition] else { return nil }
        if let position {
            let isReplaced =
                switch displacement {
                case .replaced: true
                case .outOfRange: low <= position.start
                case .vanished: false
                }
            if isReplaced { (low, high) = (0, min(high, position.nextOffset - 1)) }
        }
        return PartitionClaimRequest(
            topic: partition.topic, partition: partition.partition, lowWatermark: low, highWatermark: high,
            heldEpoch: position?.claim.epoch)
    }

    /// Takes in what the consumers say about the logs.
    func noteDisplaced(_ consumers: Consumers) {
        for place in consumers.takeOutOfRange() { tell(.displaced(.outOfRange), place, consumers) }
        for topic in consumers.takeVanished() {
            for place in partitions.all.keys where place.topic == topic {
                tell(.displaced(.vanished), place, consumers)
            }
        }
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
