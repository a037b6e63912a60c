// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
import Foundation
import Logging
import Messaging
import Testing

@testable import Runtime

/// An embedded broker with the fake service's topics, and a way to read them.
final class TestBroker {
    let broker: EmbeddedBroker
    let configuration: KafkaConfiguration
    static let topics = [
        "identity.fake.commands.v1", "identity.fake.events.v1", "identity.replies.v1", "identity.fake.dlq.v1",
    ]
    static let quiet = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })

    init() throws {
        broker = try EmbeddedBroker(
            topics: Self.topics.map { TopicSpec(name: $0, partitions: 1) }, logger: Self.quiet)
        var environment = KafkaConfiguration.embeddedEnvironment
        environment["KAFKA_BOOTSTRAP_SERVERS"] = broker.bootstrapServers
        environment["KAFKA_PRODUCER_TOPIC_METADATA_PROPAGATION_MAX_MS"] = "500"
        configuration = try KafkaConfiguration(environment: environment)
    }

    deinit { broker.close() }

    func producer() throws -> KafkaProducer { try KafkaProducer(configuration: configuration, logger: Self.quiet) }

    /// Sends records to the commands topic, in order.
    func send(_ records: [KafkaRecord]) throws {
        let producer = try producer()
        for (token, record) in records.enumerated() {
            try producer.send(
                ProducerRecord(
                    topic: Fixture.topic, key: record.key, value: record.value, headers: record.headers, partition: 0),
                token: token)
        }
        let reports = producer.flush(timeout: .seconds(20))
        producer.close(timeout: .seconds(1))
        try #require(reports.count == records.count)
        try #require(reports.allSatisfy { $0.error == nil })
    }

    /// Reads a topic from its beginning until it has `count` records, at most for a long while.
    func read(_ topic: String, _ count: Int) throws -> [KafkaRecord] {
        let tail = try KafkaTail(
            configuration: configuration, partitions: [topic: 1], from: .beginning, logger: Self.quiet)
        defer { tail.close() }
        var records: [KafkaRecord] = []
        let deadline = ContinuousClock.now + .seconds(30)
        while records.count < count, ContinuousClock.now < deadline {
            records += tail.poll(maxRecords: 100, timeout: .milliseconds(100))
        }
        return records
    }
}
