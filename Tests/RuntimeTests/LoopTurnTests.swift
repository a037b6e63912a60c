// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Observability
import Storage
import Synchronization
import TestKit
import Testing
import WireJSON

@testable import Runtime

/// What the loop does between two records, turn by turn.
@Suite struct LoopTurnTests {
    private func decided(_ service: FakeService) -> [String] { service.log.loads.withLock { $0.flatMap { $0 } } }

    /// Nothing is to be written, and nothing could be.
    @Test func anIdleLoopTellsWhatKeepsItsStoreFromTakingWrites() throws {
        let loop = try ManualLoop(FakeService())
        func problem() throws -> String? {
            try loop.turn(60)
            return loop.health.report.ready.first { $0.name == "database" && !$0.ok }?.detail
        }
        #expect(try problem() == nil)
        loop.database.obstacleMet = StorageError(kind: .unavailable, message: "the disk is full", sqlState: nil)
        #expect(try problem()?.hasSuffix(": the disk is full") == true)
        #expect(try problem()?.hasSuffix(": the disk is full") == true)
        loop.database.obstacleMet = nil
        #expect(try problem() == nil)
    }

    /// As soon as the apps file says so and the topic is there, without a new start. A command that stands there too is decided
    /// once. When the file says so no more, what still comes is decided all the same.
    @Test func anAppsOwnCommandsTopicIsRead() throws {
        let service = FakeService()
        let loop = try ManualLoop(service)
        let own = "\(Fixture.topic).demo"
        try loop.log(["v0"])
        try loop.turn(8)
        try loop.write(
            apps: TestLoop.apps.replacing("id: demo,", with: "id: demo, ownCommandsTopics: true,", maxReplacements: 1))
        try loop.turn(60)
        #expect(loop.joins == 1 && loop.replies == 1)
        func record(_ id: String, _ offset: Int64) throws -> KafkaRecord {
            try Fixture.record(
                Fixture.attributes(id: id),
                ["key": .string(id.replacing("of-", with: "")), "value": .string(id.replacing("of-", with: ""))],
                offset: offset, topic: own)
        }
        loop.assign(own, [try record("of-v0", 0), try record("of-v1", 1)])
        loop.watch.tell(cluster: nil, partitions: [own: 1])
        try loop.turn(8)
        #expect(loop.joins == 2)
        #expect(decided(service) == ["v0", "v1"])
        #expect(loop.replies == 3, "what is sent twice is answered twice")
        try loop.write(apps: TestLoop.apps)
        try loop.turn(60)
        loop.assign(own, [try record("of-v2", 2)])
        try loop.turn(60)
        #expect(decided(service) == ["v0", "v1", "v2"])
    }

    /// Two stores would keep two truths: the newcomer leaves, and leaves what it was given as it is.
    @Test(arguments: [(0, 1), (1, 2), (11, 12)])
    func withASQLiteFileAPartOfThePartitionsIsNotDecided(_ assigned: Int, _ partitions: Int) throws {
        let service = FakeService()
        let loop = try ManualLoop(service, partitions: partitions, assigned: assigned)
        try loop.log(["v0"])
        #expect(throws: ConfigurationProblem.self) { try loop.turn(30) }
        #expect(decided(service) == [])
        #expect(loop.producer.sent.isEmpty)
    }

    /// The other one has gone: what it decided is in its store, which this one has not got.
    @Test(arguments: [0, 1]) func whatWasAnothersIsNotTakenOver(_ assigned: Int) throws {
        let service = FakeService()
        let loop = try ManualLoop(service, partitions: 2, assigned: assigned)
        try loop.log(["v0"])
        try loop.turn()
        loop.assign(2)
        #expect(throws: ConfigurationProblem.self) { try loop.turn(30) }
        #expect(decided(service) == [])
    }

    /// A replica that was killed counts as a member until its session ends. Who has decided before goes on then.
    @Test func whatAKilledPredecessorHadIsTakenOver() throws {
        let before = try ManualLoop(FakeService(), partitions: 2, assigned: 2)
        try before.log(["v0"])
        try before.turn(8)
        before.crash()
        let service = FakeService()
        let loop = try ManualLoop(service, on: before.store, partitions: 2, assigned: 1)
        try loop.log(["v0", "v1"])
        try loop.turn(20)
        #expect(decided(service) == [])
        loop.assign(2)
        try loop.turn(8)
        #expect(decided(service) == ["v1"])
    }

    /// Nor does it share with the living.
    @Test func whoHasDecidedBeforeWaitsForTheDeadAlone() throws {
        let before = try ManualLoop(FakeService(), partitions: 2, assigned: 2)
        try before.log(["v0"])
        try before.turn(8)
        before.crash()
        let service = FakeService()
        let loop = try ManualLoop(service, on: before.store, partitions: 2, assigned: 1)
        try loop.log(["v0", "v1"])
        #expect(throws: ConfigurationProblem.self) { try loop.turn(40) }
        #expect(decided(service) == [])
    }

    /// It reads on while topics get more partitions.
    @Test func whoHadAllPartitionsMayWaitForNewOnes() throws {
        let service = FakeService()
        let loop = try ManualLoop(service)
        try loop.turn()
        loop.watch.tell(cluster: nil, partitions: [Fixture.topic: 2])
        try loop.turn(60)
        loop.assign(2)
        try loop.log(["v0"])
        try loop.turn(240)
        #expect(decided(service) == ["v0"])
    }

    @Test func withAllPartitionsItGoesOn() throws {
        let service = FakeService()
        let loop = try ManualLoop(service)
        try loop.log(["v0"])
        try loop.turn(30)
        #expect(decided(service) == ["v0"])
    }

    /// A replica takes over what another one decided and did not publish, and is shut out itself before it has done so.
    @Test func whoIsShutOutHandsNothingOverAndJoinsAnew() throws {
        let before = try ManualLoop(FakeService())
        before.producer.isSilent = true
        try before.log(["v0"])
        try before.turn(2)
        #expect(before.replies == 1)
        before.crash()

        let service = FakeService()
        let loop = try ManualLoop(service, on: before.store)
        try loop.turn()
        try loop.database.transaction { try $0.execute("UPDATE progress SET epoch = epoch + 1") }
        try loop.turn()
        #expect(loop.producer.sent.isEmpty, "it belongs to another one")
        try loop.turn(5)
        #expect(loop.joins == 2)
        #expect(loop.replies == 1, "it is its own again")
        #expect(decided(service) == [])
    }

    /// The store behind a new connection may be an earlier copy: where to read on is what that says.
    @Test func behindANewConnectionAllIsClaimedAgain() throws {
        let loop = try ManualLoop(FakeService())
        try loop.log(["v0", "v1"])
        try loop.turn(8)
        #expect(loop.starts == [KafkaOffset.beginning])
        loop.database.added = 1
        try loop.database.transaction {
            try $0.execute("UPDATE progress SET next_offset = 1, published_through = 0, last_time = NULL")
        }
        try loop.turn(5)
        #expect(loop.starts == [KafkaOffset.beginning, 1])
        #expect(loop.replies == 3, "v1 is decided again")
    }

    /// Also where the database is away meanwhile: the whole batch is read again.
    @Test(arguments: [0, 1, 3]) func aReplayIsDecidedInTheOrderOfItsTimes(_ unavailable: Int) throws {
        var service = FakeService()
        service.unavailable = unavailable
        let loop = try ManualLoop(
            service, partitions: 3, assigned: 3, isShared: true, replayingUntil: Timestamp(milliseconds: 1000))
        let values = (1...90).map { "v\($0)" }
        try loop.log(
            [values.filter { $0.hasSuffix("7") }, [], values.filter { !$0.hasSuffix("7") }],
            at: { Int64($0.dropFirst()) ?? 0 })
        try loop.turn(30)
        #expect(decided(service).suffix(values.count) == values)
        #expect(loop.replies == values.count)
    }

    /// Partition 0 was behind then. Of v3 nothing is told.
    @Test func aReplayIsDecidedInTheOrderOfItsDecisions() throws {
        let decidedAt: [String: Int64] = ["v1": 500, "v2": 20, "v4": 600, "v5": 550]
        let store = try ManualLoop.store { transaction in
            let messages = decidedAt.map { value, time in
                DecisionTimes.Row(
                    message: DerivedID.message(
                        of: CommandKey(app: "demo", source: "test", id: CommandID("of-\(value)")), index: 0),
                    decidedAt: time)
            }
            try DecisionTimes.keep(messages, in: transaction)
        }
        let service = FakeService()
        let loop = try ManualLoop(
            service, on: store, partitions: 2, assigned: 2, replayingUntil: Timestamp(milliseconds: 1000))
        try loop.log([["v1", "v4"], ["v2", "v3", "v5"]], at: { Int64($0.dropFirst()) ?? 0 })
        try loop.turn(30)
        #expect(decided(service) == ["v2", "v3", "v1", "v5", "v4"])
    }

    /// A log that was made anew has grown past the position when it is asked where it ends.
    @Test func aLogThatDoesNotHaveThePositionIsReadFromItsBeginning() throws {
        let service = FakeService()
        let loop = try ManualLoop(service)
        try loop.log(["v0", "v1", "v2"])
        try loop.turn(2)
        try loop.log(["n0", "n1", "n2", "n3", "n4"])
        loop.loseThePosition()
        try loop.turn(2)
        loop.watch.tell([ManualLoop.place: (low: 0, high: 5)])
        try loop.turn(5)
        #expect(decided(service) == ["v0", "v1", "v2", "n0", "n1", "n2", "n3", "n4"])
    }

    /// What a log led to is delivered after another one has followed it, while the store is away.
    @Test func whatWasDeliveredOfALogBeforeLeavesTheOutboxWhenTheStoreIsBack() throws {
        let loop = try ManualLoop(FakeService())
        loop.producer.isSilent = true
        try loop.log(["v0", "v1", "v2"])
        try loop.turn(2)
        try loop.log([])
        loop.loseThePosition()
        try loop.turn(2)
        loop.watch.tell([ManualLoop.place: (low: 0, high: 0)])
        try loop.turn(5)
        #expect(try loop.outbox() == 3)
        loop.database.isAway = true
        loop.producer.deliverAll()
        try loop.turn(2)
        loop.database.isAway = false
        try loop.turn(30)
        #expect(try loop.outbox() == 0)
        #expect(loop.replies == 3, "nothing is published twice")
        let left = try loop.database.transaction { try $0.query("SELECT count(*) FROM set_aside")[0].integer(0) }
        #expect(left == 0)
    }

    /// Looking at the store goes on meanwhile, and finds nothing wrong.
    @Test func whileNothingIsDecidedTheReplicaIsNotReady() throws {
        var service = FakeService()
        service.unavailable = .max
        let loop = try ManualLoop(service)
        try loop.log(["v0"])
        try loop.turn()
        for _ in 0..<30 {
            #expect(!loop.isDatabaseWell)
            try loop.turn()
        }
        #expect(decided(service).count > 5, "it was tried again and again")
    }

    /// A process ended at this record. That the database is away for a while is not the record's fault.
    @Test func aSuspectIsNotChargedWithTheDatabasesFaults() throws {
        var service = FakeService()
        service.unavailable = 5
        let store = try ManualLoop.store { transaction in
            let claim = try #require(try ManualLoop.claim(in: transaction).first)
            _ = try Storage.Progress.markSuspect(
                topic: claim.topic, partition: claim.partition, epoch: claim.epoch, offset: 0, in: transaction)
        }
        let loop = try ManualLoop(service, on: store)
        try loop.log(["v0"])
        try loop.turn(20)
        #expect(decided(service).count == 6)
        #expect(loop.producer.sent.allSatisfy { $0.topic != "identity.fake.dlq.v1" })
        #expect(loop.replies == 1)
    }

    /// Nothing is written, published or pruned here, and what was decided since the back-up was made is gone: whoever
    /// waits for the answer must not wait for the next command of the partition.
    @Test func anIdleReplicaNoticesThatItsStoreWasPutBack() throws {
        let service = FakeService()
        let loop = try ManualLoop(service, partitions: 2, assigned: 0, isShared: true)
        loop.assign(only: 1)
        try loop.log([[], ["v0", "v1"]])
        try loop.turn(30)
        #expect(loop.replies == 2)
        try loop.database.transaction {
            try $0.execute("UPDATE progress SET next_offset = 1, published_through = 0, last_time = NULL")
            try $0.execute("DELETE FROM outbox WHERE log_offset = 1")
        }
        loop.database.isConnectionLost = true
        try loop.turn(30)
        #expect(loop.starts == [KafkaOffset.beginning, 1])
        #expect(loop.replies == 3)
    }

    /// A partition goes to another replica in good order. What is on its way then is waited for, so that the other one
    /// does not publish it again.
    @Test func aPartitionIsHandedOverWhenWhatItLedToIsDelivered() throws {
        let before = try ManualLoop(FakeService(), isShared: true)
        before.producer.isSlow = true
        try before.log(["v0", "v1"])
        try before.turn()
        #expect(before.replies == 2)
        before.assign(0)
        try before.turn()
        before.crash()
        let loop = try ManualLoop(FakeService(), on: before.store, isShared: true)
        try loop.turn(8)
        #expect(loop.producer.sent.isEmpty)
    }

    /// The store was put back, and told how far publishing had come before anybody noticed.
    @Test func whatAStoreThatWasPutBackHasLeftLeavesTheOutbox() throws {
        let loop = try ManualLoop(FakeService(), isShared: true)
        try loop.log(["v0", "v1"])
        try loop.turn()
        #expect(try loop.outbox() == 2)
        _ = try loop.database.transaction { try $0.execute("CREATE TABLE kept AS SELECT * FROM outbox") }
        try loop.turn(30)
        #expect(try loop.outbox() == 0)
        _ = try loop.database.transaction { try $0.execute("INSERT INTO outbox SELECT * FROM kept") }
        loop.database.isConnectionLost = true
        try loop.turn(30)
        #expect(try loop.outbox() == 0)
        #expect(loop.replies == 2, "nothing is published twice")
    }

    /// The whole group waits for it: not for long. What is not delivered by then is published again, with the same id.
    @Test func aHandOverDoesNotWaitForEver() throws {
        let before = try ManualLoop(FakeService(), isShared: true)
        before.producer.isSilent = true
        try before.log(["v0"])
        try before.turn()
        before.assign(0)
        let began = before.now
        try before.turn()
        #expect((.milliseconds(500)..<(.seconds(1))).contains(before.now - began))
        before.crash()
        let loop = try ManualLoop(FakeService(), on: before.store, isShared: true)
        try loop.turn(8)
        #expect(loop.producer.sent == before.producer.sent)
    }

    /// What is delivered while the partition is nobody's leaves the outbox when it comes back, with no new record.
    @Test func whatIsDeliveredAfterALossLeavesTheOutboxOnReturn() throws {
        let loop = try ManualLoop(FakeService(), isShared: true)
        loop.producer.isSilent = true
        try loop.log(["v0", "v1"])
        try loop.turn()
        loop.loseThePartitions()
        try loop.turn()
        loop.producer.deliverAll()
        try loop.turn(2)
        loop.assign(1)
        try loop.turn(8)
        #expect(try loop.outbox() == 0)
        #expect(loop.replies == 2, "nothing is published twice")
    }
}
