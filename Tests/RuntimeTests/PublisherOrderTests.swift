// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import TestKit
import Testing

@testable import Runtime

/// Orders of events that a real broker does not give on demand.
@Suite struct PublisherOrderTests {
    /// Reports what it is told to, and nothing by itself.
    private final class ScriptedProducer: RecordProducer {
        var fatalError: KafkaError?
        var sent: [(token: Int, value: [UInt8]?)] = []
        var reports: [DeliveryReport] = []

        func send(_ record: Record, token: Int) throws(KafkaError) { sent.append((token, record.value)) }

        func report(_ place: Int, _ code: Int32? = nil, isFatal: Bool = false) {
            reports.append(
                DeliveryReport(
                    token: sent[place].token, error: code.map { KafkaError(code: $0, isFatal: isFatal) },
                    topicPartition: TopicPartition(topic: "identity.fake.events.v1", partition: 0), offset: 0))
        }

        func poll(timeout: Duration) -> [DeliveryReport] {
            defer { reports = [] }
            return reports
        }

        func close(timeout: Duration) -> [DeliveryReport] { [] }
    }

    private func message(_ number: UInt8) -> OutboxRecord {
        OutboxRecord(.event, Record(topic: "identity.fake.events.v1", key: [1], value: [number]))
    }

    /// A topic refuses the first message, which ends the producer with the second one still in it. What is decided before
    /// there is a new producer belongs behind both.
    @Test func whatComesWhileTheProducerIsMadeAnewStaysBehindWhatItHeld() throws {
        var now = ContinuousClock.now
        var made: [ScriptedProducer] = []
        let hooks = Publisher.Hooks(
            makeProducer: { _ in
                let producer = ScriptedProducer()
                made.append(producer)
                return producer
            }, substitute: { _, _ in nil }, now: { now })
        let publisher = try Publisher(logger: .quiet, hooks: hooks)
        let lane = Lane(partition: TopicPartition(topic: Fixture.topic, partition: 0), incarnation: 0)
        publisher.publish([message(1)], in: lane, through: 0)
        publisher.publish([message(2)], in: lane, through: 1)
        made[0].report(0, KafkaError.Code.topicAuthorizationFailed)
        made[0].report(1, KafkaError.Code.fatal, isFatal: true)
        _ = publisher.poll(timeout: .zero)
        publisher.publish([message(3)], in: lane, through: 2)
        // A probe with a producer of its own finds out that the topic accepts again; then the rest follows.
        for _ in 0..<10 {
            now += .seconds(3)
            for producer in made.dropFirst() {
                for place in producer.sent.indices { producer.report(place) }
            }
            _ = publisher.poll(timeout: .zero)
        }
        #expect(publisher.pending == 0)
        let values = made.dropFirst().flatMap { producer in producer.sent.compactMap(\.value) }
        #expect(values.filter { $0 != [1] } == [[2], [3]])
    }

    /// Two of three messages are too large together with others and have to be tried alone, by a producer for that. The
    /// one between them must not take another way, or it arrives behind the last.
    @Test func whatStandsBetweenMessagesThatAreTriedAloneGoesTheirWay() throws {
        var now = ContinuousClock.now
        var made: [ScriptedProducer] = []
        let hooks = Publisher.Hooks(
            makeProducer: { _ in
                let producer = ScriptedProducer()
                made.append(producer)
                return producer
            }, substitute: { _, _ in nil }, now: { now })
        let publisher = try Publisher(logger: .quiet, hooks: hooks)
        let lane = Lane(partition: TopicPartition(topic: Fixture.topic, partition: 0), incarnation: 0)
        for number in 1...3 { publisher.publish([message(UInt8(number))], in: lane, through: Int64(number)) }
        made[0].report(0, KafkaError.Code.messageTooLarge)
        made[0].report(2, KafkaError.Code.messageTooLarge)
        made[0].report(1, KafkaError.Code.fatal, isFatal: true)
        _ = publisher.poll(timeout: .zero)
        for _ in 0..<10 {
            now += .seconds(3)
            for producer in made.dropFirst() {
                for place in producer.sent.indices { producer.report(place) }
            }
            _ = publisher.poll(timeout: .zero)
        }
        #expect(publisher.pending == 0)
        let ways = made.dropFirst().map { $0.sent.compactMap(\.value) }.filter { !$0.isEmpty }
        #expect(ways == [[[1], [2], [3]]])
    }
}
