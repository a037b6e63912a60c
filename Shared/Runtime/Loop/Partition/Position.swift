// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Storage

/// How far reading, deciding and publishing have come in a partition since it was claimed. A pure value.
struct Position {
    /// Claims without progress after which a partition is in doubt.
    static let doubtfulClaims: Int64 = 3

    let claim: PartitionClaim
    /// The next offset to decide.
    private(set) var nextOffset: Int64
    /// What the progress table says of it: the next commit expects it there. `nil` before the first one.
    private(set) var storedOffset: Int64?
    /// The highest time of a record that was decided, by the log's word.
    private(set) var logTime: Int64
    /// The time of the record before `nextOffset`, as the log has it.
    private(set) var lastTime: Int64?
    /// Whether the log is known to have that record.
    private(set) var isSeen: Bool
    /// Everything up to here is published, as far as delivery reports say.
    private(set) var publishedThrough: Int64
    /// What of that stands in the progress table.
    private(set) var savedThrough: Int64
    /// What of that has left the outbox.
    private(set) var removedThrough: Int64 = -1
    /// The next offset that the group was told; `nil` while it was told none by this claim.
    private(set) var committedOffset: Int64?
    /// The last offset that is owed of an earlier incarnation, once all of it was handed over.
    var setAsideEnds: [Int64: Int64] = [:]
    /// How far earlier incarnations are published, where the store does not know it yet.
    private(set) var unsavedSetAside: [Int64: Int64] = [:]
    /// Where a batch is to be tried with a mark: claims ended here without progress.
    private let doubtedAt: Int64?
    /// Up to here records are tried one by one.
    private let suspiciousUntil: Int64

    /// - Parameters:
    ///   - isSeen: whether the log need not show that it is still the same one.
    ///   - batchSize: a deadly record stands at most a batch away from where the claims stopped.
    init(_ claim: PartitionClaim, isSeen: Bool, batchSize: Int) {
        let start = claim.nextOffset ?? 0
        let isSuspicious = claim.suspectCount > 0 && (claim.suspectOffset ?? -1) >= start
        self.claim = claim
        nextOffset = start
        storedOffset = claim.nextOffset
        logTime = claim.logTime
        lastTime = claim.lastTime
        self.isSeen = isSeen || claim.lastTime == nil || start == 0
        publishedThrough = claim.publishedThrough
        savedThrough = claim.publishedThrough
        doubtedAt = !isSuspicious && claim.idleClaims >= Self.doubtfulClaims ? start : nil
        suspiciousUntil = isSuspicious ? start + Int64(batchSize) : start
    }

    var partition: TopicPartition { TopicPartition(topic: claim.topic, partition: claim.partition) }

    /// Replicas claimed this partition again and again and none got further: perhaps a record near its position kills them,
    /// perhaps somebody stopped them before they had begun.
    var isDoubtful: Bool { nextOffset == doubtedAt }

    /// A process ended while it tried what stands here.
    var isSuspicious: Bool { nextOffset < suspiciousUntil }

    // MARK: Reading

    /// Where to read on: one record before the next one to decide, while it is to be seen whether the log is the same.
    var start: Int64 { storedOffset == nil ? KafkaOffset.beginning : nextOffset - (isSeen ? 0 : 1) }

    /// Whether the record was not decided before.
    func wants(_ record: KafkaRecord) -> Bool { record.offset >= nextOffset }

    /// Looks whether the first of the records that come shows the log that was read before.
    /// - Returns: `replaced` when the log has another record at the place of the last one decided.
    mutating func check(_ records: [KafkaRecord]) -> Partition.Displacement? {
        guard !isSeen, let first = records.first else { return nil }
        if first.offset == nextOffset - 1, first.timestampMs != lastTime { return .replaced }
        isSeen = true
        return nil
    }

    // MARK: Deciding

    /// Where records of one partition end.
    struct End {
        private(set) var offset: Int64 = -1
        /// The time of the record at `offset`, and the highest of all.
        private(set) var last: Int64 = -1
        private(set) var highest: Int64 = -1

        mutating func add(_ record: KafkaRecord) {
            if record.offset > offset { (offset, last) = (record.offset, record.timestampMs) }
            highest = max(highest, record.timestampMs)
        }
    }

    /// The progress that deciding records up to their end makes.
    /// - Parameter now: bounds the log's time, so that a record from the future makes nothing old; milliseconds.
    func update(to end: End, now: Int64) -> ProgressUpdate {
        ProgressUpdate(
            topic: claim.topic, partition: claim.partition, epoch: claim.epoch, expectedOffset: storedOffset,
            nextOffset: end.offset + 1, publishedThrough: publishedThrough,
            logTime: max(logTime, min(end.highest, now)), lastTime: end.last)
    }

    /// After the commit of the update.
    mutating func decided(_ update: ProgressUpdate) {
        nextOffset = update.nextOffset
        storedOffset = update.nextOffset
        logTime = update.logTime
        lastTime = update.lastTime
        savedThrough = update.publishedThrough
    }

    // MARK: Publishing

    mutating func published(through offset: Int64) { publishedThrough = max(publishedThrough, offset) }

    /// What the progress table does not yet know of publishing. Also what it knew when the partition was claimed, once: a store
    /// that was put back may have rows of it.
    var unsaved: PublishedUpdate? {
        guard publishedThrough > savedThrough || removedThrough < 0 && publishedThrough >= 0 else { return nil }
        return PublishedUpdate(
            topic: claim.topic, partition: claim.partition, epoch: claim.epoch, publishedThrough: publishedThrough)
    }

    /// Of an earlier incarnation.
    mutating func published(_ incarnation: Int64, through offset: Int64) {
        unsavedSetAside[incarnation] = max(unsavedSetAside[incarnation] ?? -1, offset)
    }

    mutating func savedSetAside(_ incarnation: Int64) { unsavedSetAside[incarnation] = nil }

    mutating func saved(_ update: PublishedUpdate) { savedThrough = update.publishedThrough }

    /// What can leave the outbox.
    var unremoved: Storage.Outbox.Published? {
        guard publishedThrough > removedThrough else { return nil }
        return Storage.Outbox.Published(claim.log, after: removedThrough, through: publishedThrough)
    }

    mutating func removed(_ published: Storage.Outbox.Published) { removedThrough = published.through }

    /// The next offset to tell the group.
    var uncommitted: Int64? { committedOffset == nextOffset ? nil : nextOffset }

    mutating func committed() { committedOffset = nextOffset }
}
