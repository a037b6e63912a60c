// SPDX-License-Identifier: Apache-2.0

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
        set(MetricName.replyQueue, client, Double(document.replyQueue))
        set(MetricName.queuedMessages, client, Double(document.queuedMessages))
        for broker in document.brokers.values where broker.nodeid >= 0 && broker.rtt.cnt > 0 {
            for (quantile, value) in [("0.95", broker.rtt.p95), ("0.99", broker.rtt.p99)] {
                let labels = client + [("broker", String(broker.nodeid)), ("quantile", quantile)]
                set(MetricName.brokerRoundTrip, labels, Double(value) / 1_000_000)
            }
        }
        guard let group else { return }
        if let count = document.group?.rebalances { set(MetricName.rebalances, [("group", group)], Double(count)) }
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
            let gauge = Gauge(label: MetricName.consumerLag, dimensions: labels, factory: factory)
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
