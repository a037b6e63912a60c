// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Messaging
import Storage

/// The partitions this replica owns, by the progress table's word (architecture.md section 3). A pure value: it says
/// what to read, what to write and what is still owed.
struct Ownership {
    struct Partition {
        var claim: PartitionClaim
        /// The next offset to decide.
        var nextOffset: Int64
        /// Everything up to here is published, as far as delivery reports say.
        var publishedThrough: Int64
        /// What of that stands in the progress table.
        var savedThrough: Int64
        /// What of that the group was told.
        var committedThrough: Int64
        /// Up to here records are tried one by one.
        var suspiciousUntil: Int64

        /// Replicas claimed this partition again and again and none got further: perhaps a record near its position
        /// kills them.
        var isSuspicious: Bool { nextOffset < suspiciousUntil }
    }

    /// Claims without progress after which records are tried one by one.
    static let suspiciousClaims: Int64 = 3
    /// A deadly record stands at most a batch away from where the claims stopped.
    let batchSize: Int

    init(batchSize: Int) {
        self.batchSize = batchSize
    }

    private(set) var partitions: [TopicPartition: Partition] = [:]

    var isEmpty: Bool { partitions.isEmpty }

    subscript(_ partition: TopicPartition) -> Partition? { partitions[partition] }

    mutating func add(_ claim: PartitionClaim) {
        let start = claim.nextOffset ?? 0
        let isSuspicious =
            claim.idleClaims >= Self.suspiciousClaims
            || claim.suspectCount > 0 && (claim.suspectOffset ?? -1) >= start
        partitions[TopicPartition(topic: claim.topic, partition: claim.partition)] = Partition(
            claim: claim, nextOffset: start, publishedThrough: claim.publishedThrough,
            savedThrough: claim.publishedThrough, committedThrough: claim.publishedThrough,
            suspiciousUntil: isSuspicious ? start + Int64(batchSize) : start)
    }

    mutating func remove(_ lost: some Sequence<TopicPartition>) {
        for partition in lost { partitions[partition] = nil }
    }

    /// Whether the record is ours to decide: its partition is owned and it was not decided before.
    func wants(_ record: KafkaRecord) -> Bool {
        partitions[record.topicPartition].map { record.offset >= $0.nextOffset } ?? false
    }

    var held: [HeldPartition] { partitions.values.map(\.claim.held) }

    var incarnations: [TopicPartition: Int64] { partitions.mapValues(\.claim.incarnation) }

    /// The progress that deciding these records makes.
    func updates(for records: [KafkaRecord]) -> [ProgressUpdate] {
        let times = records.reduce(into: [TopicPartition: Int64]()) { times, record in
            times[record.topicPartition] = max(times[record.topicPartition] ?? -1, record.timestampMs)
        }
        return lastOffsets(of: records).compactMap { partition, last in
            partitions[partition].map {
                ProgressUpdate(
                    topic: partition.topic, partition: partition.partition, epoch: $0.claim.epoch,
                    // Only what was never read can stand at 0 and at "the earliest message".
                    expectedOffset: $0.nextOffset == 0 ? $0.claim.nextOffset : $0.nextOffset, nextOffset: last + 1,
                    publishedThrough: $0.publishedThrough, logTime: times[partition] ?? -1)
            }
        }.sorted { ($0.topic, $0.partition) < ($1.topic, $1.partition) }
    }

    /// After the commit of `records`.
    mutating func decided(_ records: [KafkaRecord]) {
        for (partition, last) in lastOffsets(of: records) {
            partitions[partition]?.nextOffset = last + 1
            if let through = partitions[partition]?.publishedThrough { partitions[partition]?.savedThrough = through }
        }
    }

    func lastOffsets(of records: [KafkaRecord]) -> [TopicPartition: Int64] {
        records.reduce(into: [:]) { last, record in
            last[record.topicPartition] = max(last[record.topicPartition] ?? -1, record.offset)
        }
    }

    mutating func published(_ through: [TopicPartition: Int64]) {
        for (partition, offset) in through {
            guard let known = partitions[partition] else { continue }
            partitions[partition]?.publishedThrough = max(known.publishedThrough, offset)
        }
    }

    /// What the progress table does not yet know of publishing.
    var unsaved: [PublishedUpdate] {
        partitions.filter { $0.value.publishedThrough > $0.value.savedThrough }.map { partition, state in
            PublishedUpdate(
                topic: partition.topic, partition: partition.partition, epoch: state.claim.epoch,
                publishedThrough: state.publishedThrough)
        }.sorted { ($0.topic, $0.partition) < ($1.topic, $1.partition) }
    }

    mutating func saved() {
        partitions = partitions.mapValues { state in
            var state = state
            state.savedThrough = state.publishedThrough
            return state
        }
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
