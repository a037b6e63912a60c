// SPDX-License-Identifier: Apache-2.0

@testable import Storage

/// What journal and progress should do, in the most naive way: arrays, looked through from end to end.
struct StorageModel {
    struct Row: Equatable {
        var incarnation: Int64 = 0
        var cluster: String
        var epoch: Int64 = 0
        var next: Int64?
        var published: Int64 = -1
        var idle: Int64 = 0
        var suspect: Int64?
        var suspectCount: Int64 = 0
        var logTime: Int64 = -1
        var lastTime: Int64?
        var forgotten: Int64 = -1
    }

    struct Left: Equatable {
        let partition: Int32
        let incarnation: Int64
        var published: Int64
    }

    var rows: [Int32: Row] = [:]
    var journal: [JournalEntry] = []
    var left: [Left] = []

    /// Whether somebody else claimed it after the one who asks.
    func isLost(_ request: PartitionClaimRequest) -> Bool {
        guard let held = request.heldEpoch, let row = rows[request.partition] else { return false }
        return row.epoch > held
    }

    mutating func claim(_ request: PartitionClaimRequest, cluster: String) -> PartitionClaim {
        let partition = request.partition
        var row = rows[partition] ?? Row(cluster: cluster)
        var start = rows[partition] == nil ? PartitionClaim.Start.new : .resumed
        var isOther = row.cluster != cluster
        if let high = request.highWatermark, let next = row.next, next > high { isOther = true }
        if rows[partition] == nil, let newest = newestIncarnation(partition) {
            row.incarnation = newest
            isOther = true
        }
        if isOther {
            start = .setAside(previous: row.incarnation, publishedThrough: row.published)
            let isLeft = journal.contains {
                $0.position.partition == partition && $0.position.incarnation == row.incarnation
                    && $0.position.offset > row.published
            }
            let isKnown = left.contains { $0.partition == partition && $0.incarnation == row.incarnation }
            if isLeft, !isKnown {
                left.append(Left(partition: partition, incarnation: row.incarnation, published: row.published))
            }
            row = Row(
                incarnation: row.incarnation + 1, cluster: cluster, epoch: row.epoch, logTime: row.logTime,
                forgotten: row.forgotten)
        }
        var gap: Range<Int64>?
        if let next = row.next, let low = request.lowWatermark, low > next {
            gap = next..<low
            row.next = low
            row.lastTime = nil
            row.idle = 0
            if let suspect = row.suspect, suspect < low { (row.suspect, row.suspectCount) = (nil, 0) }
        }
        row.epoch = max(row.epoch, request.heldEpoch ?? 0) + 1
        let hasNothingToRead = request.highWatermark == row.next ?? request.lowWatermark ?? 0
        if request.heldEpoch == nil, !hasNothingToRead { row.idle += 1 }
        rows[partition] = row
        return PartitionClaim(
            topic: request.topic, partition: partition, incarnation: row.incarnation, epoch: row.epoch,
            nextOffset: row.next, gap: gap, publishedThrough: row.published, idleClaims: row.idle,
            suspectOffset: row.suspect, suspectCount: row.suspectCount, logTime: row.logTime,
            forgottenBefore: row.forgotten, lastTime: row.lastTime, start: start,
            unpublished: left.filter { $0.partition == partition }.sorted { $0.incarnation < $1.incarnation }
                .map { SetAsideIncarnation(incarnation: $0.incarnation, publishedThrough: $0.published) })
    }

    private func newestIncarnation(_ partition: Int32) -> Int64? {
        journal.filter { $0.position.partition == partition }.map(\.position.incarnation).max()
    }

    /// Returns whether epoch and offset are the current ones.
    mutating func advance(_ update: ProgressUpdate) -> Bool {
        let (partition, next) = (update.partition, update.nextOffset)
        guard var row = rows[partition], row.epoch == update.epoch, row.next == update.expectedOffset else {
            return false
        }
        if row.next != next { row.idle = 0 }
        if let suspect = row.suspect, suspect < next {
            row.suspect = nil
            row.suspectCount = 0
        }
        row.next = next
        row.published = max(row.published, update.publishedThrough)
        row.logTime = max(row.logTime, update.logTime)
        row.lastTime = update.lastTime
        rows[partition] = row
        return true
    }

    mutating func mark(_ partition: Int32, epoch: Int64, suspect: Int64) -> Int64? {
        guard var row = rows[partition], row.epoch == epoch else { return nil }
        row.suspectCount = row.suspect == suspect ? row.suspectCount + 1 : 1
        row.suspect = suspect
        rows[partition] = row
        return row.suspectCount
    }

    /// Returns whether the epoch is the current one.
    mutating func unmark(_ partition: Int32, epoch: Int64, suspect: Int64) -> Bool {
        guard var row = rows[partition], row.epoch == epoch else { return false }
        if row.suspect == suspect { row.suspectCount -= 1 }
        if row.suspectCount == 0 { row.suspect = nil }
        rows[partition] = row
        return true
    }

    mutating func release(_ partition: Int32, epoch: Int64) {
        if rows[partition]?.epoch == epoch { rows[partition]?.idle = 0 }
    }

    /// Returns whether nothing collides.
    mutating func append(_ entries: [JournalEntry]) -> Bool {
        for entry in entries {
            let collides = journal.contains {
                $0.position == entry.position || ($0.key != nil && $0.key == entry.key)
            }
            guard !collides else { return false }
            journal.append(entry)
        }
        return true
    }

    func unpublished(_ partition: Int32, incarnation: Int64, after: Int64, limit: Int) -> [JournalEntry] {
        let entries = journal.filter {
            $0.position.partition == partition && $0.position.incarnation == incarnation && $0.position.offset > after
        }
        return Array(entries.sorted { $0.position.offset < $1.position.offset }.prefix(limit))
    }

    /// Returns how many entries were deleted.
    mutating func prune(_ held: [HeldPartition], retention: Int64, limit: Int) -> Int {
        var deleted: Set<JournalPosition> = []
        for one in held {
            let partition = one.partition
            guard let row = rows[partition], row.epoch == one.epoch, row.logTime >= 0 else { continue }
            let cutoff = row.logTime - retention
            let entries = journal.filter { $0.position.partition == partition }.sorted {
                ($0.position.incarnation, $0.position.offset) < ($1.position.incarnation, $1.position.offset)
            }
            for entry in entries {
                var fence = Int64.max
                if entry.position.incarnation == row.incarnation { fence = row.published }
                for one in left where one.partition == partition && one.incarnation == entry.position.incarnation {
                    fence = one.published
                }
                guard entry.loggedAt < cutoff, entry.position.offset <= fence, deleted.count < limit else { break }
                rows[partition]?.forgotten = max(row.forgotten, cutoff)
                deleted.insert(entry.position)
            }
        }
        journal.removeAll { deleted.contains($0.position) }
        return deleted.count
    }
}
