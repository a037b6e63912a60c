// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging

/// A consumer group as its coordinator sees it. Members learn of what it decides when they next poll, or later.
final class SimulatedGroup {
    let topic: String
    private let log: SimulatedLog
    private(set) var members: [SimulatedConsumer] = []
    /// Who may read a partition, by the coordinator's word.
    fileprivate var owners: [Int32: SimulatedConsumer] = [:] {
        didSet { changes += 1 }
    }
    /// Who is to read it.
    fileprivate var targets: [Int32: SimulatedConsumer] = [:] {
        didSet { changes += 1 }
    }
    /// How often one of the two changed.
    fileprivate var changes = 0

    init(topic: String, log: SimulatedLog) {
        self.topic = topic
        self.log = log
    }

    private var numbers: [Int32] { log.topics[topic]?.map(\.place.partition) ?? [] }

    func join(_ member: SimulatedConsumer) {
        members.append(member)
        rebalance()
    }

    func leave(_ member: SimulatedConsumer) {
        guard members.contains(where: { $0 === member }) else { return }
        members.removeAll { $0 === member }
        owners = owners.filter { $0.value !== member }
        rebalance()
    }

    /// Deals the partitions out anew: mostly they stay where they are.
    func rebalance(shuffling: Bool = false) {
        guard !members.isEmpty else {
            targets = [:]
            return
        }
        for number in numbers {
            let known = targets[number].flatMap { target in members.first { $0 === target } }
            if let known, !shuffling, log.scheduler.chance(60) {
                targets[number] = known
            } else {
                targets[number] = log.scheduler.pick(members)
            }
        }
        for member in members { member.isToldAt = log.scheduler.now + log.scheduler.number(0...500_000) }
    }
}

/// A member of a group, in one replica.
final class SimulatedConsumer: RecordConsumer {
    private let group: SimulatedGroup
    private let log: SimulatedLog
    private let replica: Replica
    private weak var handler: (any RebalanceHandler)?

    private(set) var assignment: Set<TopicPartition> = []
    private(set) var isJoined = false
    /// Where the next record is read; nothing is read of a partition that has no position.
    private var positions: [TopicPartition: Int64] = [:]
    private var paused: Set<TopicPartition> = []
    private var outOfRange: Set<TopicPartition> = []
    private var vanished = false
    private var isClosed = false
    /// When it learns of the latest rebalance.
    fileprivate(set) var isToldAt: Int64 = 0
    /// The changes of the group after which it had what it was to have.
    private var settledAt = -1
    /// The coordinator has thrown it out, and it learns of that at this time.
    private var isEvictedUntil: Int64?
    /// The next poll fails for good.
    var isBroken = false

    init(_ group: SimulatedGroup, _ log: SimulatedLog, _ replica: Replica, _ handler: any RebalanceHandler) {
        (self.group, self.log, self.replica, self.handler) = (group, log, replica, handler)
        group.join(self)
    }

    var topic: String { group.topic }

    /// Thrown out of the group for silence. It goes on reading until it learns of it.
    func evict(toldAfter delay: Int64) {
        if isClosed || isEvictedUntil != nil { return }
        isEvictedUntil = log.scheduler.now + delay
        group.leave(self)
    }

    /// The topic was missing, and this member has noticed.
    func noticeMissingTopic() { vanished = true }

    /// The process is gone.
    func die() {
        isClosed = true
        group.leave(self)
    }

    func poll(maxRecords: Int, timeout: Duration) throws(KafkaError) -> [KafkaRecord] {
        replica.yield(.poll)
        if isClosed || replica.isDead { return [] }
        if isBroken { throw KafkaError(code: KafkaError.Code.fatal, isFatal: true) }
        rebalance()
        if replica.isDead || replica.isCutOffFromBroker { return [] }
        if log.missing.contains(topic) {
            vanished = vanished || !assignment.isEmpty
            return []
        }
        if vanished { return [] }
        var records: [KafkaRecord] = []
        for place in assignment.subtracting(paused).sorted() where records.count < maxRecords {
            guard let partition = log[place], !partition.isLeaderless, let position = positions[place] else { continue }
            guard (partition.start...partition.end).contains(position) else {
                positions[place] = nil
                outOfRange.insert(place)
                continue
            }
            let fetched = partition.read(
                from: position, limit: min(maxRecords - records.count, Int(log.scheduler.number(1...20))))
            positions[place] = position + Int64(fetched.count)
            records += fetched
        }
        return records
    }

    func poll(_ partitions: Set<TopicPartition>, upTo share: Int) throws(KafkaError) -> [KafkaRecord] {
        let others = assignment.subtracting(partitions).subtracting(paused)
        paused.formUnion(others)
        defer { paused.subtract(others) }
        return try poll(maxRecords: share, timeout: .zero)
    }

    func takeEnds() -> Set<TopicPartition> {
        assignment.filter { place in positions[place].map { $0 >= log[place]?.end ?? 0 } ?? false }
    }

    /// Whether a poll would give something.
    var hasNews: Bool {
        assignment.subtracting(paused).contains { place in
            positions[place].map { $0 < log[place]?.end ?? 0 } ?? false
        }
    }

    private func rebalance() {
        if let told = isEvictedUntil {
            guard told <= log.scheduler.now else { return }
            isEvictedUntil = nil
            isJoined = false
            let lost = assignment.sorted()
            remove(lost)
            if !lost.isEmpty { handler?.partitionsLost(lost) }
            if !isClosed { group.join(self) }
            return
        }
        guard isToldAt <= log.scheduler.now, !replica.isCutOffFromBroker else { return }
        let changes = group.changes
        if settledAt == changes { return }
        let mine = Set(
            group.targets.filter { $0.value === self }.map { TopicPartition(topic: topic, partition: $0.key) })
        let revoked = assignment.subtracting(mine).sorted()
        if !revoked.isEmpty {
            handler?.partitionsRevoked(revoked)
            if isClosed { return }
            remove(revoked)
            for place in revoked where group.owners[place.partition] === self { group.owners[place.partition] = nil }
        }
        guard isEvictedUntil == nil else { return }
        let assigned = mine.subtracting(assignment).filter { group.owners[$0.partition] == nil }.sorted()
        isJoined = true
        guard !assigned.isEmpty else {
            // What changed while others ran is looked at next time.
            settledAt = changes
            return
        }
        for place in assigned { group.owners[place.partition] = self }
        let starts = handler?.partitionsAssigned(assigned) ?? [:]
        if isClosed { return }
        assignment.formUnion(assigned)
        read(assigned, from: starts)
    }

    private func read(_ places: [TopicPartition], from starts: [TopicPartition: Int64]) {
        for place in places {
            guard let partition = log[place] else { continue }
            outOfRange.remove(place)
            switch starts[place] {
            case KafkaOffset.beginning: positions[place] = partition.start
            case KafkaOffset.end: positions[place] = partition.end
            case let offset? where offset >= 0: positions[place] = offset
            default:
                positions[place] = nil
                outOfRange.insert(place)
            }
        }
    }

    private func remove(_ places: [TopicPartition]) {
        assignment.subtract(places)
        paused.subtract(places)
        outOfRange.subtract(places)
        for place in places { positions[place] = nil }
    }

    func takeOutOfRange() -> [TopicPartition] {
        defer { outOfRange = [] }
        return outOfRange.sorted()
    }

    func takeVanished() -> Set<String> {
        defer { vanished = false }
        return vanished ? [topic] : []
    }

    func restart(_ starts: [TopicPartition: Int64]) throws(KafkaError) {
        replica.yield(.other)
        let mine = starts.keys.filter { assignment.contains($0) }.sorted()
        read(mine, from: starts)
    }

    func pause(_ partitions: [TopicPartition]) throws(KafkaError) {
        paused.formUnion(assignment.intersection(partitions))
    }

    func resume(_ partitions: [TopicPartition]) throws(KafkaError) { paused.subtract(partitions) }

    func commit(_ offsets: [TopicPartition: Int64], wait: Bool) -> Bool { true }

    func close(timeout: Duration) -> Bool {
        if isClosed { return true }
        replica.yield(.other)
        if isClosed { return true }
        let mine = assignment.sorted()
        let isLost = isEvictedUntil != nil
        if !mine.isEmpty, let handler {
            if isLost { handler.partitionsLost(mine) } else { handler.partitionsRevoked(mine) }
        }
        isClosed = true
        remove(mine)
        group.leave(self)
        return true
    }
}
