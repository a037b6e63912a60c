// SPDX-License-Identifier: Apache-2.0

import Contracts
import TestKit
import Testing

@testable import Storage

@Suite struct ForwardTests {
    private func forward(_ id: String, app: AppID = "app", begunAt: Int64 = 0) -> UnansweredForward {
        UnansweredForward(app: app, id: CommandID(id), message: Array("\(app)/\(id)".utf8), begunAt: begunAt)
    }

    private func due(_ database: any SQLDatabase, now: Int64, limit: Int = 10) throws -> [UnansweredForward] {
        try database.transaction { try Forwards.due(now: now, limit: limit, in: $0) }
    }

    @Test func thePausesGrow() {
        let seconds = (1...10).map { Forwards.pause(asked: $0) / 1000 }
        #expect(seconds == [5, 10, 20, 40, 80, 160, 320, 600, 600, 600])
        #expect(Forwards.pause(asked: .max) == 600_000)
        #expect(Forwards.pause(asked: 0) == 5000)
    }

    @Test(arguments: SQLEngine.allCases)
    func eachIsAskedAgainUntilItIsAnswered(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let one = forward("one", begunAt: 1000)
        #expect(one.asked == 1 && one.nextAsk == 6000)
        // The same id in another app is another forward.
        let other = forward("one", app: "other", begunAt: 2000)
        try database.transaction { try Forwards.save([one, other], in: $0) }
        #expect(try due(database, now: 5999).isEmpty)
        let again = UnansweredForward(
            app: "app", id: "one", message: one.message, asked: 2, nextAsk: 16_000, begunAt: 1000)
        #expect(try due(database, now: 6000) == [again])
        // Decided a second time, after a rollback that came too late to be known: it waits for its turn all the same.
        try database.transaction { try Forwards.save([forward("one", begunAt: 6000)], in: $0) }
        #expect(try due(database, now: 15_999).map(\.app) == ["other"])
        #expect(try due(database, now: 16_000).map(\.asked) == [3])
        #expect(try due(database, now: 16_000).isEmpty)
        try database.transaction {
            try Forwards.answered([.init(app: "app", id: "one"), .init(app: "app", id: "unknown")], in: $0)
        }
        #expect(try due(database, now: .max / 2).map(\.app) == ["other"])
        try database.transaction { try Forwards.answered([.init(app: "other", id: "one")], in: $0) }
        #expect(try due(database, now: .max / 2).isEmpty)
    }

    /// A replica's clock was 15 days ahead, then it was set right. A clock that is less than an hour ahead puts off.
    @Test(arguments: SQLEngine.allCases)
    func whatAClockPutOffThatWasAheadIsAskedAgain(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let days: Int64 = 15 * 86_400_000
        try database.transaction { try Forwards.save([forward("one"), forward("two", begunAt: 3_600_000)], in: $0) }
        #expect(try due(database, now: days).map(\.id) == ["one", "two"])
        #expect(try due(database, now: 6000).map(\.nextAsk) == [26_000, 26_000])
        #expect(try due(database, now: 25_999).isEmpty)
        #expect(try due(database, now: 26_000).map(\.asked) == [4, 4])
    }

    @Test(arguments: SQLEngine.allCases)
    func theLongestOverdueComeFirst(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        try database.transaction {
            try Forwards.save([3, 1, 2, 5, 4].map { forward("f\($0)", begunAt: $0) }, in: $0)
        }
        #expect(try due(database, now: 5004, limit: 2).map(\.id) == ["f1", "f2"])
        #expect(try due(database, now: 5004, limit: 10).map(\.id) == ["f3", "f4"])
        #expect(try due(database, now: 5005, limit: 10).map(\.id) == ["f5"])
    }

    @Test(arguments: SQLEngine.allCases)
    func anUndoneTransactionAsksNothing(_ engine: SQLEngine) throws {
        struct Undo: Error {}
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        try database.transaction { try Forwards.save([forward("one")], in: $0) }
        #expect(throws: Undo.self) {
            try database.transaction { transaction in
                #expect(try Forwards.due(now: 5000, limit: 1, in: transaction).count == 1)
                throw Undo()
            }
        }
        #expect(try due(database, now: 5000).map(\.asked) == [2])
    }

    @Test(arguments: SQLEngine.allCases)
    func countsAndTheOldest(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let count = { try database.transaction { try Forwards.count(in: $0) } }
        let oldest = { try database.transaction { try Forwards.oldest(in: $0) } }
        #expect(try count() == 0 && oldest() == nil)
        try database.transaction {
            try Forwards.save([forward("a", begunAt: 7), forward("b", begunAt: 5)], in: $0)
        }
        // Being asked again makes nothing younger.
        #expect(try due(database, now: 6000).count == 2)
        #expect(try count() == 2 && oldest() == 5)
        try database.transaction {
            try Forwards.save((0..<Forwards.countLimit).map { forward("\($0)", begunAt: 100 + $0) }, in: $0)
        }
        #expect(try count() == Forwards.countLimit)
    }

    /// Two replicas ask at the same time: each forward is sent again by one of them.
    @Test func oneOfTwoReplicasAsks() throws {
        let store = try TestStore(.postgresql)
        let one = try store.openMigrated()
        let two = try store.open()
        try one.transaction { try Forwards.save([forward("f")], in: $0) }
        let error = failure {
            try one.transaction { transaction in
                _ = try transaction.query("SELECT 1 FROM forward")
                #expect(try due(two, now: 5000).count == 1)
                _ = try Forwards.due(now: 5000, limit: 1, in: transaction)
            }
        }
        #expect(error?.kind == .conflict)
        #expect(try due(one, now: 5000).isEmpty)
    }
}
