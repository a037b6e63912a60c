// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Storage

/// The partitions that are assigned to this replica (docs/loop.md). A pure value: it says what to claim, what to read,
/// what to write and what is still owed.
struct Partitions {
    private let batchSize: Int
    private(set) var all: [TopicPartition: Partition] = [:]
    /// Survive their partitions: what a publisher has of a lane may come after it is assigned again.
    private var generations: [TopicPartition: Int] = [:]

    /// - Parameter batchSize: a deadly record stands at most a batch away from where claims stopped.
    init(batchSize: Int) { self.batchSize = batchSize }

    var isEmpty: Bool { all.isEmpty }

    subscript(_ partition: TopicPartition) -> Partition? { all[partition] }

    /// Where the partition is; `nil` while it was never claimed.
    func position(_ partition: TopicPartition) -> Position? { all[partition]?.position }

    var positions: some Sequence<Position> { all.values.lazy.compactMap(\.position) }

    // MARK: States

    mutating func assign(_ partitions: some Sequence<TopicPartition>, isAlone: Bool) {
        for partition in partitions where all[partition] == nil { all[partition] = Partition(isAlone: isAlone) }
    }

    mutating func remove(_ partitions: some Sequence<TopicPartition>) {
        for partition in partitions { all[partition] = nil }
    }

    mutating func handle(_ event: Partition.Event, at partition: TopicPartition) -> [Partition.Action] {
        all[partition]?.handle(event) ?? []
    }

    /// - Parameters:
    ///   - isSeen: whether the log need not show that it is still the same one.
    ///   - handed: the last offset of a lane that this process has handed over already, or the given one.
    mutating func claimed(
        _ claim: PartitionClaim, isSeen: Bool = false, handed: (Lane, Int64) -> Int64 = { $1 },
        room: (Lane) -> Partition.Room = { _ in .enough }
    ) -> [Partition.Action] {
        let position = Position(claim, isSeen: isSeen, batchSize: batchSize)
        let partition = position.partition
        if handed(lane(partition, claim.incarnation), -1) >= position.nextOffset {
            generations[partition, default: 0] += 1
        }
        let owed =
            claim.unpublished.map {
                Partition.Owed(
                    incarnation: $0.incarnation, after: handed(lane(partition, $0.incarnation), $0.publishedThrough))
            } + owedOfNow(position, handed)
        return handle(.claimed(position, owed: owed, room: room(lane(position))), at: partition)
    }

    /// Also where all of it was handed over: what was delivered while the partition was nobody's is known by the end that is
    /// handed over behind it.
    private func owedOfNow(_ position: Position, _ handed: (Lane, Int64) -> Int64) -> [Partition.Owed] {
        guard position.publishedThrough + 1 < position.nextOffset else { return [] }
        let after = handed(lane(position), position.publishedThrough)
        return [Partition.Owed(incarnation: position.claim.incarnation, after: after)]
    }

    func places(_ isMeant: (Partition.State) -> Bool) -> [TopicPartition] {
        all.filter { isMeant($0.value.state) }.keys.sorted()
    }

    /// Takes what was read.
    /// - Returns: what is decided of it now, in the order in which it came, and the partitions to be paused.
    mutating func take(_ records: [KafkaRecord]) -> (decided: [KafkaRecord], paused: [TopicPartition]) {
        var firsts: [TopicPartition: Int64] = [:]
        var paused: [TopicPartition] = []
        for (partition, records) in Dictionary(grouping: records, by: \.topicPartition) {
            for action in handle(.records(records), at: partition) {
                switch action {
                case .decide(let records): firsts[partition] = records.first?.offset
                case .pause: paused.append(partition)
                case .restart, .resume: break  // Reading leads to neither.
                }
            }
        }
        let decided = records.filter { record in firsts[record.topicPartition].map { record.offset >= $0 } ?? false }
        return (decided, paused.sorted())
    }

    // MARK: Lanes

    /// Where the decisions on a partition's records belong.
    func lane(_ partition: TopicPartition) -> Lane? { position(partition).map(lane) }

    private func lane(_ position: Position) -> Lane { lane(position.partition, position.claim.incarnation) }

    func lane(_ partition: TopicPartition, _ incarnation: Int64) -> Lane {
        Lane(partition: partition, incarnation: incarnation, generation: generations[partition] ?? 0)
    }

    var incarnations: [TopicPartition: Int64] { all.compactMapValues { $0.position?.claim.incarnation } }

    // MARK: Deciding

    /// Whether the record is ours to decide: its partition is claimed, and it was not decided before.
    func wants(_ record: KafkaRecord) -> Bool { position(record.topicPartition)?.wants(record) ?? false }

    /// Whether it is still, while it is being decided: since it was taken, the claim may have come into doubt.
    func mayDecide(_ record: KafkaRecord) -> Bool { wants(record) && all[record.topicPartition]?.state != .unclaimed }

    /// The progress that deciding these records makes, in the order of the partitions.
    /// - Parameter now: bounds the log's time, so that a record from the future makes nothing old; milliseconds.
    func updates(for records: [KafkaRecord], now: Int64) -> [ProgressUpdate] {
        var ends: [TopicPartition: Position.End] = [:]
        for record in records { ends[record.topicPartition, default: Position.End()].add(record) }
        return ends.compactMap { partition, end in position(partition)?.update(to: end, now: now) }
            .sorted { ($0.topic, $0.partition) < ($1.topic, $1.partition) }
    }

    mutating func decided(_ updates: [ProgressUpdate]) {
        for update in updates { all[update.place]?.position?.decided(update) }
    }

    // MARK: Publishing

    mutating func published(_ through: [Lane: Int64]) {
        for (lane, offset) in through {
            guard let position = position(lane.partition), lane.generation == generations[lane.partition] ?? 0 else {
                continue
            }
            if lane.incarnation == position.claim.incarnation {
                all[lane.partition]?.position?.published(through: offset)
            } else {
                all[lane.partition]?.position?.published(lane.incarnation, through: offset)
            }
        }
    }

    /// What the store does not yet know of publishing in earlier incarnations, and whether it is the last.
    var unsavedSetAside: [(lane: Lane, epoch: Int64, through: Int64, isAll: Bool)] {
        positions.flatMap { position in
            position.unsavedSetAside.map { incarnation, through in
                let isAll = position.setAsideEnds[incarnation].map { through >= $0 } ?? false
                return (lane(position.partition, incarnation), position.claim.epoch, through, isAll)
            }
        }
        .sorted { ($0.lane.partition, $0.lane.incarnation) < ($1.lane.partition, $1.lane.incarnation) }
    }

    mutating func savedSetAside(_ lane: Lane) { all[lane.partition]?.position?.savedSetAside(lane.incarnation) }

    /// What the progress table does not yet know of publishing.
    var unsaved: [PublishedUpdate] {
        positions.compactMap(\.unsaved).sorted { ($0.topic, $0.partition) < ($1.topic, $1.partition) }
    }

    mutating func saved(_ updates: [PublishedUpdate]) {
        for update in updates { all[update.place]?.position?.saved(update) }
    }

    /// What can leave the outbox with an update of these partitions' progress.
    func unremoved(_ partitions: some Sequence<TopicPartition>) -> [Storage.Outbox.Published] {
        partitions.compactMap { position($0)?.unremoved }
    }

    mutating func removed(_ published: [Storage.Outbox.Published]) {
        for one in published { all[one.log.partition]?.position?.removed(one) }
    }

    /// Where the claimed partitions stand, to compare with the ends of their logs.
    func places(of consumers: Consumers) -> [TopicPartition: LagBoard.Place] {
        let groups = Dictionary(consumers.all.map { ($0.topic, $0.group) }) { first, _ in first }
        return all.compactMapValues { partition in
            guard let position = partition.position, let group = groups[position.claim.topic] else { return nil }
            return LagBoard.Place(
                group: group, epoch: position.claim.epoch, next: position.nextOffset, lastTime: position.lastTime,
                heldTime: partition.held.first?.timestampMs)
        }
    }

    /// Next offsets to tell the groups: what the store has. Nothing here reads them; others measure the lag by them.
    var uncommitted: [TopicPartition: Int64] { all.compactMapValues { $0.position?.uncommitted } }

    /// The groups were told those of these partitions.
    mutating func committed(_ places: [TopicPartition]) {
        for place in places { all[place]?.position?.committed() }
    }
}
