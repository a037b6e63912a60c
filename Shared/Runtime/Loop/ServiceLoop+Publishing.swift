// SPDX-License-Identifier: Apache-2.0

import Contracts
import Logging
import Messaging
import Storage

/// What is owed from before, and partitions that have to wait for what they lead to.
extension ServiceLoop {
    /// Rows of the outbox that are handed over at a time.
    private static var slice: Int { 500 }

    var hasOwedToHandOver: Bool {
        ownership.owing.contains { partition in
            ownership[partition]?.owed.first.map {
                !publisher.isFull(ownership.lane(partition, $0.incarnation))
            } ?? false
        }
    }

    /// Hands over what was decided before and perhaps not published, a slice of each partition: every message has its
    /// first id and content. Only then are new records of the partition decided.
    func workOffOwed() {
        for partition in ownership.owing {
            guard let owed = ownership[partition]?.owed.first else { continue }
            let lane = ownership.lane(partition, owed.incarnation)
            guard !publisher.isFull(lane) else { continue }
            do {
                try handOver(owed, in: lane)
            } catch {
                note(error)
                health.partitions("what \(partition) owes cannot be published: \(error)")
                if !(error is StorageError) { logger.critical("\(error)", metadata: ["partition": "\(partition)"]) }
                clock.sleep(.milliseconds(200))
                return
            }
        }
    }

    private func handOver(_ owed: Ownership.Owed, in lane: Lane) throws {
        let partition = lane.partition
        guard let owned = ownership[partition] else { return }
        let rows = try database.transaction { transaction in
            // What a store that went back no longer has would count as handed over.
            try Storage.Progress.check(
                partition, epoch: owned.claim.epoch, expectedOffset: owned.storedOffset, in: transaction)
            return try Outbox.unpublished(
                LogID(partition, incarnation: lane.incarnation), after: owed.after, limit: Self.slice, in: transaction)
        }
        // A row that this version cannot read stops its partition: what cannot be read may not be passed over.
        let messages = try rows.map { try vault.open($0.messages).map(writer.signedAgain) }
        for (row, messages) in zip(rows, messages) {
            publisher.publish(messages, in: lane, through: row.position.offset)
        }
        let isAll = rows.count < Self.slice
        var through = rows.last?.position.offset ?? owed.after
        if isAll {
            if owned.claim.incarnation == lane.incarnation { through = max(through, owned.nextOffset - 1) }
            // The end stands behind what this process handed over before and what is not delivered yet.
            publisher.publish([], in: lane, through: through)
        }
        ownership.handedOver(partition, lane.incarnation, through: through, isAll: isAll)
    }

    /// Waits for deliveries, for a while.
    func drain(for limit: Duration) {
        let deadline = clock.now() + limit
        while publisher.pending > 0, clock.now() < deadline, !signals.isStoppingAtOnce {
            health.turned()
            note(publisher.poll(timeout: .milliseconds(20)))
        }
    }

    // MARK: Partitions that wait

    /// Keeps a record for later and has its partition paused.
    func hold(_ record: KafkaRecord) {
        held[record.topicPartition, default: []].append(record)
    }

    /// Pauses partitions whose records have to wait, and goes on with those that waited and need not any more.
    func goOn(_ consumers: Consumers) {
        let full = ownership.partitions.keys.filter { partition in
            ownership.lane(partition).map(publisher.isFull) ?? false
        }
        let waiting = Set(held.keys).union(full).subtracting(paused)
        if !waiting.isEmpty, tell({ () throws(KafkaError) in try consumers.pause(waiting.sorted()) }) {
            paused.formUnion(waiting)
        }
        guard !paused.isEmpty, !mustRejoin else { return }
        let free = paused.filter { partition in
            isLive(partition) && (ownership.lane(partition).map(publisher.hasRoom) ?? false)
        }
        guard !free.isEmpty else { return }
        for partition in free.sorted() {
            if let records = held.removeValue(forKey: partition) { decide(records) }
        }
        if tell({ () throws(KafkaError) in try consumers.resume(free.sorted()) }) { paused.subtract(free) }
    }

    /// Tells the consumers what to read. When they do not have the partitions any more, the groups are joined anew.
    func tell(_ work: () throws(KafkaError) -> Void) -> Bool {
        do {
            try work()
            return true
        } catch {
            logger.warning("a consumer does not obey; joining again", metadata: ["error": "\(error)"])
            mustRejoin = true
            return false
        }
    }
}
