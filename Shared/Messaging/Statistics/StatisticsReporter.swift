// SPDX-License-Identifier: Apache-2.0

import Contracts
internal import Metrics

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// Turns librdkafka's statistics documents into gauges. Confined to the thread that polls the client.
final class StatisticsReporter {
    private typealias Labels = [(String, String)]

    private let client: Labels
    private let group: String?
    private let factory: any MetricsFactory
    private var gauges: [String: Gauge] = [:]
    private var lag: [TopicPartition: Gauge] = [:]

    /// The partitions whose lag is reported; the gauges of all others are dropped.
    var assignment: Set<TopicPartition> = [] {
        didSet { dropLag(of: oldValue.subtracting(assignment)) }
    }

    init(
        clientID: String, role: ClientRole, group: String? = nil, factory: any MetricsFactory = MetricsSystem.factory
    ) {
        self.client = [("client", clientID), ("role", "\(role)")]
        self.group = group
        self.factory = factory
    }

    /// Reads one document. A document that cannot be read is skipped: statistics must never stop the service.
    func report(json: UnsafeRawBufferPointer) {
        guard let document = try? JSONDecoder().decode(ClientStatistics.self, from: Data(json)) else { return }
        set(KafkaMetric.replyQueue, client, Double(document.replyQueue))
        set(KafkaMetric.queuedMessages, client, Double(document.queuedMessages))
        for broker in document.brokers.values where broker.nodeid >= 0 && broker.rtt.cnt > 0 {
            for (quantile, value) in [("0.95", broker.rtt.p95), ("0.99", broker.rtt.p99)] {
                let labels = client + [("broker", String(broker.nodeid)), ("quantile", quantile)]
                set(KafkaMetric.brokerRoundTrip, labels, Double(value) / 1_000_000)
            }
        }
        guard let group else { return }
        if let count = document.group?.rebalances {
            set(KafkaMetric.rebalances, client + [("group", group)], Double(count))
        }
        for (topic, content) in document.topics {
            for partition in content.partitions.values {
                report(partition, of: topic, group: group)
            }
        }
    }

    /// Takes every gauge back. The reporter can be used again afterwards.
    func close() {
        assignment = []
        for gauge in gauges.values { gauge.destroy() }
        gauges = [:]
    }

    private func report(_ partition: ClientStatistics.Partition, of topic: String, group: String) {
        let address = TopicPartition(topic: topic, partition: partition.partition)
        guard assignment.contains(address), let value = partition.lag else { return }
        if let gauge = lag[address] {
            gauge.record(value)
        } else {
            let labels = [("group", group), ("topic", topic), ("partition", String(partition.partition))]
            let gauge = Gauge(label: KafkaMetric.consumerLag, dimensions: labels, factory: factory)
            lag[address] = gauge
            gauge.record(value)
        }
    }

    private func set(_ name: String, _ labels: Labels, _ value: Double) {
        let id = name + labels.map { "|\($0.1)" }.joined()
        let gauge = gauges[id] ?? Gauge(label: name, dimensions: labels, factory: factory)
        gauges[id] = gauge
        gauge.record(value)
    }

    private func dropLag(of partitions: Set<TopicPartition>) {
        for partition in partitions {
            lag.removeValue(forKey: partition)?.destroy()
        }
    }
}

/// The part of librdkafka's statistics document that becomes metrics.
struct ClientStatistics: Decodable {
    let replyQueue: Int
    let queuedMessages: Int
    let brokers: [String: Broker]
    let topics: [String: Topic]
    let group: Group?

    enum CodingKeys: String, CodingKey {
        case replyQueue = "replyq"
        case queuedMessages = "msg_cnt"
        case brokers
        case topics
        case group = "cgrp"
    }

    struct Broker: Decodable {
        /// -1 for the addresses of the bootstrap list, which are not brokers yet.
        let nodeid: Int
        let rtt: Window
    }

    /// Microseconds over the last interval.
    struct Window: Decodable {
        let p95: Int
        let p99: Int
        let cnt: Int
    }

    struct Topic: Decodable {
        let partitions: [String: Partition]
    }

    struct Partition: Decodable {
        let partition: Int32
        let committedLag: Int64
        /// Behind the last message that was polled; negative before the first.
        let position: Int64
        let nextFetch: Int64
        let stableEnd: Int64
        let end: Int64

        enum CodingKeys: String, CodingKey {
            case partition
            case committedLag = "consumer_lag"
            case position = "app_offset"
            case nextFetch = "next_offset"
            case stableEnd = "ls_offset"
            case end = "hi_offset"
        }

        /// Messages that were not polled yet; before the first those that were not fetched, and before that those that the
        /// group has not committed, `nil` while that is not known either. Committed offsets are told rarely, so they would
        /// show a lag where there is none.
        var lag: Int64? {
            let end = stableEnd >= 0 ? stableEnd : end
            let next = position >= 0 ? position : nextFetch
            if next >= 0, end >= 0 { return max(0, end - next) }
            return committedLag >= 0 ? committedLag : nil
        }
    }

    struct Group: Decodable {
        let rebalances: Int

        enum CodingKeys: String, CodingKey {
            case rebalances = "rebalance_cnt"
        }
    }
}

/// The names of this library's metrics.
enum KafkaMetric {
    /// Gauge {group, topic, partition}: messages that the group still has before it.
    static let consumerLag = "kafka_consumer_lag"
    /// Gauge {client, role, broker, quantile}: seconds from request to answer over the last interval.
    static let brokerRoundTrip = "kafka_broker_round_trip_seconds"
    /// Gauge {client, role}: produced messages that wait for delivery or for their report to be read.
    static let queuedMessages = "kafka_client_queued_messages"
    /// Gauge {client, role}: events that wait for the owner to poll.
    static let replyQueue = "kafka_client_reply_queue"
    /// Gauge {client, role, group}: rebalances since the consumer started.
    static let rebalances = "kafka_consumer_rebalances"
}
