// SPDX-License-Identifier: Apache-2.0

import Messaging
import Storage
import Synchronization
import TestKit
import Testing

@testable import Runtime

/// What came with a batch and belongs to the next one.
@Suite struct ReadAheadTests {
    private let service = FakeService()
    private let values = (0..<5).map { "v\($0)" }

    private var batches: [[String]] { service.log.loads.withLock { $0 } }

    /// Five records in batches of two, on an engine that commits while the loop goes on.
    private func loop(on store: TestStore? = nil) throws -> ManualLoop {
        let loop = try ManualLoop(service, on: store, batchSize: 2)
        loop.database.commitsElsewhere = true
        try loop.log(values)
        return loop
    }

    @Test func theNextBatchIsReadWhileOneIsCommitted() throws {
        let loop = try loop()
        try loop.turn()
        #expect(loop.readAhead == [2, 3])
        try loop.turn()
        #expect(loop.readAhead == [4])
        try loop.turn()
        #expect(loop.readAhead == [])
        #expect(batches == [["v0", "v1"], ["v2", "v3"], ["v4"]])
        #expect(loop.replies == 5)
    }

    @Test func withoutReadingAheadItIsTheSame() throws {
        let loop = try loop()
        loop.database.commitsElsewhere = false
        try loop.turn(3)
        #expect(loop.readAhead == [])
        #expect(batches == [["v0", "v1"], ["v2", "v3"], ["v4"]])
    }

    /// What the next batch says is not what this one says, though it stands at the same offset.
    @Test func aBatchThatIsDecidedOnceMoreIsReadAgain() throws {
        let loop = try ManualLoop(service, partitions: 2, assigned: 2, batchSize: 1)
        loop.database.commitsElsewhere = true
        try loop.turn()
        try loop.log([["v0"], ["w0"]])
        loop.database.refusals = 1
        try loop.turn(2)
        #expect(batches == [["v0"], ["v0"], ["w0"]])
        #expect(loop.replies == 2)
    }

    /// The store is an earlier copy by now, which reads on at v1.
    @Test func whatCameOfAPartitionThatIsClaimedAgainComesAgain() throws {
        let loop = try loop()
        try loop.turn()
        loop.database.added = 1
        try loop.database.transaction {
            try $0.execute("UPDATE progress SET next_offset = 1, published_through = 0, last_time = NULL")
            try $0.execute("DELETE FROM outbox WHERE log_offset = 1")
        }
        try loop.turn(4)
        #expect(loop.starts == [KafkaOffset.beginning, 1])
        #expect(batches.flatMap { $0 } == values)
        #expect(loop.replies == 6, "v1 is answered again")
    }

    /// What was read of the log that is gone stands at the same places as what is to be decided.
    @Test func whatWasReadOfALogThatIsGoneIsForgotten() throws {
        let loop = try loop()
        try loop.turn()
        #expect(loop.readAhead == [2, 3])
        try loop.log(["n0", "n1", "n2", "n3", "n4"])
        loop.loseThePosition()
        try loop.turn(2)
        loop.watch.tell([ManualLoop.place: (low: 0, high: 5)])
        try loop.turn(5)
        #expect(batches.flatMap { $0 } == ["v0", "v1", "n0", "n1", "n2", "n3", "n4"])
    }

    /// Were it to end the process, what is being decided would be held to blame.
    @Test func nothingIsReadAheadWhereARecordMayEndTheProcess() throws {
        let store = try ManualLoop.store { transaction in
            for _ in 0..<Ownership.doubtfulClaims { _ = try ManualLoop.claim(in: transaction) }
        }
        let loop = try loop(on: store)
        try loop.turn()
        #expect(batches == [["v0", "v1"]])
        #expect(loop.readAhead == [])
        try loop.turn()
        #expect(loop.readAhead == [4], "it got on: nothing is in doubt any more")
        try loop.turn()
        #expect(batches == [["v0", "v1"], ["v2", "v3"], ["v4"]])
    }
}
