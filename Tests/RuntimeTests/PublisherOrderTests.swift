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
        var hasRoom = true

        func send(_ record: Record, token: Int) throws(KafkaError) {
            guard hasRoom else { throw KafkaError(code: KafkaError.Code.queueFull) }
            sent.append((token, record.value))
        }

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

        func hasSent(to topic: String) -> Bool { false }
    }

    /// A publisher whose producers are scripted, with a clock of its own.
    private final class Publishing {
        let clock: Clock
        private let producers: Producers
        let publisher: Publisher
        private let lane = Lane(partition: TopicPartition(topic: Fixture.topic, partition: 0), incarnation: 0)
        private var count: UInt8 = 0

        final class Clock {
            var now = ContinuousClock.now
            var paused = Duration.zero
        }
        private final class Producers { var made: [ScriptedProducer] = [] }

        init() throws {
            let (clock, producers) = (Clock(), Producers())
            let hooks = Publisher.Hooks(
                makeProducer: { _ in
                    producers.made.append(ScriptedProducer())
                    return producers.made[producers.made.count - 1]
                }, substitute: { _, _ in nil }, now: { clock.now }, pause: { clock.paused += $0 })
            publisher = try Publisher(logger: .quiet, hooks: hooks)
            (self.clock, self.producers) = (clock, producers)
        }

        var first: ScriptedProducer { producers.made[0] }

        /// Publishes the next message: 1, 2, 3.
        func publish() {
            count += 1
            let record = Record(topic: "identity.fake.events.v1", key: [1], value: [count])
            publisher.publish([OutboxRecord(.event, record)], in: lane, through: Int64(count) - 1)
        }

        /// Everything that later producers are given is delivered, until nothing is left.
        /// - Returns: what each of them was given, if anything.
        func drain() -> [[UInt8]] {
            for _ in 0..<10 {
                clock.now += .seconds(3)
                for producer in producers.made.dropFirst() {
                    for place in producer.sent.indices { producer.report(place) }
                }
                _ = publisher.poll(timeout: .zero)
            }
            #expect(publisher.pending == 0)
            return producers.made.dropFirst().map { $0.sent.compactMap { $0.value?.first } }.filter { !$0.isEmpty }
        }
    }

    /// A topic refuses the first message, which ends the producer with the second one still in it. What is decided before
    /// there is a new producer belongs behind both.
    @Test func whatComesWhileTheProducerIsMadeAnewStaysBehindWhatItHeld() throws {
        let publishing = try Publishing()
        publishing.publish()
        publishing.publish()
        publishing.first.report(0, KafkaError.Code.topicAuthorizationFailed)
        publishing.first.report(1, KafkaError.Code.fatal, isFatal: true)
        _ = publishing.publisher.poll(timeout: .zero)
        publishing.publish()
        // A probe with a producer of its own finds out that the topic accepts again; then the rest follows.
        #expect(publishing.drain().joined().filter { $0 != 1 } == [2, 3])
    }

    /// The producer has room again, and has not been given yet what it had no room for: what is new waits behind that.
    @Test func whatIsNewStaysBehindWhatThereWasNoRoomFor() throws {
        let publishing = try Publishing()
        publishing.first.hasRoom = false
        publishing.publish()
        publishing.first.hasRoom = true
        publishing.publish()
        _ = publishing.publisher.poll(timeout: .zero)
        #expect(publishing.first.sent.compactMap { $0.value?.first } == [1, 2])
    }

    /// The topic refuses what came before: what there was no room for waits with it, and does not go ahead when there is.
    @Test func whatThereWasNoRoomForStaysBehindWhatItsTopicRefused() throws {
        let publishing = try Publishing()
        publishing.publish()
        publishing.first.hasRoom = false
        publishing.publish()
        publishing.first.hasRoom = true
        publishing.first.report(0, KafkaError.Code.unknownTopic)
        _ = publishing.publisher.poll(timeout: .zero)
        publishing.clock.now += .seconds(3)
        _ = publishing.publisher.poll(timeout: .zero)
        for place in publishing.first.sent.indices.dropFirst() { publishing.first.report(place) }
        _ = publishing.publisher.poll(timeout: .zero)
        #expect(publishing.first.sent.compactMap { $0.value?.first } == [1, 1, 2])
    }

    /// The client gave a message back because it knew of no such topic, and knows the topic again. What is decided before
    /// anybody has looked at the report stays behind that message.
    @Test func whatIsNewStaysBehindWhatTheClientGaveBackBefore() throws {
        let publishing = try Publishing()
        publishing.publish()
        publishing.first.report(0, KafkaError.Code.unknownTopic)
        publishing.publish()
        publishing.clock.now += .seconds(3)
        _ = publishing.publisher.poll(timeout: .zero)
        for place in publishing.first.sent.indices.dropFirst() { publishing.first.report(place) }
        _ = publishing.publisher.poll(timeout: .zero)
        #expect(publishing.first.sent.compactMap { $0.value?.first } == [1, 1, 2])
    }

    /// Nobody who polls for deliveries goes round without a pause while there is no producer.
    @Test func aPollWaitsAlsoWithoutAProducer() throws {
        let publishing = try Publishing()
        publishing.publish()
        publishing.first.report(0, KafkaError.Code.fatal, isFatal: true)
        _ = publishing.publisher.poll(timeout: .zero)
        #expect(publishing.publisher.producer == nil && publishing.clock.paused == .zero)
        _ = publishing.publisher.poll(timeout: .milliseconds(20))
        #expect(publishing.clock.paused == .milliseconds(20))
    }

    /// Two of three messages are too large together with others and have to be tried alone, by a producer for that. The
    /// one between them must not take another way, or it arrives behind the last.
    @Test func whatStandsBetweenMessagesThatAreTriedAloneGoesTheirWay() throws {
        let publishing = try Publishing()
        for _ in 1...3 { publishing.publish() }
        publishing.first.report(0, KafkaError.Code.messageTooLarge)
        publishing.first.report(2, KafkaError.Code.messageTooLarge)
        publishing.first.report(1, KafkaError.Code.fatal, isFatal: true)
        _ = publishing.publisher.poll(timeout: .zero)
        #expect(publishing.drain() == [[1, 2, 3]])
    }
}
