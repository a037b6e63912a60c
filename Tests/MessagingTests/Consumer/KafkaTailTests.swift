// SPDX-License-Identifier: Apache-2.0

import Contracts
import EmbeddedBroker
import MessagingTestKit
import Testing

@testable import Messaging

@Suite(.dedicatedThread) struct KafkaTailTests {
    /// Of partitions that nobody asked for, nothing is fetched.
    @Test func onlyThePartitionsThatWereAskedForAreRead() throws {
        let broker = try TestBroker(["out": 4])
        defer { broker.close() }
        let topic = broker.topic("out")
        let producer = try broker.producer()
        func put(_ value: UInt8) throws {
            try producer.deliver((0..<4).map { Record(topic: topic, value: [value], partition: $0) })
        }
        try put(1)
        let asked = [broker.partition("out", 1), broker.partition("out", 3)]
        let tail = try KafkaTail(
            configuration: broker.configuration(), reading: asked, from: .end, logger: broker.logs.logger)
        try put(2)
        try put(3)
        var records: [KafkaRecord] = []
        // The last ones of both prove that all there is was read.
        try wait(until: records.filter { $0.value == [3] }.count >= 2) {
            records += tail.poll(maxRecords: 100, timeout: .milliseconds(100))
        }
        #expect(Set(records.map(\.topicPartition)) == Set(asked))
        #expect(records.count == 4 && records.allSatisfy { $0.value != [1] })
        tail.close()
        producer.close(timeout: .seconds(5))
    }

    /// A broker that knows no times gives everything; what is wanted is there in any case.
    @Test func whatIsNotOlderThanATimeIsRead() throws {
        let broker = try TestBroker(["out": 2])
        defer { broker.close() }
        let topic = broker.topic("out")
        let producer = try broker.producer()
        try producer.deliver([Record(topic: topic, value: [1], partition: 0, timestampMs: 1000)])
        try producer.deliver([Record(topic: topic, value: [2], partition: 0, timestampMs: 5000)])
        let tail = try KafkaTail(
            configuration: broker.configuration(), partitions: [topic: 2], from: .time(Timestamp(milliseconds: 5000)),
            logger: broker.logs.logger)
        #expect(tail.starts.count == 2 && tail.starts.values.allSatisfy { $0 <= 1 })
        var records: [KafkaRecord] = []
        try wait(until: records.contains { $0.value == [2] }) {
            records += tail.poll(maxRecords: 100, timeout: .milliseconds(100))
        }
        tail.close()
        producer.close(timeout: .seconds(5))
    }

    /// Nothing comes, so only the tail can say why.
    @Test(.enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"))
    func aTopicThatMayNotBeReadIsNamedUntilItMay() throws {
        let broker = try TestBroker(["out": 1])
        defer { broker.close() }
        let topic = broker.topic("out")
        try broker.faults().deny(.read, on: topic)
        let tail = try KafkaTail(
            configuration: broker.configuration(), partitions: [topic: 1], from: .end, logger: broker.logs.logger)
        defer { tail.close() }
        func poll() { _ = tail.poll(maxRecords: 100, timeout: .milliseconds(100)) }
        try wait(until: tail.unreadable[topic]?.code == KafkaError.Code.topicAuthorizationFailed) { poll() }
        // It lasts.
        let until = ContinuousClock.now + .seconds(12)
        while ContinuousClock.now < until {
            poll()
            #expect(tail.unreadable[topic] != nil)
        }
        try broker.faults().allow(.read, on: topic)
        try wait(until: tail.unreadable.isEmpty) { poll() }
    }
}
