// SPDX-License-Identifier: Apache-2.0

import Contracts

@testable import Storage

/// What inbox, outbox and progress should do, in the most naive way: arrays, looked through from end to end.
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

    struct Kept: Equatable {
        let row: InboxRow
        let generation: Int64
    }

    /// What is known of the oldest generation since its end began.
    struct Sweep {
        let keeper: HeldPartition
        let retention: Int64
        let rows: [Int32: Row]
        let left: [Left]
        /// The last key that was looked at.
        var after: StoredKey?
        var forgotten: Set<Int32> = []
    }

    var rows: [Int32: Row] = [:]
    /// The newest incarnation that was ever claimed.
    var claimed: [Int32: Int64] = [:]
    var inbox: [Kept] = []
    var outbox: [OutboxRow] = []
    var left: [Left] = []
    var generation: Int64 = 1
    var begunAt: Int64 = -1
    var sweep: Sweep?

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
        if rows[partition] == nil, let newest = claimed[partition] {
            row.incarnation = newest
            isOther = true
        }
        if isOther {
            start = .setAside(previous: row.incarnation, publishedThrough: row.published)
            let log = InboxTests.log(partition, incarnation: row.incarnation)
            let isLeft = outbox.contains { $0.position.log == log && $0.position.offset > row.published }
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
        claimed[partition] = row.incarnation
        return PartitionClaim(
            topic: request.topic, partition: partition, incarnation: row.incarnation, epoch: row.epoch,
            nextOffset: row.next, gap: gap, publishedThrough: row.published, idleClaims: row.idle,
            suspectOffset: row.suspect, suspectCount: row.suspectCount, logTime: row.logTime,
            forgottenBefore: row.forgotten, lastTime: row.lastTime, start: start,
            unpublished: left.filter { $0.partition == partition }.sorted { $0.incarnation < $1.incarnation }
                .map { SetAsideIncarnation(incarnation: $0.incarnation, publishedThrough: $0.published) })
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

    func find(_ key: CommandKey) -> InboxRow? { inbox.first { $0.row.key == key }?.row }

    /// Returns whether nothing collides.
    mutating func append(_ decided: [InboxRow], _ messages: [OutboxRow]) -> Bool {
        for row in decided {
            let collides = inbox.contains {
                guard $0.generation == generation else { return false }
                return $0.row.storedKey == row.storedKey
            }
            guard !collides else { return false }
            inbox.append(Kept(row: row, generation: generation))
        }
        for row in messages {
            guard !outbox.contains(where: { $0.position == row.position }) else { return false }
            outbox.append(row)
        }
        return true
    }

    mutating func remove(_ log: LogID, through offset: Int64) {
        outbox.removeAll { $0.position.log == log && $0.position.offset <= offset }
    }

    func unpublished(_ log: LogID, after: Int64, limit: Int) -> [OutboxRow] {
        let rows = outbox.filter { $0.position.log == log && $0.position.offset > after }
        return Array(rows.sorted { $0.position.offset < $1.position.offset }.prefix(limit))
    }

    // MARK: Generations

    func isHeld(_ keeper: HeldPartition) -> Bool { rows[keeper.partition]?.epoch == keeper.epoch }

    /// Returns whether it is time.
    mutating func beginSweep(_ keeper: HeldPartition, retention: Int64) -> Bool {
        guard isHeld(keeper), let newest = rows.values.map(\.logTime).max(), newest >= 0
        else { return false }
        if begunAt < 0 {
            begunAt = newest
            return false
        }
        guard newest - begunAt >= retention / 2 else { return false }
        sweep = Sweep(keeper: keeper, retention: retention, rows: rows, left: left)
        return true
    }

    /// Copies what must stay of the next rows into the newest generation. A sweep that ends early leaves its copies.
    mutating func carryOver(limit: Int) {
        guard var sweep else { return }
        let rows = inbox.filter { $0.generation == generation - 2 && isBehind($0.row, sweep.after) }
            .sorted { $0.row.storedKey < $1.row.storedKey }.prefix(limit)
        for row in rows.map(\.row) {
            if mayForget(row, sweep) {
                sweep.forgotten.insert(row.position.log.partition.partition)
            } else if !inbox.contains(where: { $0.generation == generation && $0.row.storedKey == row.storedKey }) {
                inbox.append(Kept(row: row, generation: generation))
            }
            sweep.after = row.storedKey
        }
        self.sweep = sweep
    }

    /// Returns whether the store is the one that was swept.
    mutating func turn() -> Bool {
        guard let sweep else { return false }
        self.sweep = nil
        guard isHeld(sweep.keeper), sweep.rows.allSatisfy({ rows[$0]?.logTime ?? .min >= $1.logTime }) else {
            return false
        }
        for partition in sweep.forgotten {
            guard let then = sweep.rows[partition], let now = rows[partition] else { continue }
            rows[partition]?.forgotten = max(now.forgotten, then.logTime - sweep.retention)
        }
        inbox.removeAll { $0.generation == generation - 2 }
        generation += 1
        begunAt = rows.values.map(\.logTime).max() ?? -1
        return true
    }

    private func isBehind(_ row: InboxRow, _ key: StoredKey?) -> Bool { key.map { $0 < row.storedKey } ?? true }

    private func mayForget(_ row: InboxRow, _ sweep: Sweep) -> Bool {
        let position = row.position
        let partition = position.log.partition.partition
        guard let then = sweep.rows[partition], then.logTime >= 0 else { return false }
        var published = Int64.max
        if position.log.incarnation == then.incarnation { published = then.published }
        for one in sweep.left where one.partition == partition && one.incarnation == position.log.incarnation {
            published = one.published
        }
        return row.loggedAt < then.logTime - sweep.retention && position.offset <= published
    }
}
