// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Testing

@testable import Storage

@Suite struct ProgressTests {
    private static let topic = "identity.link.commands.v1"

    private func claim(
        _ database: any SQLDatabase, partition: Int32 = 0, cluster: String = "cluster", watermark: Int64? = nil
    ) throws -> PartitionClaim {
        let request = PartitionClaimRequest(topic: Self.topic, partition: partition, highWatermark: watermark)
        return try #require(
            try database.transaction { try Progress.claim([request], clusterID: cluster, owner: "test", in: $0) }.first)
    }

    private func advance(
        _ database: any SQLDatabase, _ claim: PartitionClaim, to next: Int64, published: Int64 = -1
    ) throws {
        let update = ProgressUpdate(
            topic: claim.topic, partition: claim.partition, epoch: claim.epoch, nextOffset: next,
            publishedThrough: published)
        try database.transaction { try Progress.advance([update], in: $0) }
    }

    private func suspect(_ database: any SQLDatabase, _ claim: PartitionClaim, _ offset: Int64) throws -> Int {
        try database.transaction {
            try Progress.markSuspect(
                topic: claim.topic, partition: claim.partition, epoch: claim.epoch, offset: offset, in: $0)
        }
    }

    @Test(arguments: SQLEngine.allCases)
    func claimsAndAdvances(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let requests = [3, 1, 2].map {
            PartitionClaimRequest(topic: Self.topic, partition: $0, highWatermark: $0 == 1 ? 0 : nil)
        }
        let first = try database.transaction { try Progress.claim(requests, clusterID: "c", owner: "a", in: $0) }
        #expect(first.map(\.partition) == [3, 1, 2])
        for claim in first {
            #expect(claim.start == .new && claim.nextOffset == nil && claim.publishedThrough == -1)
            #expect(claim.incarnation == 0 && claim.epoch == 1 && claim.idleClaims == 1 && claim.unpublished.isEmpty)
        }
        try advance(database, first[0], to: 10, published: 7)
        let second = try claim(database, partition: 3, cluster: "c", watermark: 10)
        #expect(second.start == .resumed && second.nextOffset == 10 && second.publishedThrough == 7)
        #expect(second.epoch == 2 && second.incarnation == 0)
        try database.transaction { transaction in
            let update = PublishedUpdate(topic: Self.topic, partition: 3, epoch: 2, publishedThrough: 9)
            try Progress.markPublished([update], in: transaction)
            // A lower one comes too late.
            let late = PublishedUpdate(topic: Self.topic, partition: 3, epoch: 2, publishedThrough: 5)
            try Progress.markPublished([late], in: transaction)
        }
        try advance(database, second, to: 11, published: 3)
        #expect(try claim(database, partition: 3, cluster: "c").publishedThrough == 9)
    }

    @Test(arguments: SQLEngine.allCases)
    func theOldOwnerIsFencedAndChangesNothing(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let old = try claim(database, partition: 0)
        let other = try claim(database, partition: 1)
        let new = try claim(database, partition: 0)
        let fenced = StorageError.Kind.fenced([JournalPartition(topic: Self.topic, partition: 0)])
        let updates = [other, old].map {
            ProgressUpdate(
                topic: Self.topic, partition: $0.partition, epoch: $0.epoch, nextOffset: 5, publishedThrough: 4)
        }
        #expect(failure { try database.transaction { try Progress.advance(updates, in: $0) } }?.kind == fenced)
        let published = PublishedUpdate(topic: Self.topic, partition: 0, epoch: old.epoch, publishedThrough: 4)
        #expect(
            failure { try database.transaction { try Progress.markPublished([published], in: $0) } }?.kind == fenced)
        #expect(failure { try suspect(database, old, 1) }?.kind == fenced)
        let setAside = failure {
            try database.transaction {
                try Progress.markSetAsidePublished(
                    topic: Self.topic, partition: 0, epoch: old.epoch, incarnation: 0, through: 1, finished: true,
                    in: $0)
            }
        }
        #expect(setAside?.kind == fenced)
        #expect(setAside?.message == "claimed by another replica: identity.link.commands.v1[0]")
        try advance(database, new, to: 1)
        #expect(try claim(database, partition: 1).nextOffset == nil)
        let unknown = ProgressUpdate(topic: "none", partition: 0, epoch: 1, nextOffset: 1, publishedThrough: 0)
        let missing = failure { try database.transaction { try Progress.advance([unknown], in: $0) } }
        #expect(missing?.kind == .fenced([JournalPartition(topic: "none", partition: 0)]))
    }

    @Test(arguments: SQLEngine.allCases)
    func offsetsOfAnotherClusterOrTopicAreSetAside(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let first = try claim(database, cluster: "one")
        try advance(database, first, to: 4, published: 1)
        try database.transaction { try Journal.append((0..<4).map { JournalTests.entry(offset: $0) }, in: $0) }
        // As many messages as were read: the same topic. One less: another one.
        #expect(try claim(database, cluster: "one", watermark: 4).start == .resumed)
        let second = try claim(database, cluster: "one", watermark: 3)
        #expect(second.start == .setAside(previous: 0, publishedThrough: 1))
        #expect(second.incarnation == 1 && second.nextOffset == nil && second.publishedThrough == -1)
        #expect(second.epoch == 3 && second.idleClaims == 1)
        #expect(second.unpublished == [SetAsideIncarnation(incarnation: 0, publishedThrough: 1)])

        // The replica dies before it has published anything, and the cluster is replaced as well.
        try advance(database, second, to: 2, published: -1)
        try database.transaction {
            try Journal.append([JournalTests.entry(offset: 0, incarnation: 1, id: "later")], in: $0)
        }
        let third = try claim(database, cluster: "two", watermark: 100)
        #expect(third.start == .setAside(previous: 1, publishedThrough: -1))
        #expect(third.unpublished.map(\.incarnation) == [0, 1])
        try database.transaction { transaction in
            try Progress.markSetAsidePublished(
                topic: Self.topic, partition: 0, epoch: third.epoch, incarnation: 0, through: 2, finished: false,
                in: transaction)
            try Progress.markSetAsidePublished(
                topic: Self.topic, partition: 0, epoch: third.epoch, incarnation: 1, through: 0, finished: true,
                in: transaction)
        }
        let fourth = try claim(database, cluster: "two")
        #expect(fourth.start == .resumed && fourth.incarnation == 2)
        #expect(fourth.unpublished == [SetAsideIncarnation(incarnation: 0, publishedThrough: 2)])
    }

    @Test(arguments: SQLEngine.allCases)
    func whatIsPublishedToItsEndIsNotNamed(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let first = try claim(database, cluster: "one")
        try database.transaction { try Journal.append([JournalTests.entry(offset: 3)], in: $0) }
        try advance(database, first, to: 4, published: 3)
        let second = try claim(database, cluster: "two")
        #expect(second.start == .setAside(previous: 0, publishedThrough: 3))
        #expect(second.unpublished.isEmpty)
    }

    @Test(arguments: SQLEngine.allCases)
    func crashLoopsAreCounted(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        for count in 1...4 { #expect(try claim(database).idleClaims == Int64(count)) }
        var current = try claim(database)
        try advance(database, current, to: 10)
        current = try claim(database)
        #expect(current.idleClaims == 1)
        // Nothing moved.
        try advance(database, current, to: 10, published: 5)
        current = try claim(database)
        #expect(current.idleClaims == 2)

        #expect(try suspect(database, current, 11) == 1)
        #expect(try suspect(database, current, 11) == 2)
        current = try claim(database)
        #expect(current.suspectOffset == 11 && current.suspectCount == 2)
        #expect(try suspect(database, current, 11) == 3)
        // What stands before the suspect does not clear it.
        try advance(database, current, to: 11)
        #expect(try suspect(database, current, 11) == 4)
        try advance(database, current, to: 12)
        current = try claim(database)
        #expect(current.suspectOffset == nil && current.suspectCount == 0)
        #expect(try suspect(database, current, 12) == 1)
        #expect(try suspect(database, current, 13) == 1)
    }
}
