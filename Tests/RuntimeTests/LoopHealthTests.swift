// SPDX-License-Identifier: Apache-2.0

import Observability
import Storage
import Testing

@testable import Runtime

@Suite struct LoopHealthTests {
    /// The migration of a large store takes longer than a loop may stand still: who restarts the process meanwhile would
    /// never see its end.
    @Test func aLoopThatHasNotStartedIsNotStuck() {
        let health = LoopHealth(stuckAfter: .zero)
        #expect(health.report.live.filter { !$0.ok }.isEmpty)
        #expect(!health.report.ready.filter { !$0.ok }.isEmpty)
        health.started()
        #expect(health.report.live.filter { !$0.ok }.map(\.name) == ["loop"])
    }

    /// The loop's thread waits in one turn: for a database that keeps silent, say.
    @Test func aLoopThatDoesNotTurnIsNotReady() {
        func problems(_ waitsAfter: Duration) -> [String] {
            let health = LoopHealth(waitsAfter: waitsAfter)
            health.started()
            health.group(nil)
            return health.report.ready.filter { !$0.ok }.map(\.name)
        }
        #expect(problems(.seconds(60)) == ["topics"])
        #expect(problems(.zero) == ["topics", "turns"])
    }

    /// The broker's watch and the loop look at topics, each at its own side of them.
    @Test func whatIsWrongWithTopicsIsSaidTogether() {
        let health = LoopHealth()
        health.unwritable(nil)
        func topics() -> String? { health.report.ready.first { $0.name == "topics" }?.detail }
        health.unreadable("no right to read (Read) the topic a")
        health.topics(nil)
        #expect(topics() == "no right to read (Read) the topic a")
        health.unwritable("no right to write (Write) to the topic b")
        #expect(topics() == "no right to read (Read) the topic a; no right to write (Write) to the topic b")
        health.unreadable(nil)
        health.unwritable(nil)
        #expect(topics() == nil)
        health.kafka(is: "a:1,b:2")
        health.unreadable("no right to read (Read) the topic a")
        #expect(topics() == "Kafka at a:1,b:2: no right to read (Read) the topic a")
    }

    /// What follows from something else is not taken for a cause, in `/readyz` and in the metrics.
    @Test func aConsequenceNamesItsCause() {
        let health = LoopHealth(waitsAfter: .zero)
        health.started()
        func causes(of name: String) -> [String]? {
            let checks = health.report.ready
            return checks.first { $0.name == name && !$0.ok }?.causes(among: checks)
        }
        #expect(causes(of: "group") == [])
        #expect(causes(of: "turns") == [])
        #expect(causes(of: "broker") == nil)
        health.broker("Kafka at a:1: connection refused")
        #expect(causes(of: "broker") == [])
        #expect(causes(of: "group") == ["broker"])
        #expect(causes(of: "turns") == [])
        health.asksStore(true)
        #expect(causes(of: "database") == [])
        #expect(causes(of: "turns") == nil)
        #expect(causes(of: "group") == ["database", "broker"])
    }

    /// What has not been asked yet is no cause of anything.
    @Test func whatIsNotKnownIsNoCause() {
        let checks = LoopHealth().report.ready
        #expect(checks.first { $0.name == "broker" }?.ok == false)
        #expect(checks.first { $0.name == "group" }?.causes(among: checks) == [])
    }

    /// At the start others may migrate, for as long as they like; later a store is locked for moments.
    @Test func aMigrationIsWaitedForAtTheStart() {
        let health = LoopHealth()
        health.store(is: "PostgreSQL at a:1")
        func database() -> String? { health.report.ready.first { $0.name == "database" }?.detail }
        health.migrates()
        #expect(database()?.hasPrefix("PostgreSQL at a:1: its tables are being migrated, a lock that") == true)
        health.reads(nil)
        health.started()
        health.migrates()
        #expect(database() == nil)
    }

    /// One that lets people in and answers no question has been asked.
    @Test func aStoreThatIsSilentFromTheStartIsTold() {
        let health = LoopHealth(waitsAfter: .zero)
        health.store(is: "PostgreSQL at a:1")
        health.asksStore(true)
        let check = health.report.ready.first { $0.name == "database" }
        #expect(check?.detail?.hasPrefix("PostgreSQL at a:1: no answer for") == true)
        #expect(check?.patience == .zero)
        health.asksStore(false)
        #expect(health.report.ready.first { $0.name == "database" }?.detail == "PostgreSQL at a:1: not asked yet")
    }

    /// A store that keeps silent is told of after a while, from when on it does.
    @Test func silenceCountsFromItsBeginning() {
        let health = LoopHealth(waitsAfter: .zero)
        health.started()
        health.asksStore(true)
        let check = health.report.ready.first { $0.name == "database" }
        #expect(check.map { $0.hasLasted > .zero } == true)
        health.asksStore(false)
        health.reads(StorageError(kind: .unavailable, message: "refused"))
        #expect(health.report.ready.first { $0.name == "database" }.map { $0.hasLasted > .zero } == true)
    }

    /// A right that is missing is told before the service says that it is ready.
    @Test func nobodyIsReadyBeforeItIsKnownWhatMayBeWritten() {
        let health = LoopHealth()
        health.started()
        health.group(nil)
        #expect(!health.report.isReady)
        health.unwritable(nil)
        #expect(health.report.isReady)
    }
}
