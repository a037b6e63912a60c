// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import TestKit
import Testing

@testable import Storage

@Suite struct GenerationTests {
    private func claims(
        _ database: any SQLDatabase, _ partitions: [Int32], cluster: String = "c"
    ) throws -> [PartitionClaim] {
        let requests = partitions.map { PartitionClaimRequest(topic: InboxTests.topic, partition: $0) }
        return try database.transaction { try Progress.claim(requests, clusterID: cluster, owner: "o", in: $0) }
    }

    /// Rows of a partition, logged at the same numbers as their offsets, and the partition's log time at the last one.
    private func decide(
        _ database: any SQLDatabase, _ claim: PartitionClaim, _ offsets: Range<Int64>, published: Int64? = nil,
        from: Int64? = nil, loggedAt: (Int64) -> Int64 = { $0 }
    ) throws {
        let rows = offsets.map { offset in
            InboxTests.row(
                offset: offset, partition: claim.partition, incarnation: claim.incarnation, loggedAt: loggedAt(offset))
        }
        try database.transaction { transaction in
            try InboxTests.append(rows, in: transaction)
            try Progress.advance(
                [
                    ProgressUpdate(
                        topic: claim.topic, partition: claim.partition, epoch: claim.epoch, expectedOffset: from,
                        nextOffset: offsets.upperBound, publishedThrough: published ?? offsets.upperBound - 1,
                        logTime: rows.map(\.loggedAt).max() ?? -1)
                ], in: transaction)
        }
    }

    /// One generation further, if it is time.
    private func turn(
        _ database: any SQLDatabase, _ keeper: HeldPartition, retention: Int64, limit: Int = 3
    ) throws -> Bool {
        let begun = try database.transaction {
            try Inbox.beginSweep(keeper: keeper, retention: retention, in: $0)
        }
        guard var sweep = begun else { return false }
        while !sweep.isDone {
            try database.transaction { try Inbox.carryOver(&sweep, keeper: keeper, limit: limit, in: $0) }
        }
        try database.exclusiveTransaction { try Inbox.turn(sweep, keeper: keeper, in: $0) }
        return true
    }

    private func left(_ database: any SQLDatabase, _ log: LogID = InboxTests.log()) throws -> [Int64] {
        try InboxTests.positions(database).filter { $0[0] == log.number }.map { $0[1] }
    }

    private func forgottenBefore(_ database: any SQLDatabase, _ partition: Int32 = 0) throws -> Int64 {
        try #require(
            try database.read("SELECT forgotten_before FROM progress WHERE partition = $1", [SQLValue(partition)]).first
        ).integer(0)
    }

    @Test(arguments: SQLEngine.allCases)
    func aRowStaysForOnceToOneAndAHalfTheRetention(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let claim = try #require(try claims(database, [0]).first)
        var next: Int64 = 0
        for _ in 0..<60 {
            try decide(database, claim, next..<next + 5, from: next == 0 ? nil : next)
            next += 5
            _ = try turn(database, claim.held, retention: 40)
            let rows = Set(try left(database))
            let (forgotten, kept) = (try forgottenBefore(database), max(0, next - 40)..<next)
            // All that is younger is there; what is gone is older than what is said to be forgotten.
            #expect(kept.allSatisfy(rows.contains))
            #expect((0..<next).allSatisfy { rows.contains($0) || $0 < forgotten })
            #expect(forgotten == -1 || forgotten < next - 40)
            // What was carried over because it was just not old enough stays a turn longer.
            #expect(rows.filter { $0 < next - 40 - 20 - 5 }.count <= 2)
        }
        #expect(try left(database).first != 0)
    }

    @Test(arguments: SQLEngine.allCases)
    func neverGoesPastWhatIsPublished(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let claim = try #require(try claims(database, [0]).first)
        try decide(database, claim, 0..<10, published: 6)
        for next: Int64 in 1...5 {
            try decide(
                database, claim, next * 100..<next * 100 + 1, published: 6, from: next == 1 ? 10 : next * 100 - 99)
            _ = try turn(database, claim.held, retention: 10)
        }
        // Offsets 7 to 9 are carried from generation to generation.
        #expect(try left(database) == [7, 8, 9, 100, 200, 300, 400, 500])
        #expect(try forgottenBefore(database) >= 10)
    }

    /// Two weeks pass, by the clocks of all machines or only by a wrong one: nothing was read, so nothing is too old.
    @Test(arguments: SQLEngine.allCases)
    func onlyTheLogsOwnTimeForgets(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let claim = try #require(try claims(database, [0]).first)
        try decide(database, claim, 0..<10)
        for _ in 0..<3 { #expect(try !turn(database, claim.held, retention: 20)) }
        // A late record with an early time does not turn the log's time back.
        try decide(database, claim, 10..<11, from: 10, loggedAt: { _ in 1 })
        #expect(try !turn(database, claim.held, retention: 20))
        #expect(try left(database) == Array(0..<11))
        #expect(try forgottenBefore(database) == -1)
    }

    /// A partition that is idle, or lags, keeps what it may still need; the others' rows go.
    @Test(arguments: SQLEngine.allCases)
    func anIdlePartitionKeepsItsRows(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let both = try claims(database, [0, 1])
        try decide(database, both[0], 0..<10)
        try decide(database, both[1], 0..<10)
        for next: Int64 in 1...8 {
            try decide(
                database, both[0], next * 100..<next * 100 + 1, from: next == 1 ? 10 : next * 100 - 99)
            // The first time the first generation begins.
            #expect(try turn(database, both[0].held, retention: 50) == (next > 1))
        }
        #expect(try left(database, InboxTests.log(1)) == Array(0..<10))
        #expect(try forgottenBefore(database, 1) == -1)
        #expect(try left(database).first ?? 0 >= 500)
        // It is read again: what is too old goes by and by.
        try decide(database, both[1], 10..<11, from: 10, loggedAt: { _ in 55 })
        for next: Int64 in 9...12 {
            try decide(database, both[0], next * 100..<next * 100 + 1, from: next * 100 - 99)
            _ = try turn(database, both[0].held, retention: 50)
        }
        #expect(try left(database, InboxTests.log(1)) == [5, 6, 7, 8, 9, 10])
        #expect(try forgottenBefore(database, 1) == 5)
    }

    @Test(arguments: SQLEngine.allCases)
    func onlyTheOwnerForgets(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let old = try #require(try claims(database, [0]).first)
        try decide(database, old, 0..<10)
        for next: Int64 in 1...3 {
            try decide(database, old, next * 100..<next * 100 + 1, from: next == 1 ? 10 : next * 100 - 99)
            if next < 3 { _ = try turn(database, old.held, retention: 10) }
        }
        let begun = try database.transaction { try Inbox.beginSweep(keeper: old.held, retention: 10, in: $0) }
        var sweep = try #require(begun)
        let new = try #require(try claims(database, [0]).first)
        let carry = failure {
            try database.transaction { try Inbox.carryOver(&sweep, keeper: old.held, limit: 100, in: $0) }
        }
        #expect(carry?.kind == .conflict)
        sweep.isDone = true
        let turn = failure { try database.exclusiveTransaction { try Inbox.turn(sweep, keeper: old.held, in: $0) } }
        #expect(turn?.kind == .conflict)
        #expect(try left(database).count == 13)
        #expect(try database.transaction { try Inbox.beginSweep(keeper: old.held, retention: 10, in: $0) } == nil)
        #expect(try database.transaction { try Inbox.beginSweep(keeper: new.held, retention: 10, in: $0) } != nil)
    }

    /// The store went back to an earlier copy between the look and the end: nothing is forgotten by what it was.
    @Test(arguments: SQLEngine.allCases)
    func anEarlierCopyIsNotEmptied(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let claim = try #require(try claims(database, [0]).first)
        try decide(database, claim, 0..<10)
        for next: Int64 in 1...4 {
            try decide(database, claim, next * 100..<next * 100 + 1, from: next == 1 ? 10 : next * 100 - 99)
            if next < 4 { _ = try turn(database, claim.held, retention: 10) }
        }
        let begun = try database.transaction { try Inbox.beginSweep(keeper: claim.held, retention: 10, in: $0) }
        var sweep = try #require(begun)
        try database.transaction { try Inbox.carryOver(&sweep, keeper: claim.held, limit: 100, in: $0) }
        try database.transaction { _ = try $0.execute("UPDATE progress SET log_time = 300") }
        let turn = failure { try database.exclusiveTransaction { try Inbox.turn(sweep, keeper: claim.held, in: $0) } }
        #expect(turn?.kind == .conflict)
        #expect(try left(database).contains(0))
        #expect(try forgottenBefore(database) < 10)
    }

    /// SQLite as Debian builds it writes every page of what it drops, full of zeros: seconds for millions of rows, in which
    /// nothing is decided.
    @Test func emptyingWritesNoPageOfWhatGoes() throws {
        let store = try TestStore(.sqlite)
        let database = try store.openMigrated()
        try database.transaction { transaction in
            try transaction.executeEach(
                "INSERT INTO inbox_0 VALUES (1, 1, 1, 1, 0, 1, $1, $2, $3, $1)",
                (0..<5000).map { number in
                    let bytes = withUnsafeBytes(of: Int64(number).bigEndian) { Array($0) }
                    return [.blob(bytes + bytes), .blob(bytes + bytes), .blob([UInt8](repeating: 1, count: 200))]
                })
        }
        func logSize() throws -> Int { try Data(contentsOf: URL(filePath: store.path + "-wal")).count }
        let written = try logSize()
        try database.exclusiveTransaction { _ = try $0.execute("DELETE FROM inbox_0") }
        #expect(try logSize() < written + written / 10)
    }

    /// The old incarnation's unpublished rest stays until it is published. The new log's claim knows the old one's time,
    /// and what may have been forgotten.
    @Test(arguments: SQLEngine.allCases)
    func olderIncarnationsStayUntilTheyArePublished(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let old = try #require(try claims(database, [0]).first)
        try decide(database, old, 0..<10, published: 6)
        try database.transaction { try Outbox.append((7..<10).map { OutboxTests.row($0) }, in: $0) }
        let claim = try #require(try claims(database, [0], cluster: "new").first)
        #expect(claim.start == .setAside(previous: 0, publishedThrough: 6))
        #expect(claim.unpublished == [SetAsideIncarnation(incarnation: 0, publishedThrough: 6)])
        #expect(claim.logTime == 9)
        func pass(_ from: Int64, _ to: Int64) throws {
            for next in from..<to {
                try decide(
                    database, claim, next * 100..<next * 100 + 1, from: next == 1 ? nil : next * 100 - 99)
                _ = try turn(database, claim.held, retention: 10)
            }
        }
        try pass(1, 5)
        #expect(try left(database) == [7, 8, 9])
        try database.transaction {
            try Progress.markSetAsidePublished(
                topic: InboxTests.topic, partition: 0, epoch: claim.epoch, incarnation: 0, through: 9, finished: true,
                in: $0)
        }
        #expect(try database.read("SELECT COUNT(*) FROM outbox") == [SQLRow([0])])
        try pass(5, 9)
        #expect(try left(database).isEmpty)
        #expect(try !left(database, InboxTests.log(incarnation: 1)).isEmpty)
    }

    /// A back-up reads the table: the generation is emptied later, and nobody waits for it.
    @Test func whoReadsTheGenerationIsNotWaitedFor() throws {
        let store = try TestStore(.postgresql)
        let database = try store.openMigrated()
        let reader = try store.open()
        let claim = try #require(try claims(database, [0]).first)
        for next: Int64 in 1...4 {
            try decide(database, claim, next * 100..<next * 100 + 1, from: next == 1 ? nil : next * 100 - 99)
            if next < 4 { _ = try turn(database, claim.held, retention: 10) }
        }
        let error = try reader.transaction { transaction in
            for table in Inbox.tables { _ = try transaction.query("SELECT COUNT(*) FROM \(table)") }
            return failure { try turn(database, claim.held, retention: 10) }
        }
        #expect(error == .generationIsRead, "no lock that holds somebody up")
        #expect(try turn(database, claim.held, retention: 10))
    }
}
