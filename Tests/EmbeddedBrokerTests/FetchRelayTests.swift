// SPDX-License-Identifier: Apache-2.0

import Contracts
import EmbeddedBroker
import Messaging
import MessagingTestKit
import Testing

/// What stands before librdkafka's test broker.
@Suite(.dedicatedThread, .enabled(if: TestBroker.isEmbedded, "of the embedded broker")) struct FetchRelayTests {
    /// Longer than anybody who waits in a test.
    static let long = ["fetch.wait.max.ms": "200000", "socket.timeout.ms": "300000"]

    private func tail(_ broker: TestBroker, _ topic: String, partitions: Int = 1) throws -> KafkaTail {
        try KafkaTail(
            configuration: broker.configuration(consumer: Self.long), partitions: [broker.topic(topic): partitions],
            from: .end, logger: broker.logs.logger)
    }

    @Test func aFetchThatWaitsIsAnsweredWhenThereIsSomethingNew() throws {
        let broker = try TestBroker(["a": 2, "b": 1])
        defer { broker.close() }
        let reader = try tail(broker, "a", partitions: 2)
        defer { reader.close() }
        let producer = try broker.producer()
        // A client's first fetch may ask for one partition alone, and would wait for that one.
        try producer.deliver((0..<2).map { Record(topic: broker.topic("a"), value: [100], partition: $0) })
        var first = 0
        try wait(until: first == 2) { first += reader.poll(maxRecords: 10, timeout: .milliseconds(50)).count }
        for round: UInt8 in 0..<20 {
            // It waits by now, and what another topic gets is nothing to it.
            if round % 5 == 0 { #expect(reader.poll(maxRecords: 1, timeout: .milliseconds(100)).isEmpty) }
            try producer.deliver([Record(topic: broker.topic("b"), value: [round])])
            try producer.deliver([Record(topic: broker.topic("a"), value: [round], partition: Int32(round % 2))])
            var records: [KafkaRecord] = []
            try wait(until: !records.isEmpty) {
                records += reader.poll(maxRecords: 10, timeout: .milliseconds(50))
            }
            #expect(records.map(\.value) == [[round]])
        }
        producer.close(timeout: .seconds(5))
    }

    @Test func aProducerThatWantsNoAnswerGetsNone() throws {
        let broker = try TestBroker(["a": 1])
        defer { broker.close() }
        let reader = try tail(broker, "a")
        defer { reader.close() }
        let values: [[UInt8]] = (0..<5).map { [$0] }
        try RawProducer.produceUnacknowledged(
            topic: broker.topic("a"), values: values, servers: broker.bootstrapServers
        ) { value in
            var records: [KafkaRecord] = []
            try wait(until: !records.isEmpty) {
                records += reader.poll(maxRecords: 10, timeout: .milliseconds(50))
            }
            #expect(records.map(\.value) == [value])
        }
    }

    @Test func whoWaitsLearnsThatTheBrokerHasGone() throws {
        let broker = try TestBroker(["a": 1])
        defer { broker.close() }
        let reader = try tail(broker, "a")
        defer { reader.close() }
        let producer = try broker.producer()
        #expect(reader.poll(maxRecords: 1, timeout: .milliseconds(100)).isEmpty)
        try broker.faults().setBroker(up: false)
        try broker.faults().setBroker(up: true)
        try producer.deliver([Record(topic: broker.topic("a"), value: [1])])
        var records: [KafkaRecord] = []
        try wait(until: !records.isEmpty) { records += reader.poll(maxRecords: 10, timeout: .milliseconds(50)) }
        #expect(records.count == 1)
        producer.close(timeout: .seconds(5))
    }
}
