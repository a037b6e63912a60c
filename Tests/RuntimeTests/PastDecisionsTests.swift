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

/// What a replay reads before it decides anything: when the service decided what.
@Suite(.dedicatedThread) struct PastDecisionsTests {
    private static let topic = "identity.fake.events.v1"
    private static let replies = ["identity.replies.v1", "identity.replies.shop"]
    /// Of those that tell, and no others.
    private static let others = ["identity.other.events.v1", "x-identity.replies.v1"]
    private let broker: EmbeddedBroker
    private let store: ServiceStore<FakeService>
    private let log = LogRecorder()
    private let health = LoopHealth()
    private let signals = LoopSignals()
    private var configuration: ServiceConfiguration

    init() throws {
        let topics = [Self.topic] + Self.replies + Self.others
        broker = try EmbeddedBroker(topics: topics.map { TopicSpec(name: $0, partitions: 2) }, logger: .quiet)
        store = try ServiceStore(.sqlite)
        configuration = try ServiceConfiguration(
            environment: KafkaConfiguration.embeddedEnvironment.merging([
                "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrapServers, "IDENTITYBUS_INTERNAL_KEY": "0123456789abcdef",
            ]) { $1 }, service: "link")
        configuration.replayUntil = .now
    }

    /// - Parameter messages: ids, the newest of which was told last.
    private func tell(
        _ messages: [String], on topic: String = topic, source: String = "identitybus/fake",
        signedBy key: String = Signature.eventsKeyID
    ) throws {
        let producer = try KafkaProducer(configuration: configuration.kafka, logger: .quiet)
        for (token, message) in messages.enumerated() {
            var attributes = Fixture.attributes("identity.fake.told.v1", id: message)
            attributes.source = source
            attributes.time = Timestamp(milliseconds: Int64(token)).rfc3339
            try producer.send(try Fixture.record(attributes, [:], signedBy: key, topic: topic).sent, token: token)
        }
        #expect(producer.flush(timeout: .seconds(60)).allSatisfy { $0.error == nil })
        producer.close(timeout: .seconds(1))
    }

    @discardableResult
    private func prepare(
        patience: Duration = .seconds(10), retrying retry: (any Error) -> Bool = { _ in false }
    ) throws -> LaterTimes {
        var past = PastDecisions(
            service: "fake", questions: [], configuration: configuration, authenticator: Fixture.authenticator(),
            database: store.database, health: health, signals: signals, logger: log.logger)
        past.patience = patience
        return try past.prepare(retrying: retry)
    }

    /// What is kept: messages and times.
    private var kept: [[SQLValue]] { get throws { try store.rows(["decision_times ORDER BY message"]) } }

    private func events(_ name: String) -> [Logger.Metadata] {
        log.lines.map(\.metadata).filter { $0["event"] == "\(name)" }
    }

    @Test func theTimesAreKeptBeforeAReplayAndForgottenAfterIt() throws {
        defer { broker.close() }
        try prepare()
        #expect(try kept.isEmpty)
        try tell(["a", "b"])
        for topic in Self.replies { try tell(["of \(topic)"], on: topic) }
        // Another replay told the first one again, and something else under its id, which stands in another partition.
        try tell(["c", "c", "a"])
        try tell(["d", "b"], on: Self.replies[0])
        try tell(["d"])
        try tell(["e", "d"])
        // None of these is what the service told.
        for topic in Self.others { try tell(["other"], on: topic) }
        try tell(["foreign"], source: "identitybus/other")
        try tell(["forged"], signedBy: "demo-1")
        try prepare()
        #expect(
            try kept == [
                [.text("a"), .integer(0), .null],
                [.text("b"), .integer(1), .null],
                [.text("c"), .integer(0), .null],
                [.text("d"), .integer(0), .null],
                [.text("e"), .integer(0), .null],
                [.text("of identity.replies.shop"), .integer(0), .null],
                [.text("of identity.replies.v1"), .integer(0), .null],
            ])
        #expect(events("replay.recorded").compactMap { $0["decisions"] }.map { "\($0)" } == ["0", "12"])
        var after = self
        after.configuration.replayUntil = nil
        try after.prepare()
        #expect(try kept.isEmpty)
    }

    /// One message tells of many decisions that led to no other.
    @Test func theTimesOfWhatToldNothingAreKept() throws {
        defer { broker.close() }
        var noted = Fixture.attributes(DecisionsNoted.type, id: "n1")
        noted.time = Timestamp(milliseconds: 7).rfc3339
        try send(noted, ["decisions": ["x", "y"], "repeated": ["r1"], "refused": ["r2"]], to: Self.topic)
        // On topics of replies others may write too.
        noted.id = "n2"
        try send(noted, ["decisions": ["z"], "refused": ["r1"]], to: Self.replies[0])
        try prepare()
        #expect(
            try kept == [
                [.text("r1"), .integer(7), .null], [.text("r2"), .integer(7), .text("")],
                [.text("x"), .integer(7), .null],
                [.text("y"), .integer(7), .null],
            ])
    }

    @Test func whatWasRefusedIsKept() throws {
        defer { broker.close() }
        var reply = Fixture.attributes(ReceivedReply.type, id: "r1")
        reply.time = Timestamp(milliseconds: 7).rfc3339
        let data: JSONValue = [
            "commandId": "c9", "commandDigest": "d", "status": "rejected", "reason": "EXTERNAL_ID_TAKEN",
            "message": "It is: taken",
        ]
        try send(reply, data, to: Self.replies[0])
        try prepare()
        let rejection = SQLValue.text("EXTERNAL_ID_TAKEN: It is: taken")
        #expect(try kept == [[.text("r1"), .integer(7), rejection]])
    }

    /// A replay had another apps file: its refusals are its own. Whoever was refused before it stays so.
    @Test func whatAReplayRefusedItselfIsNotKept() throws {
        defer { broker.close() }
        var noted = Fixture.attributes(DecisionsNoted.type, id: "n1")
        noted.time = Timestamp(milliseconds: 7).rfc3339
        try send(noted, ["decisions": [], "refusedInReplay": ["r2"]], to: Self.topic)
        for id in ["r1", "r2"] {
            var reply = Fixture.attributes(ReceivedReply.type, id: id)
            reply.time = Timestamp(milliseconds: 7).rfc3339
            let data: JSONValue = [
                "commandId": "c9", "commandDigest": "d", "status": "rejected", "reason": "EXTERNAL_ID_TAKEN",
                "message": "It is.",
            ]
            try send(reply, data, to: Self.replies[0])
        }
        try prepare()
        let rejection = SQLValue.text("EXTERNAL_ID_TAKEN: It is.")
        #expect(try kept == [[.text("r1"), .integer(7), rejection], [.text("r2"), .integer(7), .null]])
    }

    /// A reply names the user at a later time than the one who erased her.
    @Test func anErasureIsNoEarlierThanWhoeverStillSawThePerson() throws {
        defer { broker.close() }
        let erase = CommandKey(app: "demo", source: "test", id: "c1")
        var erased = Fixture.attributes(UserErased.type, id: DerivedID.message(of: erase, index: 0))
        erased.time = Timestamp(milliseconds: 1000).rfc3339
        var reply = Fixture.attributes(ReceivedReply.type, id: "r1")
        reply.time = Timestamp(milliseconds: 1040).rfc3339
        try send(
            reply, ["commandId": "c9", "commandDigest": "d", "status": "succeeded", "result": ["userId": "u1"]],
            to: Self.replies[0])
        try send(erased, ["userId": "u1"], to: Self.topic)
        #expect(try prepare().time(of: erase, 1000) == 1041)
    }

    private func send(_ attributes: EventAttributes, _ data: JSONValue, to topic: String) throws {
        let producer = try KafkaProducer(configuration: configuration.kafka, logger: .quiet)
        var attributes = attributes
        attributes.source = "identitybus/fake"
        try producer.send(
            try Fixture.record(attributes, data, signedBy: Signature.eventsKeyID, topic: topic).sent, token: 0)
        #expect(producer.flush(timeout: .seconds(60)).allSatisfy { $0.error == nil })
        producer.close(timeout: .seconds(1))
    }

    /// Without a word it would wait for ever, and the service with it.
    @Test func aPartitionThatGivesNothingMoreIsNamedAndTriedAgain() throws {
        defer { broker.close() }
        try tell(["a", "b"])
        broker.failNext(.fetch, with: Array(repeating: KafkaError.Code.notLeader, count: 1000))
        var errors: [String] = []
        try prepare(patience: .seconds(2)) { error in
            errors.append("\(error)")
            let unready = health.report.ready.compactMap(\.detail).joined(separator: " ")
            #expect(unready.contains("gives nothing more"), "\(unready)")
            broker.clearFailures(.fetch)
            return errors.count < 5
        }
        #expect(errors.count == 1 && errors.allSatisfy { $0.contains("gives nothing more of \(Self.topic)[") })
        #expect(events("replay.waits").count == 1 && events("replay.recorded").count == 1)
        #expect(try kept.count == 2)
    }

    @Test func aStopEndsTheWaiting() throws {
        defer { broker.close() }
        try tell(["a"])
        signals.stop()
        try prepare()
        #expect(try kept.isEmpty && log.lines.isEmpty)
    }
}

extension KafkaRecord {
    fileprivate var sent: Record {
        Record(topic: topicPartition.topic, key: key, value: value, headers: headers, partition: 0)
    }
}
