// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Storage
import TestKit
import Testing

@testable import Simulation

@Suite(.serialized) struct SimulationTests {
    /// The search itself is scripts/simulate, because a process must be told to hash alike every time.
    @Test(arguments: SimulatedService.allCases) func someSeedsHold(_ service: SimulatedService) throws {
        let simulation = try Simulation()
        for seed in UInt64(1)...3 {
            let verdict = try simulation.run(seed: seed, service)
            #expect(verdict.violations.isEmpty, "scripts/simulate \(seed) --service \(service)")
            #expect(verdict.written > 20)
        }
    }

    /// The answers of other services stand on a topic of their own. After a store was put back they may be read again
    /// before the commands that asked for them.
    @Test func whatWasAnsweredBeforeAStoreWasPutBackIsAnsweredAgain() throws {
        let simulation = try Simulation()
        for seed in UInt64(1)...12 {
            var plan = Plan(seed: seed, service: .verification)
            plan.commands = (1...6).map { number in
                PlannedCommand(number: number, time: 1_000_000, kind: .fresh, seed: seed &* 100 + UInt64(number))
            }
            plan.faults = [
                Fault(time: 900_000, kind: .copyStore, seed: seed),
                Fault(time: 4_000_000, kind: .putStoreBack, seed: seed),
            ]
            let violations = try simulation.run(plan).violations
            #expect(violations == [], "seed \(seed)")
        }
    }

    /// Dry runs of commands that ask other services, among real ones: each is answered, whatever happens meanwhile and
    /// whether the others answer or not.
    @Test(arguments: [SimulatedService.verification, .user]) func dryRunsOfSagasAreAnswered(
        _ service: SimulatedService
    ) throws {
        let simulation = try Simulation()
        for seed in UInt64(1)...8 {
            var plan = Plan(seed: seed, service: service)
            for index in plan.commands.indices where plan.commands[index].kind == .fresh {
                if index % 3 != 0 { plan.commands[index].kind = .dryRun }
            }
            let violations = try simulation.run(plan).violations
            #expect(violations == [], "seed \(seed)")
        }
    }

    /// Without it each dictionary has an order of its own.
    private static let hashesAlike = ProcessInfo.processInfo.environment["SWIFT_DETERMINISTIC_HASHING"] != nil

    @Test(.enabled(if: hashesAlike, "SWIFT_DETERMINISTIC_HASHING is not set; scripts/test runs it by itself"))
    func aSeedIsTheSameRunEveryTime() throws {
        let simulation = try Simulation()
        for seed in UInt64(1)...4 {
            let one = try simulation.run(seed: seed)
            let other = try simulation.run(seed: seed)
            #expect(one.steps == other.steps && one.seconds == other.seconds && one.written == other.written)
        }
    }

    @Test func whoIsDueNextRunsNext() {
        let scheduler = Scheduler(seed: 1)
        var order: [String] = []
        let one = scheduler.start("one") {
            order.append("one")
            scheduler.pause(100)
            order.append("one again")
        }
        _ = scheduler.start("other") {
            scheduler.pause(50)
            order.append("other")
            scheduler.wake(one)
        }
        scheduler.after(20) { order.append("event") }
        scheduler.pause(60)
        #expect(order == ["one", "event", "other", "one again"])
        #expect(scheduler.now == 60 && one.isOver)
    }

    @Test func aPartitionGivesAnOffsetOnce() {
        let partition = SimulatedPartition(TopicPartition(topic: "t", partition: 0))
        let record = Record(topic: "t", value: [1])
        #expect((0..<4).map { _ in partition.append(record, time: 5) } == [0, 1, 2, 3])
        partition.removeFirst(2)
        #expect(partition.start == 2 && partition.append(record, time: 5) == 4)
        #expect(partition.read(from: 3, limit: 9).map(\.offset) == [3, 4])
        #expect(Set(partition.read(from: 2, limit: 9).map(\.timestampMs)).count == 3)
        partition.removeLast(2)
        #expect(partition.end == 3)
    }

    @Test func aLostAnswerIsACommitAndALostConnectionIsNone() throws {
        let kit = try Kit()
        let world = World(kit, seed: 1, isTracing: false)
        let store = try SimulatedStore(try kit.template(.link), in: kit.folder, name: "test")
        defer { withExtendedLifetime(world) { store.close() } }
        let replica = Replica("one", world)
        let connection = SimulatedConnection(store, replica)
        func removeSalt() throws {
            try connection.transaction { _ = try $0.execute("DELETE FROM salt") }
        }
        func salts() throws -> Int64 {
            try store.transaction { try $0.query("SELECT COUNT(*) FROM salt").first?.integer(0) ?? -1 }
        }
        store.takeCopy()
        for (fault, isUnknown, left) in [
            (StoreFault.lostBefore, false, 1), (.conflict, false, 1), (.lostAnswer, true, 0),
        ] {
            replica.storeFaults = [fault]
            let error = try #require(throws: StorageError.self) { try removeSalt() }
            #expect(error.outcomeUnknown == isUnknown)
            #expect(try salts() == Int64(left))
        }
        let number = connection.connectionNumber
        #expect(try store.putBack())
        #expect(try salts() == 1)
        #expect(throws: Never.self) { try connection.transaction { _ in } }
        #expect(connection.connectionNumber == number + 1)
    }
}
