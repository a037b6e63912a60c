// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Logging
import Messaging
import Observability
import Storage

/// What is done now and then, between batches.
extension ServiceLoop {
    func housekeep(_ consumers: Consumers) throws {
        let now = clock.now()
        if housekeeping.sweeper.hasMore { sweep() }
        // A newcomer must not miss the moment in which it shares the topics; an idle service is to cost nothing.
        if !isAlone { try lookForOthers(consumers, now) }
        guard housekeeping.round.ticks(now) else { return }
        metrics.outbox(publisher.pending)
        health.publishing(publisher.problem)
        tellGroups(consumers)
        health.unreadable(consumers.unreadable)
        health.lag.tell(partitions.places(of: consumers))
        saveProgress()
        tellUntold(now)
        lookAtCluster()
        try readNewAppTopics(consumers)
        if housekeeping.commit.ticks(now) {
            partitions.committed(consumers.commit(partitions.uncommitted, wait: false))
        }
        if isAlone { try lookForOthers(consumers, now) }
        // In a replay, what came of it once stands in the topics, and is read in its turn.
        if keeper != nil, !consumers.isReplaying {
            sendDue()
            endDryRuns()
        } else {
            housekeeping.lateDryRuns.forget()
        }
        if housekeeping.reload.ticks(now) {
            reloadApps()
            tellApps()
        }
        if store.decider == 0, !partitions.isEmpty { nameDecider() }
        if seams.tellsStatus, housekeeping.status.ticks(now) { tellStatus(now) }
        if housekeeping.store.ticks(now) {
            lookAtStore()
            sweep()
            if publisher.hasWritten(to: topics.gatewayReplies) { watch.answers(to: topics.gatewayReplies) }
        }
    }

    /// At the start nobody is to rely on this replica before it has its share: whoever restarts one after the other stops
    /// the next one then.
    private func tellGroups(_ consumers: Consumers) {
        let (hanging, problem) = (consumers.hangingRebalance, consumers.problem)
        var unsettled: String?
        if !housekeeping.isSettled {
            unsettled = consumers.unsettled
            housekeeping.isSettled = problem == nil && unsettled == nil
        }
        health.group(
            hanging?.words ?? problem ?? unsettled, hangs: hanging?.lasts, isRefused: consumers.isRefused)
    }

    private func lookAtCluster() {
        guard let joined = watch.cluster, joined != cluster else { return }
        logger.warning(
            "this is another Kafka cluster than before",
            metadata: ["event": "broker.other-cluster", "before": "\(cluster)", "now": "\(joined)"])
        membership.leave()
    }

    /// Takes up a changed apps file.
    /// - Returns: whether another version is in force now.
    @discardableResult func reloadApps() -> Bool {
        do {
            let inbox = configuration.journalRetention
            let isNew = try apps.reload(asking: {
                try $0.refusal(ofRetentionBelow: inbox) ?? Service.refusal(of: $0, on: database)
            })
            guard isNew else { return false }
        } catch {
            note(error)
            return false
        }
        reader = InboundReader(
            authenticator: configuration.authenticator(for: apps.apps), topics: topics, spans: spans)
        writer.know(apps.apps)
        watch.want(configuration.topicPlan.appTopics(apps.apps, for: ServiceTraffic(Service.self)))
        store.decider = 0
        return true
    }

    /// Reads the commands topics that apps have for themselves since the apps file changed, as soon as they are there. What
    /// it takes away is read until the end of the process: nobody writes there any more, and something may still stand there.
    private func readNewAppTopics(_ consumers: Consumers) throws {
        // A replay waits for those that it began with.
        if consumers.isReplaying { return }
        let known = Set(consumers.all.map(\.topic))
        let new = appSources.filter { !known.contains($0.topic) && watch.partitions(of: $0.topic) != nil }
        if new.isEmpty { return }
        logger.info(
            "reading topics that apps have for themselves now",
            metadata: ["event": "apps.own-topics", "topics": "\(new.map(\.topic).joined(separator: ", "))"])
        try consumers.join(new)
    }

    private func tellUntold(_ now: ContinuousClock.Instant) {
        guard housekeeping.untold > 0, housekeeping.untoldSaid.ticks(now) else { return }
        logger.notice(
            "a replay decides by the time in the log what nothing tells of",
            metadata: ["event": "replay.untold", "records": .stringConvertible(housekeeping.untold)])
        housekeeping.untold = 0
    }

    /// How the apps file is doing, and which keys are over.
    func tellApps() {
        health.apps(apps.problem)
        metrics.apps(apps)
        housekeeping.keys.tell(apps.apps, now: clock.time(), logger)
    }

    /// One replica does what is to be done once: the owner of the first partition of the commands topic.
    private var keeper: HeldPartition? {
        partitions.position(TopicPartition(topic: topics.commands(Service.name), partition: 0))?.claim.held
    }

    /// The apps file has changed: what is decided from now on is decided by it. Replicas that see the change at the same
    /// time take turns; until then, and while the database is away, nobody is named.
    private func nameDecider() {
        do {
            store.decider = try database.transaction { try Deciders.number(of: decider, in: $0) }
        } catch {
            note(error)
        }
    }

    /// What stands beside each decision in the inbox: the settings and the release that decided.
    var decider: Decider { Decider(apps: apps.digest, code: Release.version) }

    /// Whether no replica with a store of its own can read along.
    var isAlone: Bool { housekeeping.soleReader?.mayDecide ?? true }

    /// - Throws: `ConfigurationProblem` when another replica with a SQLite file reads the same topics.
    private func lookForOthers(_ consumers: Consumers, _ now: ContinuousClock.Instant) throws {
        guard consumers.problem == nil, housekeeping.soleReader != nil else { return }
        let wasAlone = isAlone
        let hasAll = consumers.all.allSatisfy { consumers.assigned($0.topic) >= watch.partitions(of: $0.topic) ?? 1 }
        var mustEnd = false
        do {
            let looked = try housekeeping.soleReader?.look(hasAll: hasAll, now: now) {
                try database.transaction { try Storage.Progress.hasBegun(in: $0) }
            }
            mustEnd = looked ?? false
        } catch {
            return note(error)
        }
        if !wasAlone, isAlone {
            for place in partitions.all.keys.sorted() { tell(.alone(room: room(place)), place, consumers) }
        }
        guard mustEnd else { return }
        throw ConfigurationProblem(
            "DATABASE_URL",
            "is not set, and another replica of the \(Service.name) service reads the same topics. With SQLite there can be "
                + "one; give all of them the URL of one PostgreSQL database, or stop the other one")
    }

    /// Writes down how far publishing came. What cannot be written now is written later.
    func saveProgress() {
        saveSetAside()
        let unsaved = partitions.unsaved
        guard !unsaved.isEmpty else { return }
        do {
            let published = partitions.unremoved(unsaved.map(\.place))
            try database.transaction {
                try Storage.Progress.markPublished(unsaved, in: $0)
                try Outbox.remove(published, in: $0)
            }
            partitions.saved(unsaved)
            partitions.removed(published)
            databaseWorks(wrote: true)
        } catch {
            note(error)
        }
    }

    /// Of logs that others followed. What is not saved is tried again, and published once more by the next owner.
    func saveSetAside() {
        for (lane, epoch, through, isAll) in partitions.unsavedSetAside {
            do {
                try database.transaction {
                    try Storage.Progress.markSetAsidePublished(
                        topic: lane.partition.topic, partition: lane.partition.partition, epoch: epoch,
                        incarnation: lane.incarnation, through: through, finished: isAll, in: $0)
                }
                partitions.savedSetAside(lane)
            } catch {
                return note(error)
            }
        }
    }

    /// Sends the service the commands whose time has come, and asks again for what was not answered. A crash in between
    /// loses nothing: they stay due.
    private func sendDue() {
        guard publisher.problem == nil, publisher.unbound < configuration.batchSize else { return }
        let now = clock.time()
        do {
            if Service.hasDueCommands {
                let due = try database.transaction {
                    try service.due(now: now, limit: configuration.batchSize, apps: apps.apps, in: $0)
                }
                publisher.publish(try due.map(writer.due))
            }
            let forwards = try database.transaction {
                try Forwards.due(now: now.milliseconds, limit: configuration.batchSize, in: $0)
            }
            if !forwards.isEmpty {
                metrics.askedAgain(forwards.count)
                publisher.publish(try forwards.flatMap { try vault.open($0.message).map(writer.signedAgain) })
            }
        } catch {
            note(error)
        }
    }

    private func endDryRuns() {
        guard publisher.problem == nil, publisher.unbound < configuration.batchSize else { return }
        let (now, limit) = (clock.time(), configuration.batchSize)
        let decider = batchDecider(at: now)
        do {
            let replies = try housekeeping.lateDryRuns.step(
                isDelivered: publisher.unbound == 0, limit: limit, on: database
            ) { try decider.endOverdueDryRuns(limit: limit, in: $0, now: now) }
            for reply in replies { publisher.publish(try vault.open(reply).map(writer.signedAgain)) }
        } catch {
            note(error)
        }
    }

    private func sweep() {
        do {
            let isForgotten = try housekeeping.sweeper.step(
                keeper: keeper, logTime: partitions.positions.map(\.logTime).max() ?? -1,
                retention: configuration.journalRetention.inMilliseconds, limit: 2 * configuration.batchSize,
                on: database)
            if isForgotten {
                logger.info(
                    "a generation of the inbox is forgotten, the next one begins",
                    metadata: ["event": "inbox.generation"])
            }
            // It has locked the keeper's row.
            if keeper != nil { databaseWorks(wrote: true) }
        } catch {
            note(error)
        }
    }

    /// Whoever has nothing to write notices all the same that the store is away, that it is an earlier copy by now, whose
    /// claims and offsets are other ones, or that a later version has migrated it.
    private func lookAtStore() {
        guard !partitions.isEmpty else { return }
        do {
            try lookForObstacles()
            // What is locked would be waited for.
            if store.obstacle?.isLockTimeout == true { return databaseWorks(wrote: true) }
            let orphans = health.lag.orphans
            let claimed = try database.transaction { transaction in
                try migrator.check(in: transaction)
                return try Storage.Progress.claimedSince(orphans, in: transaction)
            }
            health.lag.forget(claimed)
            // Who writes nothing now and then cannot tell that it can.
            databaseWorks(wrote: keeper == nil)
        } catch {
            note(error)
        }
    }

    /// Looks for what would keep a write out. Does not wait for locks.
    func lookForObstacles() throws {
        let isSuspected = store.obstacle?.isLockTimeout == true
        store.looked(try database.obstacle(to: migrator.tables, isSuspected: isSuspected), now: clock.now())
    }

    /// An error of the work that goes on beside deciding: the next turn tries again.
    func note(_ error: any Error) {
        if error is SchemaMismatch || error is AppsFile.Problem {
            membership = .unfit(error)
            return
        }
        guard let error = error as? StorageError else {
            logger.error(
                "housekeeping failed", metadata: ["event": "storage.defect", "error": "\(error)"])
            return
        }
        switch error.kind {
        case .conflict: heldUp(error)
        case .fenced: rejoin(because: error)
        case .unavailable: health.writes(error)
        case .invalid:
            logger.error("housekeeping failed", metadata: ["event": "storage.defect", "error": "\(error)"])
        }
    }

    /// Something was looked up, or written too: a store may answer and take no writes.
    func databaseWorks(wrote: Bool) {
        if store.isDecidingFailing { return }
        // A lock was taken, or a row changed: that needs no room, and not every table.
        if wrote || store.obstacle != nil { health.writes(store.obstacle) } else { health.reads(nil) }
    }

    func rejoin(because error: StorageError) {
        metrics.fenced()
        logger.notice(
            "letting go of all partitions and joining again",
            metadata: ["event": "partitions.fenced", "cause": "\(error)"])
        membership.leave()
        // A migration ends all claims.
        lookAtStore()
    }
}
