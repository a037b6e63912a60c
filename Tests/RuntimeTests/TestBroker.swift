// SPDX-License-Identifier: Apache-2.0

import Contracts
import EmbeddedBroker
import Foundation
import Logging
import Messaging
import TestKit
import Testing

@testable import Runtime

/// An embedded broker with the fake service's topics, and a way to read them.
final class TestBroker {
    let broker: EmbeddedBroker
    let configuration: KafkaConfiguration
    private let environment: [String: String]
    static let topics = [
        "identity.fake.commands.v1", "identity.fake.events.v1", "identity.replies.v1", "identity.fake.dlq.v1",
    ]

    init(partitions: Int = 1) throws {
        broker = try EmbeddedBroker(
            topics: Self.topics.map { TopicSpec(name: $0, partitions: partitions) }
                + ["identity.fake.dlq-actions.v1", "identity.status.v1"].map { TopicSpec(name: $0, partitions: 1) },
            logger: .quiet)
        var environment = KafkaConfiguration.embeddedEnvironment
        environment["KAFKA_BOOTSTRAP_SERVERS"] = broker.bootstrapServers
        environment["KAFKA_PRODUCER_TOPIC_METADATA_PROPAGATION_MAX_MS"] = "500"
        environment["KAFKA_PRODUCER_TOPIC_METADATA_REFRESH_INTERVAL_MS"] = "200"
        self.environment = environment
        configuration = try KafkaConfiguration(environment: environment)
    }

    deinit { broker.close() }

    func producer(_ batching: KafkaProducer.Batching = .shared) throws -> KafkaProducer {
        try KafkaProducer(configuration: configuration, logger: .quiet, batching: batching)
    }

    /// One that has room for so many messages, and does not wait for more.
    func producer(_ batching: KafkaProducer.Batching, room: Int) throws -> KafkaProducer {
        let more = ["KAFKA_PRODUCER_QUEUE_BUFFERING_MAX_MESSAGES": String(room)]
        return try KafkaProducer(
            configuration: KafkaConfiguration(environment: environment.merging(more) { $1 }), logger: .quiet,
            maximumBlock: .zero, batching: batching)
    }

    /// Sends records to the commands topic, in order.
    func send(_ records: [KafkaRecord]) throws {
        let producer = try producer()
        for (token, record) in records.enumerated() {
            try producer.send(
                Record(
                    topic: Fixture.topic, key: record.key, value: record.value, headers: record.headers, partition: 0),
                token: token)
        }
        let reports = producer.flush(timeout: .seconds(180))
        producer.close(timeout: .seconds(1))
        try #require(reports.count == records.count)
        try #require(reports.allSatisfy { $0.error == nil })
    }

    func tail(_ topic: String, _ partitions: Int) throws -> KafkaTail {
        try KafkaTail(
            configuration: configuration, partitions: [topic: partitions], from: .beginning, logger: .quiet)
    }

    /// Reads a topic from its beginning until it has so many different records, at most for a long while.
    func readAll(
        _ topic: String, _ partitions: Int, distinct count: Int, _ name: (KafkaRecord) -> String
    ) throws -> [KafkaRecord] {
        let tail = try tail(topic, partitions)
        defer { tail.close() }
        var records: [KafkaRecord] = []
        var names: Set<String> = []
        let deadline = ContinuousClock.now + .seconds(300)
        // Goes on for a moment, to see whether there are more than there should be.
        var silence = 0
        while ContinuousClock.now < deadline, names.count < count || silence < 5 {
            let more = tail.poll(maxRecords: 1000, timeout: .milliseconds(100))
            silence = more.isEmpty ? silence + 1 : 0
            records += more
            names.formUnion(more.map(name))
        }
        return records
    }

    /// Reads a topic from its beginning until it has `count` records, at most for a long while.
    func read(_ topic: String, _ count: Int, within limit: Duration = .seconds(180)) throws -> [KafkaRecord] {
        let tail = try KafkaTail(
            configuration: configuration, partitions: [topic: 1], from: .beginning, logger: .quiet)
        defer { tail.close() }
        var records: [KafkaRecord] = []
        let deadline = ContinuousClock.now + limit
        while records.count < count, ContinuousClock.now < deadline {
            records += tail.poll(maxRecords: 100, timeout: .milliseconds(100))
        }
        return records
    }
}
