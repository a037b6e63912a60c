// SPDX-License-Identifier: Apache-2.0

import Contracts
import Logging
import Storage
import Synchronization

/// Records that may end the process, and those that cannot be decided.
extension ServiceLoop {
    /// The first is its batch's, whose other records may have ended the process as well.
    private static var maxDeadlyAttempts: Int { 4 }

    /// Where processes ended before, the records at which one did are tried one by one, behind the others.
    func decideCarefully(_ records: [KafkaRecord]) {
        let isSuspicious = { (record: KafkaRecord) in
            self.partitions.position(record.topicPartition)?.isSuspicious == true
        }
        let suspicious = records.filter(isSuspicious)
        runInDoubt(records.filter { !isSuspicious($0) })
        suspicious.forEach(tryAlone)
    }

    /// Where claims ended without progress, the batch is marked before it is tried: if the process ends now, the next
    /// one tries its records one by one. That is slow, so a mere count of claims does not ask for it: replicas that are
    /// stopped while they join claim as well.
    private func runInDoubt(_ records: [KafkaRecord]) {
        guard partitions.positions.contains(where: \.isDoubtful) else { return run(records) }
        guard takeTurn() else { return }
        defer { trial.giveBack() }
        var doubted: [(record: KafkaRecord, epoch: Int64)] = []
        var seen: Set<TopicPartition> = []
        for record in records where partitions.wants(record) && !seen.contains(record.topicPartition) {
            seen.insert(record.topicPartition)
            guard let position = partitions.position(record.topicPartition), position.isDoubtful else { continue }
            guard mark(record, position.claim.epoch) != nil else { continue }
            doubted.append((record, position.claim.epoch))
        }
        run(records)
        for (record, epoch) in doubted where partitions.wants(record) { takeMarkBack(record, epoch) }
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
        guard partitions.wants(record), let epoch = partitions.position(record.topicPartition)?.claim.epoch else {
            return
        }
        guard let attempts = mark(record, epoch) else { return }
        if attempts > Self.maxDeadlyAttempts {
            deadLetter(record, "the process ended \(attempts - 1) times while it tried this record", attempts: attempts)
        } else {
            run([record])
        }
        if partitions.wants(record) { takeMarkBack(record, epoch) }
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

    /// Gives up a record that cannot be decided, and answers it.
    func deadLetter(_ record: KafkaRecord, _ problem: String, attempts: Int) {
        logger.error(
            "a record cannot be decided and becomes a dead letter",
            metadata: [
                "event": "record.undecidable", "topic": "\(record.topicPartition.topic)",
                "partition": .stringConvertible(record.topicPartition.partition),
                "offset": .stringConvertible(record.offset), "problem": "\(problem)",
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
