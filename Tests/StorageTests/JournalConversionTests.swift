// SPDX-License-Identifier: Apache-2.0

import Contracts
import TestKit
import Testing

@testable import Storage

/// A store of the version before inbox and outbox, with rows in every state, and what becomes of it.
@Suite struct JournalConversionTests {
    /// Partition 0: an older incarnation with an unpublished rest, and the newest one, published up to offset 1 of 3.
    /// Partition 1: published, and read at a known time. Partition 2: its row of progress is gone.
    private func old(_ database: any SQLDatabase) throws {
        try Migrator(StorageSchema.migrations.filter { $0.number <= 5 }).run(on: database)
        try database.transaction { transaction in
            try transaction.executeEach(
                "INSERT INTO progress VALUES ('t', $1, $2, 'c', 4, 'owner', $3, $4, 2, 3, 1, $5, $6, $5)",
                [[0, 1, 3, 1, -1, -1], [1, 0, 7, 6, 900, 100]])
            try transaction.execute("INSERT INTO set_aside VALUES ('t', 0, 0, 5)")
            let rows: [[SQLValue]] = [
                [0, 0, 5, "a05", 50, nil], [0, 0, 6, "a06", 60, nil],
                [0, 1, 0, "b0", 100, 90], [0, 1, 1, "b1", 200, 190], [0, 1, 2, "b2", 300, 290],
                [1, 0, 5, "c5", 800, 790], [1, 0, 6, nil, 900, 900],
                [2, 0, 0, "d0", 10, 10],
            ]
            try transaction.executeEach(
                """
                INSERT INTO journal (topic, partition, incarnation, log_offset, app, source, id, digest, type, outcome,
                    reason, messages, decided_at, logged_at)
                VALUES ('t', $1, $2, $3, $4, $5, $6, $7, 'type', 'pending', 'why', $8, $9, $10)
                """,
                rows.map { row in
                    let id = row[3]
                    let key: [SQLValue] = id == .null ? [nil, nil, nil] : ["app", "source", id]
                    return Array(row[..<3]) + key + [.blob(digest(row)), .blob(messages(row))] + row[4...]
                })
            try transaction.execute(
                "INSERT INTO saga VALUES ('app', 'source', 'b0', $1, NULL, NULL, 1, 7)", [.blob([5])])
        }
    }

    private func digest(_ row: [SQLValue]) -> [UInt8] {
        guard case .integer(let time) = row[4] else { return [] }
        return [UInt8](repeating: UInt8(time % 251), count: 32)
    }

    private func messages(_ row: [SQLValue]) -> [UInt8] {
        guard case .integer(let time) = row[4] else { return [] }
        return [2, UInt8(time % 251)]
    }

    @Test(arguments: SQLEngine.allCases)
    func whatWasDecidedIsKnownAndWhatWasNotPublishedIsOwed(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.open()
        try old(database)
        #expect(try Migrator(StorageSchema.migrations).run(on: database) == [6, 7])
        #expect(failure { try database.read("SELECT 1 FROM journal") } != nil)

        let ids = ["a05", "a06", "b0", "b1", "b2", "c5", "d0"]
        let keys = ids.map { CommandKey(app: "app", source: "source", id: CommandID($0)) }
        let found = try database.transaction { try Inbox.find(keys, in: $0) }
        #expect(found.commands.count == keys.count && found.generation == 1)
        #expect(
            found.commands[keys[3]]
                == KnownCommand(
                    digest: [UInt8](repeating: 200, count: 16), verdict: .pending, receipt: [2, 200], decidedAt: 200))
        let rows = try database.read("SELECT logged_at, log, log_offset FROM inbox_0 ORDER BY logged_at")
        #expect(rows.map(\.values[0]) == [10, 50, 60, 90, 190, 290, 790, 900])
        #expect(
            rows.last
                == SQLRow([900, .integer(LogID(TopicPartition(topic: "t", partition: 1), incarnation: 0).number), 6]))

        let requests = (Int32(0)..<3).map { PartitionClaimRequest(topic: "t", partition: $0) }
        let claims = try database.transaction { try Progress.claim(requests, clusterID: "c", owner: "n", in: $0) }
        #expect(claims.map(\.start) == [.resumed, .resumed, .setAside(previous: 0, publishedThrough: -1)])
        #expect(claims.map(\.nextOffset) == [3, 7, nil])
        #expect(claims.map(\.epoch) == [6, 6, 1] && claims[1].forgottenBefore == 100)
        #expect(
            claims.map { $0.unpublished.map(\.incarnation) } == [[0], [], [0]])
        func owed(_ partition: Int32, _ incarnation: Int64) throws -> [Int64] {
            let log = LogID(TopicPartition(topic: "t", partition: partition), incarnation: incarnation)
            return try database.transaction { try Outbox.unpublished(log, after: -1, limit: 9, in: $0) }
                .map(\.position.offset)
        }
        #expect(try owed(0, 0) == [6])
        #expect(try owed(0, 1) == [2])
        #expect(try owed(1, 0) == [])
        #expect(try owed(2, 0) == [0])

        // A saga stays as long as its command is known.
        let prune = { try database.transaction { try Sagas.prune(olderThan: 100, limit: 9, in: $0) } }
        #expect(try prune() == 0)
        try database.transaction { _ = try $0.execute("DELETE FROM inbox_0") }
        #expect(try prune() == 1)
    }

    /// What came over leaves as one generation, when all of it is old.
    @Test(arguments: SQLEngine.allCases)
    func whatCameOverIsForgottenInTime(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.open()
        try old(database)
        try Migrator(StorageSchema.migrations).run(on: database)
        let request = [PartitionClaimRequest(topic: "t", partition: 1)]
        let claim = try #require(
            try database.transaction { try Progress.claim(request, clusterID: "c", owner: "n", in: $0) }.first)
        var next: Int64 = 7
        for time: Int64 in [1399, 1400, 1899, 1900] {
            try database.transaction { transaction in
                let update = ProgressUpdate(
                    topic: "t", partition: 1, epoch: claim.epoch, expectedOffset: next, nextOffset: next + 1,
                    publishedThrough: next, logTime: time)
                try Progress.advance([update], in: transaction)
            }
            next += 1
            let begun = try database.transaction { try Inbox.beginSweep(keeper: claim.held, retention: 1000, in: $0) }
            #expect((begun != nil) == [1400, 1900].contains(time))
            guard var sweep = begun else { continue }
            while !sweep.isDone {
                try database.transaction { try Inbox.carryOver(&sweep, keeper: claim.held, limit: 2, in: $0) }
            }
            try database.exclusiveTransaction { try Inbox.turn(sweep, keeper: claim.held, in: $0) }
        }
        // Of partition 1 the row at 790 has gone; that at 900 is no older than the retention, and the other partitions
        // have no log time.
        let left = try database.read("SELECT logged_at FROM inbox_2 ORDER BY logged_at").map(\.values[0])
        #expect(left == [10, 50, 60, 90, 190, 290, 900])
        #expect(try database.read("SELECT COUNT(*) FROM inbox_0") == [SQLRow([0])])
        let forgotten = try database.read("SELECT forgotten_before FROM progress ORDER BY partition")
        #expect(forgotten.map(\.values[0]) == [-1, 900])
    }

    /// The end of a batch of an older replica, which the migration did not wait for: it changes nothing any more.
    @Test(arguments: SQLEngine.allCases)
    func anOlderReplicaFindsNoJournal(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.open()
        try old(database)
        try Migrator(StorageSchema.migrations).run(on: database)
        let before = try database.read("SELECT * FROM progress ORDER BY partition")
        let error = failure {
            try database.transaction { transaction in
                try transaction.execute("UPDATE progress SET next_offset = next_offset + 1")
                try transaction.execute(
                    "INSERT INTO journal (topic, partition, incarnation, log_offset) VALUES ('t', 0, 1, 3)")
            }
        }
        #expect(error != nil)
        #expect(try database.read("SELECT * FROM progress ORDER BY partition") == before)
    }
}
