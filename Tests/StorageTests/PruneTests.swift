// SPDX-License-Identifier: Apache-2.0

import TestKit
import Testing

@testable import Storage

@Suite struct PruneTests {
    /// A store with entries 0 to 9, logged at 0 to 9, of which those up to 6 are published.
    private func prepare(_ store: TestStore) throws -> (any SQLDatabase, HeldPartition) {
        let database = try store.openMigrated()
        let held = try claim(database)
        try database.transaction { transaction in
            try Journal.append((0..<10).map { JournalTests.entry(offset: $0) }, in: transaction)
            try advance(held, from: nil, to: 10, published: 6, logTime: 9, in: transaction)
        }
        return (database, held)
    }

    private func claim(_ database: any SQLDatabase, cluster: String = "c") throws -> HeldPartition {
        try #require(try claims(database, [0], cluster: cluster).first).held
    }

    private func claims(
        _ database: any SQLDatabase, _ partitions: [Int32], cluster: String = "c"
    ) throws -> [PartitionClaim] {
        let requests = partitions.map { PartitionClaimRequest(topic: JournalTests.topic, partition: $0) }
        return try database.transaction { try Progress.claim(requests, clusterID: cluster, owner: "o", in: $0) }
    }

    private func advance(
        _ held: HeldPartition, from: Int64?, to next: Int64, published: Int64, logTime: Int64,
        in transaction: any SQLTransaction
    ) throws {
        let update = ProgressUpdate(
            topic: held.topic, partition: held.partition, epoch: held.epoch, expectedOffset: from, nextOffset: next,
            publishedThrough: published, logTime: logTime)
        try Progress.advance([update], in: transaction)
    }

    private func prune(
        _ database: any SQLDatabase, _ held: [HeldPartition], retention: Int64 = 0, limit: Int = 1000
    ) throws -> Int {
        try database.transaction { try Journal.prune(partitions: held, retention: retention, limit: limit, in: $0) }
    }

    private func left(_ database: any SQLDatabase) throws -> [[Int64]] {
        try database.read("SELECT incarnation, log_offset FROM journal ORDER BY incarnation, log_offset")
            .map { [try $0.integer(0), try $0.integer(1)] }
    }

    private func forgottenBefore(_ database: any SQLDatabase) throws -> Int64 {
        try #require(try database.read("SELECT forgotten_before FROM progress").first).integer(0)
    }

    @Test(arguments: SQLEngine.allCases)
    func deletesByAgeInSmallSteps(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let (database, held) = try prepare(store)
        #expect(try prune(database, [held], retention: 9) == 0)
        #expect(try forgottenBefore(database) == -1)
        #expect(try prune(database, [held], retention: 4, limit: 2) == 2)
        #expect(try forgottenBefore(database) == 5)
        #expect(try prune(database, [held], retention: 4, limit: 2) == 2)
        #expect(try prune(database, [held], retention: 4, limit: 2) == 1)
        #expect(try prune(database, [held], retention: 4, limit: 2) == 0)
        #expect(try left(database) == (5..<10).map { [0, $0] })
        #expect(try prune(database, [held], retention: 3) == 1)
        #expect(try prune(database, [held], retention: 8) == 0)
        #expect(try forgottenBefore(database) == 6)
    }

    @Test(arguments: SQLEngine.allCases)
    func neverGoesPastWhatIsPublished(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let (database, held) = try prepare(store)
        #expect(try prune(database, [held], retention: -1000) == 7)
        #expect(try left(database) == [[0, 7], [0, 8], [0, 9]])
    }

    /// Two weeks pass, by the clocks of all machines or only by a wrong one: nothing was read, so nothing is too old.
    /// When the backlog is read, what is too old goes by and by.
    @Test(arguments: SQLEngine.allCases)
    func onlyTheLogsOwnTimeForgets(_ engine: SQLEngine) throws {
        let day: Int64 = 86_400_000
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let first = try claim(database)
        try database.transaction { transaction in
            // Decided long ago, and long after they were logged.
            let entries = (0..<10).map { JournalTests.entry(offset: $0, loggedAt: $0 * day) }
            try Journal.append(entries, in: transaction)
            try advance(first, from: nil, to: 10, published: 9, logTime: 9 * day, in: transaction)
        }
        let held = try claim(database)
        #expect(try prune(database, [held], retention: 14 * day) == 0)
        try database.transaction { transaction in
            try Journal.append([JournalTests.entry(offset: 10, loggedAt: 16 * day)], in: transaction)
            try advance(held, from: 10, to: 11, published: 10, logTime: 16 * day, in: transaction)
        }
        #expect(try prune(database, [held], retention: 14 * day) == 2)
        #expect(try left(database).first == [0, 2])
        // A late record with an early time does not turn the log's time back.
        try database.transaction { transaction in
            try Journal.append([JournalTests.entry(offset: 11, loggedAt: 1)], in: transaction)
            try advance(held, from: 11, to: 12, published: 11, logTime: 1, in: transaction)
        }
        #expect(try prune(database, [held], retention: 13 * day) == 1)
        #expect(try forgottenBefore(database) == 3 * day)
    }

    @Test(arguments: SQLEngine.allCases)
    func onlyTheOwnerForgets(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let (database, old) = try prepare(store)
        let held = try claim(database)
        #expect(try prune(database, [old]) == 0)
        #expect(try prune(database, []) == 0)
        let stranger = HeldPartition(topic: "none", partition: 0, epoch: 1)
        #expect(try prune(database, [stranger, old]) == 0)
        #expect(try forgottenBefore(database) == -1)
        #expect(try prune(database, [stranger, held]) == 7)
    }

    /// The journal of a partition that was never read at a known time, as after a migration, is kept.
    @Test(arguments: SQLEngine.allCases)
    func withoutALogTimeNothingIsForgotten(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let held = try claim(database)
        try database.transaction { transaction in
            try Journal.append((0..<3).map { JournalTests.entry(offset: $0, loggedAt: -5) }, in: transaction)
            try advance(held, from: nil, to: 3, published: 2, logTime: -1, in: transaction)
        }
        #expect(try prune(database, [held]) == 0)
    }

    /// The old incarnation's unpublished rest stays until it is published, and what is newer waits behind it. The new
    /// log's claim knows the old one's time, and what may have been forgotten.
    @Test(arguments: SQLEngine.allCases)
    func olderIncarnationsStayUntilTheyArePublished(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let (database, old) = try prepare(store)
        #expect(try prune(database, [old], retention: 6) == 3)
        let claim = try #require(try claims(database, [0], cluster: "new").first)
        #expect(claim.start == .setAside(previous: 0, publishedThrough: 6))
        #expect(claim.logTime == 9 && claim.forgottenBefore == 3)
        let held = claim.held
        try database.transaction { transaction in
            let entries = (0..<5).map { JournalTests.entry(offset: $0, incarnation: 1) }
            try Journal.append(entries, in: transaction)
            try advance(held, from: nil, to: 5, published: 3, logTime: 50, in: transaction)
        }
        #expect(try prune(database, [held]) == 4)
        for (through, finished, count) in [(Int64(7), false, 1), (9, true, 2 + 4)] {
            try database.transaction {
                try Progress.markSetAsidePublished(
                    topic: JournalTests.topic, partition: 0, epoch: held.epoch, incarnation: 0, through: through,
                    finished: finished, in: $0)
            }
            #expect(try prune(database, [held]) == count)
        }
        #expect(try left(database) == [[1, 4]])
        #expect(try forgottenBefore(database) == 50)
    }

    @Test(arguments: SQLEngine.allCases)
    func theLimitHoldsForAllPartitionsTogether(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let held = try claims(database, [0, 1, 2]).map(\.held)
        try database.transaction { transaction in
            for one in held {
                let entries = (0..<10).map { JournalTests.entry(offset: $0, partition: one.partition) }
                try Journal.append(entries, in: transaction)
                try advance(one, from: nil, to: 10, published: 9, logTime: 99, in: transaction)
            }
        }
        #expect(try prune(database, held, limit: 25) == 25)
        // Each partition remembers by itself what it has forgotten.
        #expect(try prune(database, held, retention: 95, limit: 25) == 0)
        #expect(try prune(database, held, limit: 25) == 5)
        #expect(try left(database).isEmpty)
    }

    /// ```
    /// owner                              heir
    /// BEGIN, look for old entries
    ///                                    claim, COMMIT
    /// write down what is forgotten -> conflict
    /// ```
    @Test func aClaimWinsAgainstARunningPrune() throws {
        let store = try TestStore(.postgresql)
        let (database, held) = try prepare(store)
        let heir = try store.open()
        let error = failure {
            try database.transaction { transaction in
                _ = try transaction.query("SELECT 1 FROM journal")
                _ = try claim(heir)
                _ = try Journal.prune(partitions: [held], retention: 0, limit: 10, in: transaction)
            }
        }
        #expect(error?.kind == .conflict)
        #expect(try left(database).count == 10)
    }
}
