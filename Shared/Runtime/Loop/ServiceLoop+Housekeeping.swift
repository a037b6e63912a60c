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
        if hasMoreToPrune { prune() }
        // A newcomer must not miss the moment in which it shares the topics; an idle service is to cost nothing.
        if !wasComplete { try checkCompleteness(consumers, now) }
        guard now - lastHousekeeping >= .seconds(1) else { return }
        lastHousekeeping = now
        metrics.outbox(publisher.pending)
        health.publishing(publisher.problem)
        health.group(consumers.problem)
        saveProgress()
        if let joined = watch.cluster, joined != cluster {
            logger.warning(
                "this is another Kafka cluster than before", metadata: ["before": "\(cluster)", "now": "\(joined)"])
            mustRejoin = true
        }
        if now - lastCommit >= .seconds(30) {
            lastCommit = now
            consumers.commit(partitions.uncommitted, wait: false)
            partitions.committed()
        }
        if wasComplete { try checkCompleteness(consumers, now) }
        // In a replay, what came of it once stands in the topics, and is read in its turn.
        if isKeeper, !consumers.isReplaying {
            sendDue()
            endDryRuns()
        } else {
            endedDryRuns = []
        }
        if now - lastReload >= .seconds(2) {
            lastReload = now
            reloadApps()
        }
        if deciderNumber == 0, !partitions.isEmpty { nameDecider() }
        if now - lastPrune >= .seconds(5) {
            lastPrune = now
            lookAtStore()
            prune()
        }
    }

    /// Takes up a changed apps file.
    /// - Returns: whether another version is in force now.
    @discardableResult func reloadApps() -> Bool {
        do {
            guard try apps.reload(asking: { try Service.refusal(of: $0, on: database) }) else { return false }
        } catch {
            note(error)
            return false
        }
        reader = InboundReader(authenticator: configuration.authenticator(for: apps.apps), topics: topics)
        let appTopics = configuration.replyTopicSpecs(of: apps.apps)
        writer.appReplyTopics = Set(appTopics.map(\.name))
        watch.want(appTopics: appTopics)
        deciderNumber = 0
        return true
    }

    /// One replica does what is to be done once: the owner of the first partition of the commands topic.
    private var isKeeper: Bool { keeper != nil }

    private var keeper: HeldPartition? {
        partitions.position(TopicPartition(topic: topics.commands(Service.name), partition: 0))?.claim.held
    }

    /// The apps file has changed: what is decided from now on is decided by it. Replicas that see the change at the same
    /// time take turns; until then, and while the database is away, nobody is named.
    private func nameDecider() {
        do {
            deciderNumber = try database.transaction { try Deciders.number(of: decider, in: $0) }
        } catch {
            note(error)
        }
    }

    /// What stands beside each decision in the inbox: the settings and the release that decided.
    var decider: Decider { Decider(apps: apps.digest, code: Release.version) }

    /// Two replicas with a SQLite file each would keep two truths. Whoever has not got all partitions decides nothing
    /// that it has just been given, and leaves: the newcomer soon, so that the other one has them back. If that one goes
    /// meanwhile, the newcomer leaves all the same: it has not got what was decided. Who has decided before may have been
    /// killed, and shares with itself until that session has ended.
    private func checkCompleteness(_ consumers: Consumers, _ now: ContinuousClock.Instant) throws {
        guard !configuration.database.isShared, consumers.problem == nil else { return }
        if isComplete {
            partialSince = nil
            if !wasComplete {
                wasComplete = true
                for place in partitions.all.keys.sorted() { tell(.alone(room: room(place)), place, consumers) }
            }
            return
        }
        let since = partialSince ?? now
        partialSince = since
        if !hasBegun {
            do {
                hasBegun = try database.transaction { try Storage.Progress.hasBegun(in: $0) }
            } catch {
                return note(error)
            }
        }
        let dead = hasBegun ? configuration.kafka.sessionTimeout * 2 : .seconds(3)
        guard now - since > (wasComplete ? .seconds(40) : dead) else { return }
        throw ConfigurationProblem(
            "DATABASE_URL",
            "is not set, and another replica of the \(Service.name) service reads the same topics. With SQLite there can be "
                + "one; give all of them the URL of one PostgreSQL database, or stop the other one")
    }

    /// Whether no replica with a store of its own can read along.
    var isAlone: Bool { configuration.database.isShared || wasComplete }

    /// Whether everything that the service reads is assigned to this replica, and what was ever another's is in its store.
    var isComplete: Bool {
        guard let consumers, wasComplete || partialSince == nil || hasBegun else { return false }
        return consumers.all.allSatisfy { consumers.assigned($0.topic) >= watch.partitions(of: $0.topic) ?? 1 }
    }

    /// Writes down how far publishing came. What cannot be written now is written later.
    func saveProgress() {
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
            databaseWorks()
        } catch {
            note(error)
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

    /// Answers dry runs that have waited for too long. A reply stands in the store until it is delivered: who owns the
    /// first partition after a crash sends it once more.
    private func endDryRuns() {
        guard publisher.problem == nil, publisher.unbound < configuration.batchSize else { return }
        let now = clock.time()
        let delivered = publisher.unbound == 0 ? endedDryRuns : []
        do {
            let ended = try database.transaction { transaction in
                for id in delivered.sorted() { try DryRuns.remove(app: id.app, id: id.id, in: transaction) }
                try batchDecider(at: now)
                    .endOverdueDryRuns(limit: configuration.batchSize, in: transaction, now: now)
                return try DryRuns.ended(limit: configuration.batchSize, in: transaction)
            }
            endedDryRuns.subtract(delivered)
            for row in ended where endedDryRuns.insert(Scoped(app: row.app, id: row.id)).inserted {
                publisher.publish(try vault.open(row.message).map(writer.signedAgain))
            }
        } catch {
            note(error)
        }
    }

    /// Small steps between batches, by one replica: the inbox's oldest generation is looked through, then emptied, then
    /// the sagas go whose commands it knew.
    private func prune() {
        hasMoreToPrune = false
        guard let keeper else {
            sweep = nil
            return
        }
        let limit = 2 * configuration.batchSize
        let retention = configuration.journalRetention.inMilliseconds
        do {
            if hasOldSagas {
                // What a saga's own log knows to be old. An idle log makes nothing old.
                let horizon = (partitions.positions.map(\.logTime).max() ?? -1) - retention
                let count = try database.transaction { try Sagas.prune(olderThan: horizon, limit: limit, in: $0) }
                hasOldSagas = count >= limit
                hasMoreToPrune = hasOldSagas
            } else if var running = sweep {
                if running.isDone {
                    try database.exclusiveTransaction { try Inbox.turn(running, keeper: keeper, in: $0) }
                    logger.info("a generation of the inbox is forgotten, the next one begins")
                    sweep = nil
                    hasOldSagas = true
                } else {
                    try database.transaction { try Inbox.carryOver(&running, keeper: keeper, limit: limit, in: $0) }
                    sweep = running
                }
                hasMoreToPrune = true
            } else {
                sweep = try database.transaction {
                    try Inbox.beginSweep(keeper: keeper, retention: retention, in: $0)
                }
                hasMoreToPrune = sweep != nil
            }
            databaseWorks()
        } catch {
            // Somebody reads the table that is to be emptied: what was looked through need not be looked through again.
            if (error as? StorageError)?.isLockTimeout != true { sweep = nil }
            hasMoreToPrune = false
            note(error)
        }
    }

    /// Whoever has nothing to write notices all the same that the store is away, that it is an earlier copy by now, whose
    /// claims and offsets are other ones, or that a later version has migrated it.
    private func lookAtStore() {
        guard !partitions.isEmpty else { return }
        do {
            try database.transaction { try migrator.check(in: $0) }
            databaseWorks()
        } catch {
            note(error)
        }
    }

    /// An error of the work that goes on beside deciding: the next turn tries again.
    func note(_ error: any Error) {
        if error is SchemaMismatch || error is AppsFile.Problem {
            mismatch = error
            return
        }
        guard let error = error as? StorageError else {
            logger.error("housekeeping failed", metadata: ["error": "\(error)"])
            return
        }
        switch error.kind {
        case .conflict: break
        case .fenced: rejoin(because: error)
        case .unavailable: health.database(error.description)
        case .invalid: logger.error("housekeeping failed", metadata: ["error": "\(error)"])
        }
    }

    /// Something was written or looked up.
    func databaseWorks() {
        if !isDecidingFailing { health.database(nil) }
    }

    func rejoin(because error: StorageError) {
        metrics.fenced()
        logger.warning("letting go of all partitions and joining again", metadata: ["cause": "\(error)"])
        mustRejoin = true
        // A migration ends all claims.
        lookAtStore()
    }
}
