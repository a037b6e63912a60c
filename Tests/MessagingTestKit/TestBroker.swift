// SPDX-License-Identifier: Apache-2.0

package import Contracts
package import EmbeddedBroker
import Glibc
import Logging
package import Messaging

/// A broker for one test: the one of `KAFKA_BOOTSTRAP_SERVERS` if that is set, or else an embedded one of its own.
/// Topics and groups have names that no other run uses.
package final class TestBroker {
    package static let external: String? = getenv("KAFKA_BOOTSTRAP_SERVERS").map { String(cString: $0) }
    package static var isEmbedded: Bool { external == nil }

    package let bootstrapServers: String
    package let logs = LogRecorder()
    private let embedded: EmbeddedBroker?
    private let prefix = "t\(UInt64.random(in: 0 ..< .max))."

    /// - Parameter topics: short names and their numbers of partitions.
    package init(_ topics: KeyValuePairs<String, Int>) throws {
        let prefix = prefix
        let specs = topics.map { TopicSpec(name: prefix + $0.key, partitions: $0.value) }
        if let external = Self.external {
            embedded = nil
            bootstrapServers = external
            let admin = try KafkaAdmin(configuration: configuration(), logger: logs.logger)
            defer { admin.close(timeout: .seconds(5)) }
            try admin.ensureTopics(specs, timeout: .seconds(30))
        } else {
            let broker = try EmbeddedBroker(topics: specs, logger: logs.logger)
            embedded = broker
            bootstrapServers = broker.bootstrapServers
        }
    }

    /// The embedded broker, for tests that need its faults.
    package func faults() throws -> EmbeddedBroker {
        guard let embedded else { throw Unavailable() }
        return embedded
    }

    package func topic(_ name: String) -> String { prefix + name }

    package func partition(_ name: String, _ number: Int32) -> TopicPartition {
        TopicPartition(topic: topic(name), partition: number)
    }

    package func configuration(consumer: [String: String] = [:], producer: [String: String] = [:]) -> KafkaConfiguration
    {
        let quick = [
            "session.timeout.ms": Self.isEmbedded ? "3500" : "6000",
            "heartbeat.interval.ms": "200",
            "fetch.wait.max.ms": "100",
        ]
        // The embedded broker appends what comes behind a refused request.
        let inOrder = Self.isEmbedded ? ["max.in.flight.requests.per.connection": "1"] : [:]
        return KafkaConfiguration(
            bootstrapServers: bootstrapServers, clientID: "messaging-tests",
            consumer: quick.merging(consumer) { $1 }, producer: inOrder.merging(producer) { $1 })
    }

    /// For the only member that its group ever has: it is not thrown out for silence, however busy the machine is. The
    /// embedded broker lets whoever joins after another one wait for nearly as long.
    package static let steady = ["session.timeout.ms": "60000"]

    /// Where a partition begins and ends, asked by a client of its own.
    package func bounds(of partition: TopicPartition) throws -> (low: Int64, high: Int64)? {
        let admin = try KafkaAdmin(configuration: configuration(), logger: logs.logger)
        defer { admin.close(timeout: .seconds(5)) }
        return try admin.bounds(of: [partition], timeout: .seconds(20))[partition]
    }

    package func producer(
        _ settings: [String: String] = [:], maximumBlock: Duration = .seconds(30), wakeUp: WakeUp? = nil
    ) throws -> KafkaProducer {
        try KafkaProducer(
            configuration: configuration(producer: settings), logger: logs.logger, maximumBlock: maximumBlock,
            wakeUp: wakeUp)
    }

    package func consumer(
        _ topics: [String], handler: any RebalanceHandler, group: String = "group", settings: [String: String] = [:],
        reportsEnds: Bool = false, wakeUp: WakeUp? = nil
    ) throws -> KafkaConsumer {
        var configuration = configuration(consumer: settings)
        configuration.reportsEnds = reportsEnds
        return try KafkaConsumer(
            configuration: configuration, groupID: prefix + group,
            topics: topics.map(topic), handler: handler, wakeUp: wakeUp, logger: logs.logger)
    }

    /// How many warnings contain these words, in their text or in a value.
    package func warnings(_ words: String) -> Int {
        logs.lines.count { line in
            line.level >= .warning
                && (line.text.contains(words) || line.metadata.values.contains { "\($0)".contains(words) })
        }
    }

    package func close() { embedded?.close() }

    package struct Unavailable: Error {
        package init() {}
    }
}
