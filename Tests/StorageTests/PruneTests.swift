// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Testing

@testable import Storage

@Suite struct PruneTests {
    /// A store with entries 0 to 9, decided at 0 to 9, of which those up to 6 are published.
    private func prepare(_ store: TestStore) throws -> any SQLDatabase {
        let database = try store.openMigrated()
        try database.transaction { transaction in
            let request = PartitionClaimRequest(topic: JournalTests.topic, partition: 0, highWatermark: nil)
            try Journal.append((0..<10).map { JournalTests.entry(offset: $0) }, in: transaction)
            for claim in try Progress.claim([request], clusterID: "c", owner: "o", in: transaction) {
                let update = ProgressUpdate(
                    topic: claim.topic, partition: 0, epoch: claim.epoch, nextOffset: 10, publishedThrough: 6)
                try Progress.advance([update], in: transaction)
            }
        }
        return database
    }

    private func prune(_ database: any SQLDatabase, before cutoff: Int64, limit: Int = 1000) throws -> Int {
        try database.transaction { try Journal.prune(olderThan: cutoff, limit: limit, in: $0) }
    }

    private func left(_ database: any SQLDatabase) throws -> [[Int64]] {
        try database.read("SELECT incarnation, log_offset FROM journal ORDER BY incarnation, log_offset")
            .map { [try $0.integer(0), try $0.integer(1)] }
    }

    @Test(arguments: SQLEngine.allCases)
    func deletesByAgeInSmallSteps(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try prepare(store)
        #expect(try prune(database, before: 0) == 0)
        #expect(try prune(database, before: 5, limit: 2) == 2)
        #expect(try prune(database, before: 5, limit: 2) == 2)
        #expect(try prune(database, before: 5, limit: 2) == 1)
        #expect(try prune(database, before: 5, limit: 2) == 0)
        #expect(try left(database) == (5..<10).map { [0, $0] })
    }

    @Test(arguments: SQLEngine.allCases)
    func neverGoesPastWhatIsPublished(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try prepare(store)
        #expect(try prune(database, before: .max) == 7)
        #expect(try left(database) == [[0, 7], [0, 8], [0, 9]])
    }

    /// The old incarnation's unpublished rest stays until it is published, and what is newer waits behind it.
    @Test(arguments: SQLEngine.allCases)
    func olderIncarnationsStayUntilTheyArePublished(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try prepare(store)
        let request = PartitionClaimRequest(topic: JournalTests.topic, partition: 0, highWatermark: nil)
        let epoch = try database.transaction { transaction in
            let claim = try Progress.claim([request], clusterID: "new", owner: "o", in: transaction)[0]
            let entries = (0..<5).map { JournalTests.entry(offset: $0, incarnation: 1) }
            try Journal.append(entries, in: transaction)
            let update = ProgressUpdate(
                topic: claim.topic, partition: 0, epoch: claim.epoch, nextOffset: 5, publishedThrough: 3)
            try Progress.advance([update], in: transaction)
            return claim.epoch
        }
        #expect(try prune(database, before: .max) == 7)
        for (through, finished, count) in [(Int64(7), false, 1), (9, true, 2 + 4)] {
            try database.transaction {
                try Progress.markSetAsidePublished(
                    topic: JournalTests.topic, partition: 0, epoch: epoch, incarnation: 0, through: through,
                    finished: finished, in: $0)
            }
            #expect(try prune(database, before: .max) == count)
        }
        #expect(try left(database) == [[1, 4]])
    }

    @Test(arguments: SQLEngine.allCases)
    func theLimitHoldsForAllPartitionsTogether(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let partitions: [Int32] = [0, 1, 2]
        try database.transaction { transaction in
            let requests = partitions.map {
                PartitionClaimRequest(topic: JournalTests.topic, partition: $0, highWatermark: nil)
            }
            let claims = try Progress.claim(requests, clusterID: "c", owner: "o", in: transaction)
            for claim in claims {
                let entries = (0..<10).map { JournalTests.entry(offset: $0, partition: claim.partition) }
                try Journal.append(entries, in: transaction)
            }
            try Progress.advance(
                claims.map {
                    ProgressUpdate(
                        topic: $0.topic, partition: $0.partition, epoch: $0.epoch, nextOffset: 10, publishedThrough: 9)
                }, in: transaction)
        }
        #expect(try prune(database, before: .max, limit: 25) == 25)
        #expect(try prune(database, before: .max, limit: 25) == 5)
        #expect(try left(database).isEmpty)
    }
}
