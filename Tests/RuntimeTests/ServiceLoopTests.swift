// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Messaging
import Observability
import Storage
import Synchronization
import TestKit
import Testing
import WireJSON

@testable import Runtime

/// The loop on a thread of its own, against the embedded broker and a SQLite file: records that cannot be decided.
@Suite(.serialized) struct ServiceLoopTests {
    private let loop: TestLoop
    private var broker: TestBroker { loop.broker }

    init() throws { loop = try TestLoop() }

    private func withLoop(_ service: FakeService, _ body: () throws -> Void) throws { try loop.run(service, body) }

    private func put(_ value: String, id: String) throws -> KafkaRecord {
        try Fixture.record(Fixture.attributes(id: id), ["key": .string(id), "value": .string(value)])
    }

    private func replies(_ records: [KafkaRecord]) throws -> [String: ReceivedReply] {
        try records.reduce(into: [:]) { replies, record in
            let event = try Fixture.reply(record.value ?? [])
            replies[event.data.commandId.text] = event.data
        }
    }

    /// `load` throws for one command: it is found by halving, set aside and answered; all others succeed.
    @Test func poisonIsSetAsideAndTheOthersSucceed() throws {
        let service = FakeService()
        let commands = try (0..<20).map { try put($0 == 13 ? "poison" : "v\($0)", id: "c\($0)") }
        try broker.send(commands)
        try withLoop(service) {
            let replies = try replies(broker.read("identity.replies.v1", 20))
            #expect(replies.count == 20)
            for number in 0..<20 {
                let reply = replies["c\(number)"]
                #expect(reply?.status == (number == 13 ? .rejected : .succeeded))
                #expect(reply?.reason == (number == 13 ? "INTERNAL_ERROR" : nil))
            }
            let letter = try #require(try broker.read("identity.fake.dlq.v1", 1).first)
            #expect(letter.value == commands[13].value)
            #expect(letter.header("dlq_reason") == Array("INTERNAL_ERROR".utf8))
            #expect(letter.header("dlq_step") == Array("decide".utf8))
            #expect(letter.header("dlq_original_offset") == Array("13".utf8))
        }
        #expect(service.log.loads.withLock { $0.contains(["poison"]) })
    }

    /// Two loops of a process never try what may end it at one time: the other one's record would be charged too.
    @Test func aSuspectWaitsWhileAnotherLoopTriesOne() throws {
        let service = FakeService()
        try leaveTraces(of: 1)
        #expect(loop.trial.take())
        try withLoop(service) {
            let deadline = ContinuousClock.now + .seconds(180)
            while loop.health.report.ready.contains(where: { $0.name == "group" && !$0.ok }),
                ContinuousClock.now < deadline
            { Thread.sleep(forTimeInterval: 0.05) }
            try broker.send([put("deadly", id: "c0")])
            Thread.sleep(forTimeInterval: 1.5)  // without the other one it would be decided long since
            #expect(service.log.loads.withLock { $0.isEmpty })
            loop.trial.giveBack()
            let replies = try replies(broker.read("identity.replies.v1", 1))
            #expect(replies["c0"]?.status == .succeeded)
        }
        #expect(loop.trial.take(), "given back")
    }

    /// Somebody keeps a lock, for longer than a record may conflict.
    @Test func recordsWaitForALockForAsLongAsItTakes() throws {
        var service = FakeService()
        service.lockTimeouts = 300
        try broker.send([put("v0", id: "c0"), put("v1", id: "c1")])
        try withLoop(service) {
            let replies = try replies(broker.read("identity.replies.v1", 2))
            #expect(replies["c0"]?.status == .succeeded)
            #expect(replies["c1"]?.status == .succeeded)
        }
        #expect(service.log.loads.withLock { $0.count } > 300)
    }

    /// Replicas died on this record before: it is marked before each try, and the fifth time it is not tried at all. Its
    /// sender is told, unless even reading it ended a replica.
    @Test(arguments: [(3, false, true), (4, true, true), (5, true, false)])
    func aDeadlyRecordIsSetAside(_ deaths: Int, _ isSetAside: Bool, _ isTold: Bool) throws {
        let service = FakeService()
        try leaveTraces(of: deaths)
        try broker.send([put("deadly", id: "c0"), put("v1", id: "c1")])
        try withLoop(service) {
            let replies = try replies(broker.read("identity.replies.v1", isTold ? 2 : 1))
            #expect(replies["c1"]?.status == .succeeded)
            #expect(replies["c0"]?.status == (!isTold ? nil : isSetAside ? .rejected : .succeeded))
            if isSetAside {
                let letter = try #require(try broker.read("identity.fake.dlq.v1", 1).first)
                #expect(letter.header("dlq_reason") == Array("INTERNAL_ERROR".utf8))
                #expect(letter.header("dlq_original_offset") == Array("0".utf8))
                #expect(letter.header("dlq_attempts") == Array("\(deaths + 1)".utf8))
            }
        }
        let tried = service.log.loads.withLock { $0.contains { $0.contains("deadly") } }
        #expect(tried == !isSetAside)
    }

    /// Replicas that were stopped before they had begun leave claims and no mark: that is no reason to go slowly.
    @Test func claimsAloneDoNotSlowItDown() throws {
        let service = FakeService()
        try leaveTraces(of: 0)
        try broker.send(try (0..<20).map { try put("v\($0)", id: "c\($0)") })
        try withLoop(service) { _ = try broker.read("identity.replies.v1", 20) }
        #expect(service.log.loads.withLock { $0.count } < 20, "not one by one")
    }

    /// What is left in the database when replicas claimed the partition, marked offset 0 and died.
    private func leaveTraces(of deaths: Int) throws {
        let admin = try KafkaAdmin(configuration: broker.configuration, logger: .quiet)
        let cluster = try admin.clusterID(timeout: .seconds(60)) ?? ""
        admin.close(timeout: .seconds(1))
        for number in 1...(deaths + Int(Position.doubtfulClaims)) {
            try withStore { transaction in
                let request = PartitionClaimRequest(topic: Fixture.topic, partition: 0, highWatermark: nil)
                let claims = try Storage.Progress.claim([request], clusterID: cluster, owner: "dead", in: transaction)
                guard number > Position.doubtfulClaims, let claim = claims.first else { return }
                _ = try Storage.Progress.markSuspect(
                    topic: Fixture.topic, partition: 0, epoch: claim.epoch, offset: 0, in: transaction)
            }
        }
    }

    /// After a restart nothing is decided again: the progress table says where to read on.
    @Test func aRestartGoesOnWhereItStopped() throws {
        try broker.send([put("v0", id: "c0")])
        try withLoop(FakeService()) { _ = try broker.read("identity.replies.v1", 1) }
        try broker.send([put("v1", id: "c1")])
        let second = FakeService()
        try withLoop(second) {
            let replies = try broker.read("identity.replies.v1", 2)
            #expect(replies.count == 2)
        }
        #expect(second.log.loads.withLock { $0.filter { !$0.isEmpty } } == [["v1"]])
    }

    /// A log that followed another one may hold again what that one held. What is older than what is remembered of it
    /// may have been decided there.
    @Test(arguments: [true, false]) func ofAnotherLogOnlyWhatWouldBeRememberedIsDecided(_ isTooOld: Bool) throws {
        let now = Int64(Date.now.timeIntervalSince1970 * 1000)
        try withStore { transaction in
            let request = PartitionClaimRequest(topic: Fixture.topic, partition: 0, highWatermark: nil)
            _ = try Storage.Progress.claim([request], clusterID: "another", owner: "before", in: transaction)
            try transaction.execute(
                "UPDATE progress SET forgotten_before = $1", [.integer(now + (isTooOld ? 3_600_000 : -3_600_000))])
        }
        try broker.send([put("v0", id: "c0")])
        let service = FakeService()
        try withLoop(service) {
            let replies = try replies(broker.read("identity.replies.v1", 1))
            #expect(replies["c0"]?.status == (isTooOld ? .rejected : .succeeded))
            guard isTooOld else { return }
            let letter = try #require(try broker.read("identity.fake.dlq.v1", 1).first)
            #expect(letter.header("dlq_reason") == Array("TOO_OLD_TO_TELL".utf8))
        }
    }

    /// The apps file that is in force is named with what is decided by it.
    @Test func aDecisionNamesTheAppsFileThatItWasMadeBy() throws {
        func send(_ id: String, _ count: Int) throws {
            try broker.send([put("v", id: id)])
            _ = try broker.read("identity.replies.v1", count)
        }
        try withLoop(FakeService()) {
            try send("c0", 1)
            let file = loop.folder.appending(path: "apps.yaml")
            try (Data(contentsOf: file) + Data("\n# changed\n".utf8)).write(to: file)
            Thread.sleep(forTimeInterval: 4)  // it is looked at every two seconds
            // On a busy machine the loop may look only when it has decided this one.
            try send("c1", 2)
            try send("c2", 3)
        }
        try withStore { transaction in
            let rows = try transaction.query(
                "SELECT apps FROM inbox_1 JOIN decider ON decider.number = inbox_1.decider ORDER BY log_offset")
            let digests = try rows.map { try $0.text(0) }
            #expect(digests.count == 3 && Set(digests).count == 2 && digests.first != digests.last)
        }
    }

    /// The store, while no loop runs.
    private func withStore(_ body: (any SQLTransaction) throws -> Void) throws {
        let database = try loop.configuration().database.open(service: FakeService.name, logger: .quiet)
        defer { database.close() }
        try FakeService.migrator.run(on: database)
        try database.transaction(body)
    }
}
