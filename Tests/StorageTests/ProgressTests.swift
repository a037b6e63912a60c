// SPDX-License-Identifier: Apache-2.0

import Contracts
import TestKit
import Testing

@testable import Storage

@Suite struct ProgressTests {
    private static let topic = "identity.link.commands.v1"

    private func claim(
        _ database: any SQLDatabase, partition: Int32 = 0, cluster: String = "cluster", low: Int64? = nil,
        watermark: Int64? = nil
    ) throws -> PartitionClaim {
        let request = PartitionClaimRequest(
            topic: Self.topic, partition: partition, lowWatermark: low, highWatermark: watermark)
        return try #require(
            try database.transaction { try Progress.claim([request], clusterID: cluster, owner: "test", in: $0) }.first)
    }

    private func advance(
        _ database: any SQLDatabase, _ claim: PartitionClaim, from expected: Int64? = nil, to next: Int64,
        published: Int64 = -1
    ) throws {
        let update = ProgressUpdate(
            topic: claim.topic, partition: claim.partition, epoch: claim.epoch,
            expectedOffset: expected ?? claim.nextOffset, nextOffset: next, publishedThrough: published,
            logTime: next * 10)
        try database.transaction { try Progress.advance([update], in: $0) }
    }

    private func suspect(_ database: any SQLDatabase, _ claim: PartitionClaim, _ offset: Int64) throws -> Int {
        try database.transaction {
            try Progress.markSuspect(
                topic: claim.topic, partition: claim.partition, epoch: claim.epoch, offset: offset, in: $0)
        }
    }

    /// What is read of a store counts only while it stands where its reader left it.
    @Test(arguments: SQLEngine.allCases)
    func whatIsReadIsFenced(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        func passes(_ claim: PartitionClaim, at offset: Int64?) throws -> Bool {
            let place = TopicPartition(topic: claim.topic, partition: claim.partition)
            do {
                try database.transaction {
                    try Progress.check(place, epoch: claim.epoch, expectedOffset: offset, in: $0)
                }
                return true
            } catch let error as StorageError {
                #expect(error.kind == .fenced([place]))
                return false
            }
        }
        let first = try claim(database)
        #expect(try passes(first, at: nil) && !passes(first, at: 0))
        try advance(database, first, to: 10)
        #expect(try passes(first, at: 10) && !passes(first, at: 11), "it went back")
        let second = try claim(database)
        #expect(try passes(second, at: 10) && !passes(first, at: 10), "somebody else's")
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
            #expect(claim.incarnation == 0 && claim.epoch == 1 && claim.gap == nil && claim.unpublished.isEmpty)
            #expect(claim.logTime == -1 && claim.forgottenBefore == -1)
            // Partition 1 is empty: nothing could have been read.
            #expect(claim.idleClaims == (claim.partition == 1 ? 0 : 1))
        }
        try advance(database, first[0], to: 10, published: 7)
        let second = try claim(database, partition: 3, cluster: "c", watermark: 10)
        #expect(second.start == .resumed && second.nextOffset == 10 && second.publishedThrough == 7)
        #expect(second.epoch == 2 && second.incarnation == 0 && second.logTime == 100)
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
        let fenced = StorageError.Kind.fenced([TopicPartition(topic: Self.topic, partition: 0)])
        let updates = [other, old].map {
            ProgressUpdate(
                topic: Self.topic, partition: $0.partition, epoch: $0.epoch, expectedOffset: nil, nextOffset: 5,
                publishedThrough: 4, logTime: 0)
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
        #expect(setAside?.message == "the store names another owner or another offset: identity.link.commands.v1[0]")
        try advance(database, new, to: 1)
        #expect(try claim(database, partition: 1).nextOffset == nil)
        let unknown = ProgressUpdate(
            topic: "none", partition: 0, epoch: 1, expectedOffset: nil, nextOffset: 1, publishedThrough: 0, logTime: 0)
        let missing = failure { try database.transaction { try Progress.advance([unknown], in: $0) } }
        #expect(missing?.kind == .fenced([TopicPartition(topic: "none", partition: 0)]))
    }

    @Test(arguments: SQLEngine.allCases)
    func offsetsOfAnotherClusterOrTopicAreSetAside(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let first = try claim(database, cluster: "one")
        try advance(database, first, to: 4, published: 1)
        try database.transaction { try Outbox.append((2..<4).map { OutboxTests.row($0) }, in: $0) }
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
            try Outbox.append([OutboxTests.row(0, incarnation: 1)], in: $0)
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
        try database.transaction { try Outbox.append([OutboxTests.row(3)], in: $0) }
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
        try advance(database, current, from: 11, to: 12)
        current = try claim(database)
        #expect(current.suspectOffset == nil && current.suspectCount == 0)
        #expect(try suspect(database, current, 12) == 1)
        #expect(try suspect(database, current, 13) == 1)
    }
}

// MARK: A store that went back

extension ProgressTests {
    /// The row of partition 0, as it stands in a standby that lags or in a backup.
    private func copy(_ database: any SQLDatabase) throws -> SQLRow {
        try #require(try database.read("SELECT epoch, next_offset, published_through FROM progress").first)
    }

    private func putBack(_ copy: SQLRow, _ database: any SQLDatabase) throws {
        try database.transaction {
            _ = try $0.execute("UPDATE progress SET epoch = $1, next_offset = $2, published_through = $3", copy.values)
        }
    }

    /// The owner's epoch matches, but the store has lost what the owner decided before: to go on would skip it.
    @Test(arguments: SQLEngine.allCases)
    func anEarlierCopyRefusesTheNextAdvance(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let held = try claim(database)
        let beginning = try copy(database)
        try advance(database, held, to: 95)
        let lagging = try copy(database)
        try advance(database, held, from: 95, to: 100)
        let fenced = StorageError.Kind.fenced([TopicPartition(topic: Self.topic, partition: 0)])
        for earlier in [lagging, beginning] {
            try putBack(earlier, database)
            #expect(failure { try advance(database, held, from: 100, to: 101) }?.kind == fenced)
            let published = PublishedUpdate(topic: Self.topic, partition: 0, epoch: held.epoch, publishedThrough: 99)
            #expect(
                failure { try database.transaction { try Progress.markPublished([published], in: $0) } }?.kind
                    == fenced)
            #expect(try copy(database) == earlier)
        }
        try advance(database, held, to: 95)
    }

    private func renew(
        _ database: any SQLDatabase, _ held: PartitionClaim, low: Int64? = nil, high: Int64? = nil
    ) throws -> PartitionClaim {
        let request = PartitionClaimRequest(
            topic: Self.topic, partition: held.partition, lowWatermark: low, highWatermark: high,
            heldEpoch: held.epoch)
        return try #require(
            try database.transaction { try Progress.claim([request], clusterID: "cluster", owner: "test", in: $0) }
                .first)
    }

    @Test(arguments: SQLEngine.allCases)
    func aRenewalSaysWhatTheStoreHolds(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let first = try claim(database)
        try advance(database, first, to: 95, published: 90)
        let earlier = try copy(database)
        let second = try claim(database)
        try advance(database, second, to: 100, published: 99)
        // The copy does not even know of the second claim.
        try putBack(earlier, database)
        let renewed = try renew(database, second)
        #expect(renewed.start == .resumed && renewed.nextOffset == 95 && renewed.publishedThrough == 90)
        #expect(renewed.epoch == second.epoch + 1)
        try advance(database, renewed, to: 96)
        // Without a failover it changes nothing but the epoch.
        let again = try renew(database, renewed)
        #expect(again.epoch == renewed.epoch + 1 && again.nextOffset == 96)
        #expect(failure { try advance(database, renewed, from: 96, to: 97) } != nil)
        // A store that is as good as new.
        try database.transaction { transaction in
            for table in ["progress", "logs"] { try transaction.execute("DELETE FROM \(table)") }
        }
        let fresh = try renew(database, again)
        #expect(fresh.start == .new && fresh.nextOffset == nil && fresh.epoch == again.epoch + 1)
    }

    @Test(arguments: SQLEngine.allCases)
    func aRenewalOfWhatSomebodyElseClaimedIsFenced(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let (mine, lost) = (try claim(database, partition: 0), try claim(database, partition: 1))
        let heir = try claim(database, partition: 1)
        let requests = [mine, lost].map {
            PartitionClaimRequest(topic: Self.topic, partition: $0.partition, heldEpoch: $0.epoch)
        }
        let error = failure {
            try database.transaction { try Progress.claim(requests, clusterID: "cluster", owner: "old", in: $0) }
        }
        #expect(error?.kind == .fenced([TopicPartition(topic: Self.topic, partition: 1)]))
        try advance(database, mine, to: 1)
        try advance(database, heir, to: 1)
    }

    @Test(arguments: SQLEngine.allCases)
    func renewalsAreNoSignOfACrash(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        var held = try claim(database)
        for _ in 0..<5 { held = try renew(database, held) }
        #expect(held.idleClaims == 1)
        #expect(try claim(database).idleClaims == 2)
    }
}

// MARK: A log that lost its beginning, a row that is gone

extension ProgressTests {
    @Test(arguments: SQLEngine.allCases)
    func whatRetentionTookIsNamedOnce(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        // Where nothing was read, nothing is known to be missing.
        let first = try claim(database, low: 7, watermark: 20)
        #expect(first.start == .new && first.nextOffset == nil && first.gap == nil)
        try advance(database, first, to: 10, published: 4)
        #expect(try suspect(database, first, 11) == 1)
        #expect(try claim(database, low: 10, watermark: 20).gap == nil)
        let late = try claim(database, low: 15, watermark: 20)
        #expect(late.start == .resumed && late.gap == 10..<15 && late.nextOffset == 15)
        #expect(late.publishedThrough == 4 && late.idleClaims == 1 && late.incarnation == 0)
        #expect(late.suspectOffset == nil && late.suspectCount == 0)
        let next = try claim(database, low: 15, watermark: 20)
        #expect(next.gap == nil && next.nextOffset == 15 && next.idleClaims == 2)
        try advance(database, next, to: 16)
        // A log that came back shorter is another log, wherever it begins.
        let shorter = try claim(database, low: 3, watermark: 12)
        #expect(shorter.start == .setAside(previous: 0, publishedThrough: 4) && shorter.gap == nil)
    }

    /// Somebody deleted the row: what is read again stands in an incarnation of its own, so nothing collides, and what
    /// was not published is still published.
    @Test(arguments: SQLEngine.allCases)
    func aDeletedRowLosesNothingAndStopsNothing(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let first = try claim(database)
        try database.transaction { try Outbox.append((1..<3).map { OutboxTests.row($0) }, in: $0) }
        try advance(database, first, to: 3, published: 0)
        // Again and again, without anything decided between.
        for round: Int64 in 1...3 {
            try database.transaction { _ = try $0.execute("DELETE FROM progress") }
            let claim = try claim(database, watermark: 3)
            #expect(claim.start == .setAside(previous: round - 1, publishedThrough: -1))
            #expect(claim.incarnation == round && claim.nextOffset == nil && claim.idleClaims == 1)
            #expect(claim.unpublished == [SetAsideIncarnation(incarnation: 0, publishedThrough: -1)])
        }
        let again = try claim(database)
        try database.transaction { try Outbox.append([OutboxTests.row(0, incarnation: 3)], in: $0) }
        try advance(database, again, to: 1)
        #expect(try claim(database, partition: 1).start == .new)
    }
}

// MARK: Counting crashes

extension ProgressTests {
    @Test(arguments: SQLEngine.allCases)
    func quietPartitionsAndGoodHandOversAreNotCounted(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        // New and empty, also one whose messages retention took.
        #expect(try claim(database, watermark: 0).idleClaims == 0)
        #expect(try claim(database, low: 9, watermark: 9).idleClaims == 0)
        let first = try claim(database, low: 0, watermark: 9)
        #expect(first.idleClaims == 1)
        try advance(database, first, to: 9)
        #expect(try claim(database, watermark: 9).idleClaims == 0)
        #expect(try claim(database, low: 12, watermark: 12).idleClaims == 0)
        #expect(try claim(database).idleClaims == 1)
        let third = try claim(database, watermark: 13)
        #expect(third.idleClaims == 2)
        // Neither a stranger's word nor one that comes too late counts.
        let held = third.held
        let old = HeldPartition(topic: Self.topic, partition: 0, epoch: held.epoch - 1)
        let unknown = HeldPartition(topic: "none", partition: 0, epoch: 1)
        try database.transaction { try Progress.release([old, unknown], in: $0) }
        #expect(try claim(database).idleClaims == 3)
        let last = try claim(database)
        try database.transaction { try Progress.release([unknown, last.held], in: $0) }
        #expect(try claim(database).idleClaims == 1)
    }

    @Test(arguments: SQLEngine.allCases)
    func marksAreTakenBack(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let old = try claim(database)
        let held = try claim(database)
        func unmark(_ claim: PartitionClaim, _ offset: Int64) throws {
            try database.transaction {
                try Progress.unmarkSuspect(
                    topic: Self.topic, partition: 0, epoch: claim.epoch, offset: offset, in: $0)
            }
        }
        try unmark(held, 5)
        #expect(try suspect(database, held, 5) == 1)
        #expect(try suspect(database, held, 5) == 2)
        try unmark(held, 6)
        #expect(failure { try unmark(old, 5) }?.kind == .fenced([TopicPartition(topic: Self.topic, partition: 0)]))
        try unmark(held, 5)
        #expect(try suspect(database, held, 5) == 2)
        for _ in 0..<5 { try unmark(held, 5) }
        let claim = try claim(database)
        #expect(claim.suspectOffset == nil && claim.suspectCount == 0)
        #expect(try suspect(database, claim, 5) == 1)
    }
}
