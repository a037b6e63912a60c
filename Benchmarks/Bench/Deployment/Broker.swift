// SPDX-License-Identifier: Apache-2.0

import Contracts
import EmbeddedBroker
import Foundation
import Logging
import Messaging
import Runtime

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
    /// The topics that were made here.
    private let made: [String]

    /// Where the raw produce limit writes to.
    static let limitTopics = ["bench.limit.replies", "bench.limit.events"]

    init(partitions: Int) throws {
        self.partitions = partitions
        var environment = ProcessInfo.processInfo.environment.filter { $0.key.hasPrefix("KAFKA_") && !$0.value.isEmpty }
        isEmbedded = environment["KAFKA_BOOTSTRAP_SERVERS"] == nil
        topics = Topics(prefix: isEmbedded ? "" : "bench-\(UInt32.random(in: 0...(.max))).")
        environment["TOPIC_PREFIX"] = topics.prefix
        environment["TOPIC_PARTITIONS"] = String(partitions)
        let specs = try Self.specs(environment, topics)
        made = specs.map(\.name)
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
            try admin.ensureTopics(specs, timeout: .seconds(60))
        }
        self.environment = environment
        if !isEmbedded { try waitForLeaders(made) }
    }

    /// All topics of all services, as these make them: one reads what another publishes.
    private static func specs(
        _ environment: [String: String], _ topics: Topics
    ) throws -> [TopicSpec] {
        var environment = environment
        environment["IDENTITYBUS_INTERNAL_KEY"] = Stage.internalSecret
        if environment["KAFKA_BOOTSTRAP_SERVERS"] == nil { environment["KAFKA_BOOTSTRAP_SERVERS"] = "127.0.0.1:1" }
        let all = ["link", "user", "sync", "verification", "gateway"]
        var specs: [String: TopicSpec] = [:]
        for service in all {
            let plan = try ServiceConfiguration(environment: environment, service: service).topicPlan
            for spec in plan.specs(for: ServiceTraffic(service, reading: [.replies(from: [])])) {
                specs[spec.name] = spec
            }
            for name in limitTopics.map({ topics.prefix + $0 }) {
                specs[name] = TopicSpec(name: name, partitions: plan.partitions)
            }
        }
        return specs.values.sorted { $0.name < $1.name }
    }

    /// A topic that was just made is not led at once.
    private func waitForLeaders(_ names: [String]) throws {
        let deadline = ContinuousClock.now + .seconds(120)
        while true {
            do {
                return try tail(names, from: .end).close()
            } catch  where ContinuousClock.now < deadline {
                usleep(500_000)
            }
        }
    }

    var name: String {
        isEmbedded ? "embedded, in the benchmark's process" : "Kafka"
    }

    /// A reader of whole topics of this broker.
    func tail(_ names: [String], from start: KafkaTail.Start) throws -> KafkaTail {
        var kafka = kafka
        kafka.consumer["fetch.error.backoff.ms"] = "1"
        return try KafkaTail(
            configuration: kafka, partitions: Dictionary(uniqueKeysWithValues: names.map { ($0, partitions) }),
            from: start, logger: .quiet)
    }

    /// Hundreds of partitions each, and a broker has files and memory for only so many. What is not deleted stays, and
    /// does no harm to what was measured.
    func close() {
        if let embedded { return embedded.close() }
        guard let admin = try? KafkaAdmin(configuration: kafka, logger: .quiet) else { return }
        defer { admin.close(timeout: .seconds(2)) }
        try? admin.deleteTopics(made, timeout: .seconds(30))
    }
}

extension Logger {
    /// Only what spoils a measurement.
    static var quiet: Logger {
        var logger = Logger(label: "identitybus.bench")
        logger.logLevel = .error
        return logger
    }
}
