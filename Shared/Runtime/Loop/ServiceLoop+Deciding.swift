// SPDX-License-Identifier: Apache-2.0

import Contracts
import Logging
import Messaging
import Storage
import Synchronization

extension ServiceLoop {
    /// Decides records until each is concluded, this replica is told that it no longer owns them, or it is stopped.
    /// Nothing is skipped: what is not concluded stands in the log, and the progress table still points to it.
    func decide(_ records: [KafkaRecord]) {
        guard ownership.partitions.values.contains(where: \.isSuspicious) else { return runInDoubt(records) }
        let isSuspicious = { (record: KafkaRecord) in self.ownership[record.topicPartition]?.isSuspicious == true }
        let suspicious = records.filter(isSuspicious)
        runInDoubt(records.filter { !isSuspicious($0) })
        suspicious.forEach(tryAlone)
    }

    /// Where claims ended without progress, the batch is marked before it is tried: if the process ends now, the next
    /// one tries its records one by one. That is slow, so a mere count of claims does not ask for it: replicas that are
    /// stopped while they join claim as well.
    private func runInDoubt(_ records: [KafkaRecord]) {
        guard ownership.partitions.values.contains(where: \.isDoubtful) else { return run(records) }
        guard takeTurn() else { return }
        defer { trial.giveBack() }
        var doubted: [(record: KafkaRecord, epoch: Int64)] = []
        var seen: Set<TopicPartition> = []
        for record in records where ownership.wants(record) && !seen.contains(record.topicPartition) {
            seen.insert(record.topicPartition)
            guard let partition = ownership[record.topicPartition], partition.isDoubtful else { continue }
            guard mark(record, partition.claim.epoch) != nil else { continue }
            doubted.append((record, partition.claim.epoch))
        }
        run(records)
        for (record, epoch) in doubted where ownership.wants(record) { takeMarkBack(record, epoch) }
    }

    /// Waits until no other loop of the process tries what may end it.
    /// - Returns: `false` when asked to stop meanwhile; what was to be decided stands in the log.
    private func takeTurn() -> Bool {
        while !trial.take() {
            if signals.isStopping { return false }
            health.turned()
            clock.sleep(.milliseconds(5))
        }
        return true
    }

    /// Writes down that the record is about to be tried.
    /// - Returns: how often it was, this time included; `nil` when that could not be written.
    private func mark(_ record: KafkaRecord, _ epoch: Int64) -> Int? {
        let partition = record.topicPartition
        return persist {
            try database.transaction {
                try Progress.markSuspect(
                    topic: partition.topic, partition: partition.partition, epoch: epoch, offset: record.offset, in: $0)
            }
        }
    }

    /// A record at which a process ended: writes down that it is being tried before it is, so that a record that kills
    /// the process is known by its count and dead-lettered.
    private func tryAlone(_ record: KafkaRecord) {
        guard takeTurn() else { return }
        defer { trial.giveBack() }
        guard ownership.wants(record), let epoch = ownership[record.topicPartition]?.claim.epoch else { return }
        guard let attempts = mark(record, epoch) else { return }
        if attempts > Self.maxDeadlyAttempts {
            deadLetter(record, "the process ended \(attempts - 1) times while it tried this record", attempts: attempts)
        } else {
            run([record])
        }
        if ownership.wants(record) { takeMarkBack(record, epoch) }
    }

    /// The attempt ended without an answer and without ending the process: it says nothing about the record.
    private func takeMarkBack(_ record: KafkaRecord, _ epoch: Int64) {
        let partition = record.topicPartition
        do {
            try database.transaction {
                try Progress.unmarkSuspect(
                    topic: partition.topic, partition: partition.partition, epoch: epoch, offset: record.offset, in: $0)
            }
        } catch {
            logger.debug("a mark could not be withdrawn", metadata: ["error": "\(error)"])
        }
    }

    private static var maxDeadlyAttempts: Int { 3 }
    /// Conflicts in a row after which a lone record counts as one that cannot be decided. Many: in a conflict somebody
    /// else got on, so under contention it is a matter of seconds, and only a defect conflicts for ever.
    private static var maxConflicts: Int { 200 }

    private func run(_ records: [KafkaRecord]) {
        var conflicts = 0
        while true {
            health.turned()
            let mine = records.filter { ownership.wants($0) && !unclaimed.contains($0.topicPartition) }
            guard !mine.isEmpty, !signals.isStopping, !mustRejoin else { return }
            do {
                try commit(mine, mine.map(read))
                return
            } catch let error as StorageError where error.kind == .conflict && conflicts < Self.maxConflicts {
                metrics.conflicted()
                // Waiting for a lock that somebody keeps says nothing about the records, however often it is done.
                if !error.isLockTimeout { conflicts += 1 }
                if conflicts == 3, mine.count > 1 { return halve(mine) }
                sleep(milliseconds: 0...(1 << min(conflicts, 6)))
            } catch let error as StorageError where error.kind == .unavailable {
                // Whether a commit happened is not known: the next claim finds out, and says where to read on.
                unclaimed.formUnion(mine.map(\.topicPartition))
                return waitForDatabase(error)
            } catch let error as StorageError where error.isFenced {
                return rejoin(because: error)
            } catch {
                if mine.count > 1 { return halve(mine) }
                return deadLetter(mine[0], "\(error)", attempts: 1)
            }
        }
    }

    /// A record of a log that followed another one, and that is older than what is remembered of that one, may have been
    /// decided there.
    private func read(_ record: KafkaRecord) -> Inbound<Service.Command> {
        let isTooOldToTell =
            ownership[record.topicPartition].map { owned in
                owned.claim.incarnation > 0 && record.timestampMs >= 0
                    && record.timestampMs < owned.claim.forgottenBefore
            } ?? false
        return reader.read(record, now: clock.time(), isTooOldToTell: isTooOldToTell)
    }

    private func halve(_ records: [KafkaRecord]) {
        let middle = records.count / 2
        run(Array(records[..<middle]))
        run(Array(records[middle...]))
    }

    /// Gives up a record that cannot be decided, and answers it.
    private func deadLetter(_ record: KafkaRecord, _ problem: String, attempts: Int) {
        logger.error(
            "a record cannot be decided and becomes a dead letter",
            metadata: [
                "topic": "\(record.topicPartition.topic)", "partition": "\(record.topicPartition.partition)",
                "offset": "\(record.offset)", "problem": "\(problem)",
            ])
        var refusal = Refusal(
            record: record,
            deadLetter: .init(
                reason: ReasonCode.internalError.rawValue, step: .decide, detail: problem, attempts: attempts))
        // Even reading a record that killed the process may kill it. That was marked as one more attempt: the next time its
        // sender is not told.
        if attempts <= Self.maxDeadlyAttempts + 1 {
            refusal.answer = Refusal.Answer(reader.read(record, now: clock.time()).accepted, Rejection(.internalError))
        }
        _ = persist { try commit([record], [.refused(refusal)]) }
    }

    /// One batch: progress, decisions, state and inbox in one transaction, then publish.
    ///
    /// Progress comes first: a replica that lost its partitions learns it from the epoch, before it runs into the rows
    /// that its successor wrote.
    private func commit(_ records: [KafkaRecord], _ batch: [Inbound<Service.Command>]) throws {
        let started = clock.now()
        let now = clock.time()
        let decider = BatchDecider(
            service: service, writer: writer.at(now), vault: vault, secrets: secrets, cluster: cluster,
            incarnations: ownership.incarnations, number: deciderNumber)
        let updates = ownership.updates(for: records, now: now.milliseconds)
        let published = ownership.unremoved(updates.map(\.place))
        let entries = try database.transaction { transaction in
            try Progress.advance(updates, in: transaction)
            let entries = try decider.decide(batch, in: transaction, now: now)
            try Outbox.remove(published, in: transaction)
            return entries
        }
        ownership.removed(published)
        databasePause.reset()
        isDecidingFailing = false
        health.database(nil)
        ownership.decided(updates)
        publish(entries, updates)
        metrics.committed(entries, duration: clock.now() - started)
    }

    private func publish(_ entries: [Entry], _ updates: [ProgressUpdate]) {
        var messages: [TopicPartition: [OutboxRecord]] = [:]
        // Records of one partition come together, so a run of them is looked up once.
        var run: [OutboxRecord] = []
        for index in entries.indices {
            run += entries[index].messages
            let next = index + 1
            if next == entries.count || entries[index].place != entries[next].place {
                messages[entries[index].place, default: []] += run
                run.removeAll(keepingCapacity: true)
            }
        }
        for update in updates {
            let partition = TopicPartition(topic: update.topic, partition: update.partition)
            guard let lane = ownership.lane(partition) else { continue }
            publisher.publish(messages[partition] ?? [], in: lane, through: update.nextOffset - 1)
        }
    }

    /// Runs storage work until it is done.
    /// - Returns: `nil` when this replica was fenced or stopped instead.
    func persist<Value>(_ work: () throws -> Value) -> Value? {
        while !signals.isStopping, !mustRejoin {
            health.turned()
            do {
                return try work()
            } catch let error as StorageError where error.kind == .conflict {
                sleep(milliseconds: 1...20)
            } catch let error as StorageError where error.isFenced {
                rejoin(because: error)
            } catch let error as StorageError where error.kind == .unavailable {
                waitForDatabase(error)
            } catch {
                logger.error("storage refused a statement; this is a defect", metadata: ["error": "\(error)"])
                health.database("\(error)")
                clock.sleep(.seconds(1))
            }
        }
        return nil
    }

    /// Waits a while after the database failed, longer each time until something was committed, and reports not ready
    /// meanwhile. A database that answers and does not write is as good as none. Being thrown out of the group for it is
    /// harmless: the epoch says so. Whether a commit happened is told by the claim that follows a new connection.
    func waitForDatabase(_ error: StorageError) {
        isDecidingFailing = true
        metrics.waited()
        logger.warning("the database is unavailable, waiting", metadata: ["error": "\(error)"])
        health.database(error.description)
        health.turned()
        clock.sleep(databasePause.nextSpread(using: &clock.random))
    }
}

extension StorageError {
    var isFenced: Bool { if case .fenced = kind { true } else { false } }
}

/// The turn to try records that may end the process. It belongs to one loop of a process at a time: else an end would
/// be charged to what another loop was trying, too. Usable from any thread.
package final class Trial: Sendable {
    private let isTaken = Atomic(false)

    package init() {}

    /// - Returns: whether the turn is the caller's now, who gives it back.
    func take() -> Bool { !isTaken.exchange(true, ordering: .acquiring) }

    func giveBack() { isTaken.store(false, ordering: .releasing) }
}
