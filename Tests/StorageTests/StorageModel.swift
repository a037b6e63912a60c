// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

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
    }

    struct Left: Equatable {
        let partition: Int32
        let incarnation: Int64
        var published: Int64
    }

    var rows: [Int32: Row] = [:]
    var journal: [JournalEntry] = []
    var left: [Left] = []

    mutating func claim(_ partition: Int32, cluster: String, watermark: Int64?, topic: String) -> PartitionClaim {
        var row = rows[partition] ?? Row(cluster: cluster)
        var start = rows[partition] == nil ? PartitionClaim.Start.new : .resumed
        let isPastEnd = watermark.map { (row.next ?? 0) > $0 } ?? false
        if row.cluster != cluster || isPastEnd {
            start = .setAside(previous: row.incarnation, publishedThrough: row.published)
            let isLeft = journal.contains {
                $0.position.partition == partition && $0.position.incarnation == row.incarnation
                    && $0.position.offset > row.published
            }
            if isLeft {
                left.append(Left(partition: partition, incarnation: row.incarnation, published: row.published))
            }
            row = Row(incarnation: row.incarnation + 1, cluster: cluster, epoch: row.epoch)
        }
        row.epoch += 1
        row.idle += 1
        rows[partition] = row
        return PartitionClaim(
            topic: topic, partition: partition, incarnation: row.incarnation, epoch: row.epoch, nextOffset: row.next,
            publishedThrough: row.published, idleClaims: row.idle, suspectOffset: row.suspect,
            suspectCount: row.suspectCount, start: start,
            unpublished: left.filter { $0.partition == partition }
                .map { SetAsideIncarnation(incarnation: $0.incarnation, publishedThrough: $0.published) })
    }

    /// Returns whether the epoch is the current one.
    mutating func advance(_ partition: Int32, epoch: Int64, next: Int64, published: Int64) -> Bool {
        guard var row = rows[partition], row.epoch == epoch else { return false }
        if row.next != next { row.idle = 0 }
        if let suspect = row.suspect, suspect < next {
            row.suspect = nil
            row.suspectCount = 0
        }
        row.next = next
        row.published = max(row.published, published)
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
    mutating func prune(before cutoff: Int64, limit: Int) -> Int {
        var deleted: Set<JournalPosition> = []
        for (partition, row) in rows.sorted(by: { $0.key < $1.key }) {
            let entries = journal.filter { $0.position.partition == partition }.sorted {
                ($0.position.incarnation, $0.position.offset) < ($1.position.incarnation, $1.position.offset)
            }
            for entry in entries {
                var fence = Int64.max
                if entry.position.incarnation == row.incarnation { fence = row.published }
                for one in left where one.partition == partition && one.incarnation == entry.position.incarnation {
                    fence = one.published
                }
                guard entry.decidedAt < cutoff, entry.position.offset <= fence, deleted.count < limit else { break }
                deleted.insert(entry.position)
            }
        }
        journal.removeAll { deleted.contains($0.position) }
        return deleted.count
    }
}
