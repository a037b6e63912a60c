// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import TestKit
import Testing

@testable import Storage

/// Long random sequences of everything that inbox, outbox and progress can do, compared with ``StorageModel`` at each step.
///
/// A failure names its seed; `TEST_SEED=n` begins with that sequence.
@Suite struct RandomSequenceTests {
    private static let topic = InboxTests.topic

    @Test(arguments: SQLEngine.allCases, 0..<4 as Range<UInt64>)
    func matchesTheModel(_ engine: SQLEngine, _ number: UInt64) throws {
        try run(engine, seed: testSeed &+ number)
    }

    /// A sweep that ends early, and leaves copies of what could be forgotten by the next one.
    @Test(arguments: SQLEngine.allCases) func aSweepThatEndsEarly(_ engine: SQLEngine) throws {
        try run(engine, seed: 7_454_930_227_775_083_333)
    }

    private func run(_ engine: SQLEngine, seed: UInt64) throws {
        let store = try TestStore(engine)
        var run = Run(database: try store.openMigrated(), random: SplitMix64(seed: seed))
        for step in 0..<250 {
            try run.step("engine \(engine), seed \(seed), step \(step)")
        }
    }

    /// Undoes a transaction on purpose.
    private struct Undo: Error {}

    private struct Run {
        let database: any SQLDatabase
        var random: SplitMix64
        var model = StorageModel()
        var nextID = 0
        var sweep: InboxSweep?

        mutating func pick(_ range: ClosedRange<Int64>) -> Int64 {
            Int64.random(in: range, using: &random)
        }

        mutating func step(_ note: String) throws {
            let partition = Int32(pick(0...2))
            switch pick(0...15) {
            case 0: try claim(note)
            case 1...3: try decide(partition, note)
            case 4: try find(note)
            case 5: try markPublished(partition, note)
            case 6: try suspect(partition, note)
            case 7: try setAsidePublished(partition, note)
            case 8, 9: try unpublished(partition, note)
            case 10, 11: try forget(note)
            case 12: try release(note)
            case 13: try unmark(partition, note)
            case 14: try disturb(partition)
            default: try compareAll(note)
            }
        }

        /// The current epoch, or now and then the one before it.
        private mutating func epoch(_ partition: Int32) -> Int64 {
            (model.rows[partition]?.epoch ?? 0) - (pick(0...5) == 0 ? 1 : 0)
        }

        private mutating func claim(_ note: String) throws {
            let partitions = (Int32(0)...2).filter { _ in random.next() % 2 == 0 }.shuffled(using: &random)
            let cluster = pick(0...6) == 0 ? "other" : "usual"
            let requests = partitions.map { partition in
                let next = model.rows[partition]?.next ?? 0
                let high: Int64? = pick(0...2) == 0 ? nil : max(0, next + (pick(0...4) == 0 ? -1 : pick(0...3)))
                let low: Int64? = pick(0...2) == 0 ? nil : min(high ?? .max, max(0, next + pick(-3...2)))
                let held: Int64? = pick(0...2) == 0 ? max(0, epoch(partition) + pick(0...1)) : nil
                return PartitionClaimRequest(
                    topic: RandomSequenceTests.topic, partition: partition, lowWatermark: low, highWatermark: high,
                    heldEpoch: held)
            }
            var claims: [PartitionClaim] = []
            let error = failure {
                claims = try database.transaction {
                    try Progress.claim(requests, clusterID: cluster, owner: note, in: $0)
                }
            }
            let lost = requests.filter(model.isLost)
            guard lost.isEmpty else {
                let places = lost.map { TopicPartition(topic: $0.topic, partition: $0.partition) }
                #expect(error?.kind == .fenced(places), "\(note)")
                return
            }
            #expect(error == nil, "\(note)")
            #expect(claims == requests.map { model.claim($0, cluster: cluster) }, "\(note)")
        }

        /// What others do to a store: a row is deleted, or put back to an earlier state.
        private mutating func disturb(_ partition: Int32) throws {
            guard let row = model.rows[partition], pick(0...1) == 0 else { return }
            if pick(0...1) == 0 {
                model.rows[partition] = nil
                try database.transaction {
                    try $0.execute("DELETE FROM progress WHERE partition = $1", [SQLValue(partition)])
                }
            } else if let next = row.next, next > 0 {
                model.rows[partition]?.next = next - 1
                model.rows[partition]?.epoch = max(1, row.epoch - 1)
                try database.transaction {
                    try $0.execute(
                        "UPDATE progress SET next_offset = $2, epoch = $3 WHERE partition = $1",
                        [SQLValue(partition), .integer(next - 1), .integer(max(1, row.epoch - 1))])
                }
            }
        }

        /// A batch: rows and progress in one transaction, sometimes with a command that is known already.
        private mutating func decide(_ partition: Int32, _ note: String) throws {
            let epoch = epoch(partition)
            let row = model.rows[partition]
            let first = row?.next ?? 0
            let count = pick(0...4)
            let log = InboxTests.log(partition, incarnation: row?.incarnation ?? 0)
            var rows: [InboxRow] = []
            var messages: [OutboxRow] = []
            for offset in first..<(first + count) {
                nextID += 1
                let reused = pick(0...15) == 0 ? model.inbox.randomElement(using: &random)?.row.key?.id : nil
                rows.append(
                    InboxTests.row(
                        offset: offset, partition: partition, incarnation: log.incarnation,
                        id: reused ?? CommandID("id\(nextID)"), loggedAt: Int64(nextID) - pick(0...9),
                        keyed: pick(0...5) != 0))
                if pick(0...4) != 0 {
                    messages.append(OutboxRow(position: LogPosition(log: log, offset: offset), messages: [1]))
                }
            }
            let published = pick(-1...(first + count - 1))
            let update = ProgressUpdate(
                topic: RandomSequenceTests.topic, partition: partition, epoch: epoch,
                expectedOffset: pick(0...9) == 0 ? first + pick(-1...1) : row?.next, nextOffset: first + count,
                publishedThrough: published, logTime: Int64(nextID) - pick(0...9),
                lastTime: pick(0...3) == 0 ? nil : Int64(nextID))
            let undo = pick(0...9) == 0
            let known = model
            let error = failure {
                try database.transaction { transaction in
                    let keys = rows.compactMap(\.key)
                    let found = try Inbox.find(keys, in: transaction)
                    for key in keys {
                        #expect(found.commands[key] == known.find(key).map(InboxTests.known), "\(note)")
                    }
                    #expect(found.generation == known.generation, "\(note)")
                    // What is known is answered, and not recorded again.
                    let fresh = rows.filter { row in row.key.map { found.commands[$0] == nil } ?? true }
                    try Inbox.append(fresh, generation: found.generation, in: transaction)
                    try Outbox.append(messages, in: transaction)
                    try Progress.advance([update], in: transaction)
                    try Outbox.remove([Outbox.Published(log, after: -1, through: published)], in: transaction)
                    if undo { throw Undo() }
                }
            }
            let before = model
            let fresh = rows.filter { row in row.key.map { before.find($0) == nil } ?? true }
            if !model.append(fresh, messages) {
                #expect(error?.kind == .conflict, "\(note)")
                model = before
            } else if !model.advance(update) {
                let lost = TopicPartition(topic: RandomSequenceTests.topic, partition: partition)
                #expect(error?.kind == .fenced([lost]), "\(note)")
                model = before
            } else {
                #expect(error == nil, "\(note)")
                if undo { model = before } else { model.remove(log, through: published) }
            }
        }

        private mutating func find(_ note: String) throws {
            var keys = (0..<5).compactMap { _ in model.inbox.randomElement(using: &random)?.row.key }
            keys.append(CommandKey(app: "app", source: "source", id: "unknown"))
            let found = try database.transaction { try Inbox.find(keys, in: $0) }.commands
            for key in keys { #expect(found[key] == model.find(key).map(InboxTests.known), "\(note)") }
        }

        private mutating func markPublished(_ partition: Int32, _ note: String) throws {
            let epoch = epoch(partition)
            let through = pick(-1...20)
            let update = PublishedUpdate(
                topic: RandomSequenceTests.topic, partition: partition, epoch: epoch, publishedThrough: through)
            let error = failure { try database.transaction { try Progress.markPublished([update], in: $0) } }
            let row = model.rows[partition]
            let isKnown = row.map { $0.epoch == epoch && through < $0.next ?? .min } ?? false
            #expect((error == nil) == isKnown, "\(note)")
            if isKnown, let published = model.rows[partition]?.published {
                model.rows[partition]?.published = max(published, through)
            }
        }

        private mutating func suspect(_ partition: Int32, _ note: String) throws {
            let epoch = epoch(partition)
            let offset = (model.rows[partition]?.next ?? 0) + pick(0...1)
            let count = try? database.transaction {
                try Progress.markSuspect(
                    topic: RandomSequenceTests.topic, partition: partition, epoch: epoch, offset: offset, in: $0)
            }
            #expect(count.map(Int64.init) == model.mark(partition, epoch: epoch, suspect: offset), "\(note)")
        }

        private mutating func unmark(_ partition: Int32, _ note: String) throws {
            let epoch = epoch(partition)
            let offset = (model.rows[partition]?.next ?? 0) + pick(0...1)
            let error = failure {
                try database.transaction {
                    try Progress.unmarkSuspect(
                        topic: RandomSequenceTests.topic, partition: partition, epoch: epoch, offset: offset, in: $0)
                }
            }
            #expect((error == nil) == model.unmark(partition, epoch: epoch, suspect: offset), "\(note)")
        }

        private mutating func held() -> [HeldPartition] {
            [2, 0, 1].filter { _ in pick(0...3) > 0 }.map {
                HeldPartition(topic: RandomSequenceTests.topic, partition: $0, epoch: epoch($0))
            }
        }

        private mutating func release(_ note: String) throws {
            let held = held()
            try database.transaction { try Progress.release(held, in: $0) }
            for one in held { model.release(one.partition, epoch: one.epoch) }
        }

        private mutating func setAsidePublished(_ partition: Int32, _ note: String) throws {
            guard let index = model.left.firstIndex(where: { $0.partition == partition }) else { return }
            let finished = pick(0...1) == 0
            let through = pick(0...10)
            let one = model.left[index]
            guard let epoch = model.rows[partition]?.epoch else { return }
            try database.transaction {
                try Progress.markSetAsidePublished(
                    topic: RandomSequenceTests.topic, partition: partition, epoch: epoch,
                    incarnation: one.incarnation, through: through, finished: finished, in: $0)
            }
            model.left[index].published = max(one.published, through)
            model.remove(InboxTests.log(partition, incarnation: one.incarnation), through: through)
            if finished { model.left.remove(at: index) }
        }

        private mutating func unpublished(_ partition: Int32, _ note: String) throws {
            let incarnation = pick(0...(model.rows[partition]?.incarnation ?? 0))
            let after = pick(-1...10)
            let limit = Int(pick(1...6))
            let log = InboxTests.log(partition, incarnation: incarnation)
            let rows = try database.transaction {
                try Outbox.unpublished(log, after: after, limit: limit, in: $0)
            }
            #expect(rows == model.unpublished(log, after: after, limit: limit), "\(note)")
        }

        /// One step on the way to the next generation.
        private mutating func forget(_ note: String) throws {
            guard var running = sweep else {
                let keeper = HeldPartition(topic: RandomSequenceTests.topic, partition: 0, epoch: epoch(0))
                let retention = pick(0...60)
                sweep = try database.transaction {
                    try Inbox.beginSweep(keeper: keeper, retention: retention, in: $0)
                }
                #expect((sweep != nil) == model.beginSweep(keeper, retention: retention), "\(note)")
                return
            }
            guard let keeper = model.sweep?.keeper else { return }
            if running.isDone {
                let error = failure {
                    try database.exclusiveTransaction { try Inbox.turn(running, keeper: keeper, in: $0) }
                }
                #expect((error == nil) == model.turn(), "\(note)")
                sweep = nil
            } else {
                let limit = Int(pick(1...30))
                let error = failure {
                    try database.transaction {
                        try Inbox.carryOver(&running, keeper: keeper, limit: limit, in: $0)
                    }
                }
                #expect((error == nil) == model.isHeld(keeper), "\(note)")
                sweep = error == nil ? running : nil
                if error == nil { model.carryOver(limit: limit) } else { model.sweep = nil }
            }
        }

        private func compareAll(_ note: String) throws {
            // What is carried over stands twice until the older generation goes.
            for (slot, table) in Inbox.tables.enumerated() {
                let keys = try database.read("SELECT key FROM \(table) ORDER BY key").map(\.values)
                let expected = model.inbox.filter { Inbox.slot($0.generation) == slot }.map(\.row.storedKey).sorted()
                #expect(keys == expected.map { [.blob($0.bytes)] }, "\(note), \(table)")
            }
            let messages = try database.read("SELECT log, log_offset FROM outbox").map(\.values)
            let expectedOutbox = model.outbox.map {
                [SQLValue.integer($0.position.log.number), .integer($0.position.offset)]
            }
            #expect(Set(messages) == Set(expectedOutbox) && messages.count == expectedOutbox.count, "\(note)")
            let rows = try database.read(
                """
                SELECT partition, incarnation, cluster_id, epoch, next_offset, published_through, idle_claims,
                    suspect_offset, suspect_count, log_time, forgotten_before, last_time
                FROM progress
                """)
            let expected = model.rows.map { partition, row in
                SQLRow([
                    SQLValue(partition), .integer(row.incarnation), .text(row.cluster), .integer(row.epoch),
                    .integer(row.next ?? -1001), .integer(row.published), .integer(row.idle), SQLValue(row.suspect),
                    .integer(row.suspectCount), .integer(row.logTime), .integer(row.forgotten), SQLValue(row.lastTime),
                ])
            }
            #expect(Set(rows) == Set(expected), "\(note)")
        }
    }
}
