// SPDX-License-Identifier: Apache-2.0

import Contracts
import EmbeddedBroker
import Logging
import Messaging
import MessagingTestKit
import Observability
import Storage
import TestKit
import Testing
import WireJSON

@testable import Runtime

/// What a replay reads of the service's own events before it decides anything.
@Suite(.dedicatedThread) struct RecordedEventsTests {
    private struct Told: EventMessage, CommandMessage {
        static let type = "identity.remembering.told.v1"
        static let scope = Scope.userLink
        var name: String
        var partitionSubject: String { name }
        var subject: String { name }

        func validate() {}
    }

    private struct Nothing: ServiceState {
        mutating func apply(_ change: Never) {}
    }

    private struct Service: CommandService {
        static let name = "remembering"
        static let migrations = [
            Migration(number: 100, name: "names", statements: ["CREATE TABLE names (name TEXT NOT NULL PRIMARY KEY)"])
        ]
        static let inputs: [Input<String>] = [.command(Told.self) { $0.name }]
        static let recordedEvents: Set<String> = [Told.type]

        static func keep(_ events: [RecordedEvent], in transaction: any SQLTransaction) throws {
            for told in events.compactMap({ $0.read(Told.self) }) {
                try transaction.execute(
                    "INSERT INTO names (name) VALUES ($1) ON CONFLICT DO NOTHING", [.text(told.name)])
            }
        }

        static func forgetRecorded(in transaction: any SQLTransaction) throws {
            try transaction.execute("DELETE FROM names", [])
        }

        func load(_ commands: [(String, DecisionContext)], in transaction: any SQLTransaction) -> Nothing { Nothing() }
        func save(_ state: Nothing, in transaction: any SQLTransaction) {}
        func decide(_ name: String, _ state: Nothing, _ context: DecisionContext) -> Decision<Never> {
            .rejected(.userNotFound)
        }
    }

    private static let topic = "identity.remembering.events.v1"
    private let broker: EmbeddedBroker
    private let store: ServiceStore<Service>
    private let log = LogRecorder()
    private let health = LoopHealth()
    private let signals = LoopSignals()
    private var configuration: ServiceConfiguration

    init() throws {
        broker = try EmbeddedBroker(topics: [TopicSpec(name: Self.topic, partitions: 2)], logger: .quiet)
        store = try ServiceStore(.sqlite)
        configuration = try ServiceConfiguration(
            environment: KafkaConfiguration.embeddedEnvironment.merging([
                "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrapServers, "IDENTITYBUS_INTERNAL_KEY": "0123456789abcdef",
            ]) { $1 }, service: "link")
        configuration.replayUntil = .now
    }

    private func tell(_ names: [String]) throws {
        let producer = try KafkaProducer(configuration: configuration.kafka, logger: .quiet)
        for (token, name) in names.enumerated() {
            let told = try Fixture.record(
                Fixture.attributes(Told.type, id: name), ["name": .string(name)], signedBy: Signature.eventsKeyID,
                topic: Self.topic)
            try producer.send(
                Record(
                    topic: Self.topic, key: told.key, value: told.value, headers: told.headers,
                    partition: Int32(token % 2)), token: token)
        }
        #expect(producer.flush(timeout: .seconds(60)).allSatisfy { $0.error == nil })
        producer.close(timeout: .seconds(1))
    }

    private func prepare(
        patience: Duration = .seconds(10), retrying retry: (any Error) -> Bool = { _ in false }
    ) throws {
        var recorded = RecordedEvents<Service>(
            configuration: configuration, authenticator: Fixture.authenticator(), database: store.database,
            health: health, signals: signals, logger: log.logger)
        recorded.patience = patience
        try recorded.prepare(partitions: { $0 == Self.topic ? 2 : nil }, retrying: retry)
    }

    private func events(_ name: String) -> [Logger.Metadata] {
        log.lines.map(\.metadata).filter { $0["event"] == "\(name)" }
    }

    @Test func allOfThemAreKeptBeforeAReplayAndForgottenAfterIt() throws {
        defer { broker.close() }
        try prepare()
        try tell(["anna", "bob", "carl"])
        try prepare()
        #expect(try store.count("names") == 3)
        #expect(events("replay.recorded").compactMap { $0["events"] }.map { "\($0)" } == ["0", "3"])
        var after = self
        after.configuration.replayUntil = nil
        try after.prepare()
        #expect(try store.count("names") == 0)
    }

    /// Without a word it would wait for ever, and the service with it.
    @Test func aPartitionThatGivesNothingMoreIsNamedAndTriedAgain() throws {
        defer { broker.close() }
        try tell(["anna", "bob"])
        broker.failNext(.fetch, with: Array(repeating: KafkaError.Code.notLeader, count: 1000))
        var errors: [String] = []
        try prepare(patience: .milliseconds(500)) { error in
            errors.append("\(error)")
            let unready = health.report.ready.compactMap(\.detail).joined(separator: " ")
            #expect(unready.contains("gives nothing more"), "\(unready)")
            broker.clearFailures(.fetch)
            return errors.count < 5
        }
        #expect(errors.count == 1 && errors.allSatisfy { $0.contains("gives nothing more of \(Self.topic)[") })
        #expect(events("replay.waits").count == 1 && events("replay.recorded").count == 1)
        #expect(try store.count("names") == 2)
    }

    @Test func aStopEndsTheWaiting() throws {
        defer { broker.close() }
        try tell(["anna"])
        signals.stop()
        try prepare()
        #expect(try store.count("names") == 0 && log.lines.isEmpty)
    }
}
