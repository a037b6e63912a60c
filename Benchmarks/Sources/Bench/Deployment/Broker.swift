// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Logging
import Messaging

/// The broker that a benchmark uses: the one that `KAFKA_BOOTSTRAP_SERVERS` names, under a prefix of its own, or an
/// embedded one in this process.
///
/// The embedded one keeps about 5 MB per partition and drops the oldest messages silently: whoever preloads counts
/// what is there afterwards (``Preload``).
final class Broker {
    /// What clients of this process start from.
    let kafka: KafkaConfiguration
    let topics: Topics
    /// What the service has to be told.
    let environment: [String: String]
    let isEmbedded: Bool
    let partitions: Int
    private let embedded: EmbeddedBroker?

    /// All there are: one reads what another publishes.
    private static let services = ["link", "user", "sync", "verification", "gateway"]
    /// Where the raw produce limit writes to.
    static let limitTopics = ["bench.limit.replies", "bench.limit.events"]

    init(partitions: Int) throws {
        self.partitions = partitions
        var environment = ProcessInfo.processInfo.environment.filter { $0.key.hasPrefix("KAFKA_") && !$0.value.isEmpty }
        isEmbedded = environment["KAFKA_BOOTSTRAP_SERVERS"] == nil
        topics = Topics(prefix: isEmbedded ? "" : "bench-\(UInt32.random(in: 0...(.max))).")
        let names = Self.services.flatMap { [topics] service in
            [
                topics.commands(service), topics.events(service), topics.deadLetters(service),
                topics.replies(to: service),
            ]
        }
        let specs = ([topics.replies] + names + Self.limitTopics.map { [topics] in topics.prefix + $0 })
            .map { TopicSpec(name: $0, partitions: partitions) }
        if isEmbedded {
            let broker = try EmbeddedBroker(topics: specs, logger: .quiet)
            embedded = broker
            environment["KAFKA_BOOTSTRAP_SERVERS"] = broker.bootstrapServers
            environment.merge(KafkaConfiguration.embeddedEnvironment) { given, _ in given }
            kafka = try KafkaConfiguration(environment: environment)
        } else {
            embedded = nil
            kafka = try KafkaConfiguration(environment: environment)
            let admin = try KafkaAdmin(configuration: kafka, logger: .quiet)
            defer { admin.close(timeout: .seconds(2)) }
            try admin.ensureTopics(specs, timeout: .seconds(30))
        }
        environment["TOPIC_PREFIX"] = topics.prefix
        environment["TOPIC_PARTITIONS"] = String(partitions)
        self.environment = environment
    }

    var name: String {
        isEmbedded ? "embedded broker, in the benchmark's process" : "Kafka at \(kafka.bootstrapServers)"
    }

    /// A reader of whole topics of this broker.
    func tail(_ names: [String], from start: KafkaTail.Start, fetchWait: Int) throws -> KafkaTail {
        var kafka = kafka
        kafka.consumer["fetch.wait.max.ms"] = String(fetchWait)
        kafka.consumer["fetch.error.backoff.ms"] = "1"
        return try KafkaTail(
            configuration: kafka, partitions: Dictionary(uniqueKeysWithValues: names.map { ($0, partitions) }),
            from: start, logger: .quiet)
    }

    func close() { embedded?.close() }
}

extension Logger {
    /// Only what spoils a measurement.
    static var quiet: Logger {
        var logger = Logger(label: "identitybus.bench")
        logger.logLevel = .error
        return logger
    }
}
