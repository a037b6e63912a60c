// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
import Messaging
import Testing

@testable import Runtime

/// Publishing against a real (embedded) broker.
@Suite struct PublisherTests {
    private let broker: TestBroker
    private static let place = TopicPartition(topic: Fixture.topic, partition: 0)

    init() throws { broker = try TestBroker() }

    private func publisher() throws -> Publisher {
        let writer = MessageWriter(service: "fake", topics: Topics(), internalKey: nil)
        let broker = broker
        return try Publisher(logger: TestBroker.quiet, undeliverable: writer.undeliverable) { try broker.producer() }
    }

    private func messages(_ numbers: Range<Int>, topic: String = "identity.fake.events.v1") -> [OutboundMessage] {
        numbers.map {
            OutboundMessage(
                role: .event, topic: topic, key: Array("k".utf8),
                headers: [WireHeader("h", "v"), WireHeader("n", nil)],
                value: Array("\($0)".utf8))
        }
    }

    /// Polls until nothing is pending.
    private func settle(_ publisher: Publisher) -> [[TopicPartition: Int64]] {
        var moves: [[TopicPartition: Int64]] = []
        let deadline = ContinuousClock.now + .seconds(40)
        repeat {
            let moved = publisher.poll(timeout: .milliseconds(50))
            if !moved.isEmpty { moves.append(moved) }
        } while publisher.pending > 0 && ContinuousClock.now < deadline
        return moves
    }

    private func texts(_ records: [KafkaRecord]) -> [String] {
        records.map { String(decoding: $0.value ?? [], as: UTF8.self) }
    }

    @Test func everythingArrivesInOrderAndProgressFollows() throws {
        let publisher = try publisher()
        publisher.publish(messages(0..<50), through: [Self.place: 4])
        publisher.publish(messages(50..<120), through: [Self.place: 9])
        #expect(publisher.pending == 120)
        let moves = settle(publisher)
        #expect(publisher.pending == 0)
        #expect(moves.last == [Self.place: 9])
        let records = try broker.read("identity.fake.events.v1", 120)
        #expect(texts(records) == (0..<120).map(String.init))
        #expect(
            records.first?.headers == [
                KafkaHeader(name: "h", value: Array("v".utf8)), KafkaHeader(name: "n", value: nil),
            ])
        publisher.close(timeout: .seconds(1))
    }

    @Test func anEmptyBatchIsProgressToo() throws {
        let publisher = try publisher()
        publisher.publish([], through: [Self.place: 3])
        #expect(publisher.poll(timeout: .zero) == [Self.place: 3])
        publisher.close(timeout: .seconds(1))
    }

    /// While the broker is away nothing counts as published; an empty batch behind waits for what is in front of it.
    @Test func progressOnlyAfterDelivery() throws {
        let publisher = try publisher()
        publisher.publish(messages(0..<1), through: [:])
        #expect(settle(publisher).isEmpty)
        broker.broker.setBroker(up: false)
        publisher.publish(messages(1..<5), through: [Self.place: 7])
        publisher.publish([], through: [Self.place: 8])
        for _ in 0..<5 { #expect(publisher.poll(timeout: .milliseconds(50)).isEmpty) }
        #expect(publisher.pending == 4)
        broker.broker.setBroker(up: true)
        #expect(settle(publisher).last == [Self.place: 8])
        #expect(texts(try broker.read("identity.fake.events.v1", 5)).suffix(4) == ["1", "2", "3", "4"])
        publisher.close(timeout: .seconds(1))
    }

    @Test func passingErrorsAreTriedAgainInOrder() throws {
        let publisher = try publisher()
        let codes = [KafkaError.Code.notLeader, KafkaError.Code.notEnoughReplicas, KafkaError.Code.requestTimedOut]
        broker.broker.failNext(.produce, with: codes)
        publisher.publish(messages(0..<20), through: [Self.place: 1])
        #expect(settle(publisher).last == [Self.place: 1])
        let found = texts(try broker.read("identity.fake.events.v1", 20))
        var firsts: [String] = []
        for text in found where !firsts.contains(text) { firsts.append(text) }
        #expect(firsts == (0..<20).map(String.init))
        publisher.close(timeout: .seconds(1))
    }

    /// Over the producer's own limit: refused at once, for good.
    @Test func whatCannotBeDeliveredIsReplacedByADeadLetter() throws {
        let publisher = try publisher()
        var batch = messages(0..<3)
        batch[1].value = [UInt8](repeating: 1, count: 4_100_000)
        batch[1].topic = "identity.replies.v1"
        batch[1].role = .reply
        publisher.publish(batch, through: [Self.place: 2])
        #expect(settle(publisher).last == [Self.place: 2])
        #expect(texts(try broker.read("identity.fake.events.v1", 2)) == ["0", "2"])
        publisher.close(timeout: .seconds(1))
    }

    @Test func aMessageThatItsTopicRefusesStandsInTheDeadLetters() throws {
        broker.broker.setTopicError("identity.replies.gone", code: KafkaError.Code.unknownTopicOrPartition)
        let publisher = try publisher()
        let refused = OutboundMessage(
            role: .reply, topic: "identity.replies.gone", key: [1], headers: [WireHeader("h", "v")], value: [2])
        publisher.publish(messages(0..<1) + [refused] + messages(1..<2), through: [Self.place: 2])
        #expect(settle(publisher).last == [Self.place: 2])
        let letter = try #require(try broker.read("identity.fake.dlq.v1", 1).first)
        #expect(letter.key == [1])
        #expect(letter.value == [2])
        #expect(letter.header("h") == Array("v".utf8))
        #expect(letter.header("dlq_reason") == Array("UNDELIVERABLE".utf8))
        #expect(letter.header("dlq_step") == Array("publish".utf8))
        #expect(letter.header("dlq_original_topic") == Array("identity.replies.gone".utf8))
        #expect(texts(try broker.read("identity.fake.events.v1", 2)) == ["0", "1"])
        publisher.close(timeout: .seconds(1))
    }

    @Test func forgottenPartitionsDoNotMove() throws {
        let other = TopicPartition(topic: Fixture.topic, partition: 1)
        let publisher = try publisher()
        publisher.publish(messages(0..<2), through: [Self.place: 2, other: 5])
        publisher.forgetProgress(of: [Self.place])
        #expect(settle(publisher).last == [other: 5])
        publisher.close(timeout: .seconds(1))
    }
}
