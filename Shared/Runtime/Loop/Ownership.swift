// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Storage

/// The partitions this replica owns, by the progress table's word (docs/loop.md). A pure value: it says what to read,
/// what to write and what is still owed.
struct Ownership {
    /// Messages that were decided and perhaps not published, to be read from the outbox: all behind `after`.
    struct Owed: Equatable {
        var incarnation: Int64
        var after: Int64
    }

    struct Partition {
        var claim: PartitionClaim
        /// The next offset to decide.
        var nextOffset: Int64
        /// What the progress table says of it: the next commit expects it there. `nil` before the first one.
        var storedOffset: Int64?
        /// The highest time of a record that was decided, by the log's word.
        var logTime: Int64
        /// The time of the record before `nextOffset`, as the log has it.
        var lastTime: Int64?
        /// Whether the log is known to have that record.
        var isSeen: Bool
        /// Everything up to here is published, as far as delivery reports say.
        var publishedThrough: Int64
        /// What of that stands in the progress table.
        var savedThrough: Int64
        /// What of that has left the outbox.
        var removedThrough: Int64 = -1
        /// What of that the group was told.
        var committedThrough: Int64
        /// Where a batch is to be tried with a mark: claims ended here without progress.
        var doubtedAt: Int64?
        /// Up to here records are tried one by one.
        var suspiciousUntil: Int64
        /// Worked off before any record of the partition is decided, oldest first.
        var owed: [Owed]
        /// The last offset that is owed of an earlier incarnation, once all of it was handed over.
        var setAsideEnds: [Int64: Int64] = [:]

        /// Replicas claimed this partition again and again and none got further: perhaps a record near its position
        /// kills them, perhaps somebody stopped them before they had begun.
        var isDoubtful: Bool { nextOffset == doubtedAt }

        /// A process ended while it tried what stands here.
        var isSuspicious: Bool { nextOffset < suspiciousUntil }
    }

    /// Claims without progress after which a partition is in doubt.
    static let doubtfulClaims: Int64 = 3
    /// A deadly record stands at most a batch away from where the claims stopped.
    let batchSize: Int

    init(batchSize: Int) {
        self.batchSize = batchSize
    }

    private(set) var partitions: [TopicPartition: Partition] = [:]
    private var generations: [TopicPartition: Int] = [:]

    var isEmpty: Bool { partitions.isEmpty }

    subscript(_ partition: TopicPartition) -> Partition? { partitions[partition] }

    /// - Parameters:
    ///   - handed: the last offset of a lane that this process has handed over already, or the given one.
    ///   - isSeen: whether the log need not show that it is still the same one.
    mutating func add(
        _ claim: PartitionClaim, isSeen: Bool = false, handed: (Lane, Int64) -> Int64 = { $1 }
    ) {
        let start = claim.nextOffset ?? 0
        let isSuspicious = claim.suspectCount > 0 && (claim.suspectOffset ?? -1) >= start
        let isDoubtful = !isSuspicious && claim.idleClaims >= Self.doubtfulClaims
        let partition = TopicPartition(topic: claim.topic, partition: claim.partition)
        let all =
            claim.unpublished.map { Owed(incarnation: $0.incarnation, after: $0.publishedThrough) }
            + [Owed(incarnation: claim.incarnation, after: claim.publishedThrough)]
        if handed(lane(partition, claim.incarnation), -1) >= start {
            generations[partition, default: 0] += 1
        }
        let owed = all.map { owed in
            let lane = lane(partition, owed.incarnation)
            return Owed(incarnation: owed.incarnation, after: handed(lane, owed.after))
        }
        partitions[partition] = Partition(
            claim: claim, nextOffset: start, storedOffset: claim.nextOffset, logTime: claim.logTime,
            lastTime: claim.lastTime, isSeen: isSeen || claim.lastTime == nil || start == 0,
            publishedThrough: claim.publishedThrough, savedThrough: claim.publishedThrough,
            committedThrough: claim.publishedThrough,
            doubtedAt: isDoubtful ? start : nil, suspiciousUntil: isSuspicious ? start + Int64(batchSize) : start,
            // Also when all of it was handed over: what was delivered while the partition was nobody's is known by the end
            // that is handed over behind it.
            owed: owed.filter { $0.incarnation != claim.incarnation || claim.publishedThrough + 1 < start })
    }

    mutating func remove(_ lost: some Sequence<TopicPartition>) {
        for partition in lost { partitions[partition] = nil }
    }

    /// Whether the record is ours to decide: its partition is owned and it was not decided before.
    func wants(_ record: KafkaRecord) -> Bool {
        partitions[record.topicPartition].map { record.offset >= $0.nextOffset } ?? false
    }

    /// Where to read on: one record before the next one to decide, while it is to be seen whether the log is the same.
    func start(of partition: TopicPartition) -> Int64? {
        partitions[partition].map {
            $0.storedOffset == nil ? KafkaOffset.beginning : $0.nextOffset - ($0.isSeen ? 0 : 1)
        }
    }

    /// Looks whether the first records that come show the log that was read before.
    /// - Returns: the partitions that have another record at the place of the last one decided.
    mutating func check(_ records: [KafkaRecord]) -> Set<TopicPartition> {
        guard partitions.values.contains(where: { !$0.isSeen }) else { return [] }
        var replaced: Set<TopicPartition> = []
        for record in records {
            let partition = record.topicPartition
            guard let owned = partitions[partition], !owned.isSeen, !replaced.contains(partition) else { continue }
            if record.offset == owned.nextOffset - 1, record.timestampMs != owned.lastTime {
                replaced.insert(partition)
            } else {
                partitions[partition]?.isSeen = true
            }
        }
        return replaced
    }

    /// Where the decisions on a partition's records belong.
    func lane(_ partition: TopicPartition) -> Lane? {
        partitions[partition].map { lane(partition, $0.claim.incarnation) }
    }

    func lane(_ partition: TopicPartition, _ incarnation: Int64) -> Lane {
        Lane(partition: partition, incarnation: incarnation, generation: generations[partition] ?? 0)
    }

    var incarnations: [TopicPartition: Int64] { partitions.mapValues(\.claim.incarnation) }

    /// The progress that deciding these records makes.
    /// - Parameter now: bounds the log's time, so that a record from the future makes nothing old; milliseconds.
    func updates(for records: [KafkaRecord], now: Int64) -> [ProgressUpdate] {
        ends(of: records).compactMap { partition, end in
            partitions[partition].map {
                ProgressUpdate(
                    topic: partition.topic, partition: partition.partition, epoch: $0.claim.epoch,
                    expectedOffset: $0.storedOffset, nextOffset: end.offset + 1,
                    publishedThrough: $0.publishedThrough, logTime: max($0.logTime, min(end.highest, now)),
                    lastTime: end.last)
            }
        }.sorted { ($0.topic, $0.partition) < ($1.topic, $1.partition) }
    }

    /// After the commit of `updates`.
    mutating func decided(_ updates: [ProgressUpdate]) {
        for update in updates {
            let partition = TopicPartition(topic: update.topic, partition: update.partition)
            partitions[partition]?.nextOffset = update.nextOffset
            partitions[partition]?.storedOffset = update.nextOffset
            partitions[partition]?.logTime = update.logTime
            partitions[partition]?.lastTime = update.lastTime
            partitions[partition]?.savedThrough = update.publishedThrough
        }
    }

    private struct End {
        var offset: Int64 = -1
        /// The time of the record at `offset`, and the highest of all.
        var last: Int64 = -1
        var highest: Int64 = -1
    }

    private func ends(of records: [KafkaRecord]) -> [TopicPartition: End] {
        records.reduce(into: [:]) { ends, record in
            var end = ends[record.topicPartition] ?? End()
            if record.offset > end.offset { (end.offset, end.last) = (record.offset, record.timestampMs) }
            end.highest = max(end.highest, record.timestampMs)
            ends[record.topicPartition] = end
        }
    }

    // MARK: What is owed

    var owing: [TopicPartition] { partitions.filter { !$0.value.owed.isEmpty }.keys.sorted() }

    /// Everything of an incarnation up to `through` was handed over; `isAll` when nothing is left behind it.
    mutating func handedOver(_ partition: TopicPartition, _ incarnation: Int64, through: Int64, isAll: Bool) {
        guard let place = partitions[partition]?.owed.firstIndex(where: { $0.incarnation == incarnation }) else {
            return
        }
        partitions[partition]?.owed[place].after = through
        guard isAll else { return }
        partitions[partition]?.owed.remove(at: place)
        if incarnation != partitions[partition]?.claim.incarnation {
            partitions[partition]?.setAsideEnds[incarnation] = through
        }
    }

    // MARK: What is published

    /// - Returns: the progress in earlier incarnations, and whether it is the last.
    mutating func published(_ through: [Lane: Int64]) -> [(lane: Lane, through: Int64, isAll: Bool)] {
        var earlier: [(Lane, Int64, Bool)] = []
        for (lane, offset) in through {
            guard let known = partitions[lane.partition], lane.generation == generations[lane.partition] ?? 0 else {
                continue
            }
            if lane.incarnation == known.claim.incarnation {
                partitions[lane.partition]?.publishedThrough = max(known.publishedThrough, offset)
            } else {
                earlier.append((lane, offset, known.setAsideEnds[lane.incarnation].map { offset >= $0 } ?? false))
            }
        }
        return earlier
    }

    /// What the progress table does not yet know of publishing.
    var unsaved: [PublishedUpdate] {
        partitions.filter { $0.value.publishedThrough > $0.value.savedThrough }.map { partition, state in
            PublishedUpdate(
                topic: partition.topic, partition: partition.partition, epoch: state.claim.epoch,
                publishedThrough: state.publishedThrough)
        }.sorted { ($0.topic, $0.partition) < ($1.topic, $1.partition) }
    }

    mutating func saved(_ updates: [PublishedUpdate]) {
        for update in updates {
            partitions[TopicPartition(topic: update.topic, partition: update.partition)]?.savedThrough =
                update.publishedThrough
        }
    }

    /// What can leave the outbox with an update of these partitions' progress.
    func unremoved(_ partitions: some Sequence<TopicPartition>) -> [Storage.Outbox.Published] {
        partitions.compactMap { partition in
            guard let state = self.partitions[partition], state.publishedThrough > state.removedThrough else {
                return nil
            }
            return Storage.Outbox.Published(
                state.claim.log, after: state.removedThrough, through: state.publishedThrough)
        }
    }

    mutating func removed(_ published: [Storage.Outbox.Published]) {
        for one in published { partitions[one.log.partition]?.removedThrough = one.through }
    }

    /// Next offsets to tell the group; a hint only.
    var uncommitted: [TopicPartition: Int64] {
        partitions.filter { $0.value.publishedThrough > $0.value.committedThrough }
            .mapValues { $0.publishedThrough + 1 }
    }

    mutating func committed() {
        partitions = partitions.mapValues { state in
            var state = state
            state.committedThrough = state.publishedThrough
            return state
        }
    }
}
