// SPDX-License-Identifier: Apache-2.0

import Contracts
import Logging
import Messaging
import Storage

/// What is owed from before, and partitions that have to wait for what they lead to.
extension ServiceLoop {
    /// Rows of the outbox that are handed over at a time.
    private static var slice: Int { 500 }

    var hasOwedToHandOver: Bool { owing.contains { !publisher.isFull($0.lane) } }

    /// What goes next, of each partition that owes something.
    private var owing: [(owed: Partition.Owed, lane: Lane)] {
        partitions.places(\.isBacklog).compactMap { place in
            guard case .backlog(let owed)? = partitions[place]?.state, let first = owed.first else { return nil }
            return (first, partitions.lane(place, first.incarnation))
        }
    }

    /// Hands over what was decided before and perhaps not published, a slice of each partition: every message has its
    /// first id and content. Only then are new records of the partition decided.
    func workOffOwed(_ consumers: Consumers) {
        for (owed, lane) in owing where !publisher.isFull(lane) {
            do {
                try handOver(owed, in: lane, consumers)
            } catch {
                note(error)
                health.partitions("what \(lane.partition) owes cannot be published: \(error)")
                if !(error is StorageError) {
                    logger.critical(
                        "what is owed cannot be published",
                        metadata: [
                            "event": "outbox.unreadable", "partition": "\(lane.partition)", "error": "\(error)",
                        ])
                }
                clock.sleep(.milliseconds(200))
                return
            }
        }
    }

    private func handOver(_ owed: Partition.Owed, in lane: Lane, _ consumers: Consumers) throws {
        let partition = lane.partition
        guard let position = partitions.position(partition) else { return }
        let rows = try database.transaction { transaction in
            // What a store that went back no longer has would count as handed over.
            try Storage.Progress.check(
                partition, epoch: position.claim.epoch, expectedOffset: position.storedOffset, in: transaction)
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
            if position.claim.incarnation == lane.incarnation { through = max(through, position.nextOffset - 1) }
            // The end stands behind what this process handed over before and what is not delivered yet.
            publisher.publish([], in: lane, through: through)
        }
        tell(
            .handedOver(incarnation: lane.incarnation, through: through, isAll: isAll, room: room(partition)),
            partition, consumers)
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

    /// Pauses partitions whose lanes are full, and goes on with those that have room again.
    func lookAtLanes(_ consumers: Consumers) {
        for place in partitions.places({ $0 == .live }) where room(place) == .none { tell(.filled, place, consumers) }
        for place in partitions.places({ $0 == .full }) where room(place) == .enough {
            tell(.drained, place, consumers)
            if membership.isLeaving { return }
        }
    }

    /// What the partition's lane still takes.
    func room(_ partition: TopicPartition) -> Partition.Room {
        partitions.lane(partition).map(room) ?? .enough
    }

    func room(_ lane: Lane) -> Partition.Room {
        publisher.isFull(lane) ? .none : publisher.hasRoom(lane) ? .enough : .little
    }

    /// Nobody knows any more whether the partitions' claims hold.
    func doubt(_ places: some Sequence<TopicPartition>) {
        guard let consumers else { return }
        for place in places { tell(.doubted, place, consumers) }
    }

    /// Tells the partition what happened, and does what follows.
    func tell(_ event: Partition.Event, _ partition: TopicPartition, _ consumers: Consumers) {
        perform(partitions.handle(event, at: partition), partition, consumers)
    }

    func perform(_ actions: [Partition.Action], _ partition: TopicPartition, _ consumers: Consumers) {
        for action in actions where !membership.isLeaving {
            switch action {
            case .decide(let records): decide(records)
            case .restart(let offset): command { () throws(KafkaError) in try consumers.restart([partition: offset]) }
            case .pause: command { () throws(KafkaError) in try consumers.pause([partition]) }
            case .resume: command { () throws(KafkaError) in try consumers.resume([partition]) }
            }
        }
    }

    func pause(_ places: [TopicPartition], _ consumers: Consumers) {
        if !places.isEmpty { command { () throws(KafkaError) in try consumers.pause(places) } }
    }

    /// Tells the consumers what to read. When they do not have the partitions any more, the groups are joined anew.
    func command(_ work: () throws(KafkaError) -> Void) {
        do {
            try work()
        } catch {
            logger.warning(
                "a consumer does not obey; joining again",
                metadata: ["event": "group.disobeyed", "error": "\(error)"])
            membership.leave()
        }
    }
}
