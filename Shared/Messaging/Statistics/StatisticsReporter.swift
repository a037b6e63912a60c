// SPDX-License-Identifier: Apache-2.0

internal import Contracts
internal import Metrics

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// Turns librdkafka's statistics documents into metrics, and into what they say of the group. Confined to the thread that
/// polls the client.
final class StatisticsReporter {
    private typealias Labels = [(String, String)]

    private let client: Labels
    private let group: String?
    private let factory: any MetricsFactory
    private let now: () -> ContinuousClock.Instant
    private var gauges: [String: Gauge] = [:]
    private var rebalances: Counter?
    private var countedRebalances = 0

    /// Since when the group is in the midst of a rebalance, and in which step; `nil` while it is not.
    private(set) var rebalance: Rebalance?

    init(
        clientID: String, role: ClientRole, group: String? = nil, factory: any MetricsFactory = MetricsSystem.factory,
        now: @escaping () -> ContinuousClock.Instant = { .now }
    ) {
        self.client = [("client", clientID), ("role", "\(role)")]
        self.group = group
        self.factory = factory
        self.now = now
    }

    /// Reads one document. A document that cannot be read is skipped: statistics must never stop the service.
    func report(json: UnsafeRawBufferPointer) {
        guard let document = try? JSONDecoder().decode(ClientStatistics.self, from: Data(json)) else { return }
        set(KafkaMetric.replyQueue, client, Double(document.replyQueue))
        set(KafkaMetric.queuedMessages, client, Double(document.queuedMessages))
        for broker in document.brokers.values where broker.nodeid >= 0 {
            for (percentile, value) in [("95", broker.rtt.p95), ("99", broker.rtt.p99)] {
                let labels = client + [("broker", String(broker.nodeid)), ("percentile", percentile)]
                // Who answered nothing in the last interval took no time that could be told.
                let seconds = broker.rtt.cnt > 0 ? Double(value) / 1_000_000 : nil
                set(KafkaMetric.brokerRoundTrip, labels, seconds)
            }
        }
        if let group, let state = document.group { report(state, of: group) }
    }

    /// Takes every gauge back. The reporter can be used again afterwards.
    func close() {
        for gauge in gauges.values { gauge.destroy() }
        gauges = [:]
        rebalance = nil
    }

    /// This member has its share; the next document would tell seconds later.
    func rebalanceIsOver() { rebalance = nil }

    private func report(_ state: ClientStatistics.Group, of group: String) {
        let labels = client + [("group", group)]
        let counter = rebalances ?? Counter(label: KafkaMetric.rebalances, dimensions: labels, factory: factory)
        rebalances = counter
        if state.rebalances > countedRebalances { counter.increment(by: state.rebalances - countedRebalances) }
        countedRebalances = state.rebalances
        // It is `steady` after it, and `init` while there is no coordinator to begin one with.
        rebalance =
            state.joinState.hasPrefix("wait-")
            ? Rebalance(step: state.joinState, since: rebalance?.since ?? now()) : nil
        let lasts = rebalance.map { $0.since.duration(to: now()).inSeconds } ?? 0
        set(KafkaMetric.rebalance, labels, lasts)
    }

    /// - Parameter value: `nil` takes the gauge back.
    private func set(_ name: String, _ labels: Labels, _ value: Double?) {
        let id = name + labels.map { "|\($0.1)" }.joined()
        guard let value else {
            gauges.removeValue(forKey: id)?.destroy()
            return
        }
        let gauge = gauges[id] ?? Gauge(label: name, dimensions: labels, factory: factory)
        gauges[id] = gauge
        gauge.record(value)
    }
}

/// A rebalance of a consumer group, as one member sees it.
public struct Rebalance: Sendable, Hashable {
    /// librdkafka's name of the step that the member is in, such as `wait-join`: it has said that it is there, and others
    /// have not.
    public let step: String
    public let since: ContinuousClock.Instant

    /// What the member does in that step, in words for people; the step's name where it is a new one.
    public var words: String {
        switch step {
        case "wait-join": "waits until the others have joined"
        case "wait-metadata": "waits for the topics' metadata"
        case "wait-sync": "waits for its share"
        case let step where step.contains("unassign"): "gives partitions up"
        default: "is in the step \(step)"
        }
    }

    public init(step: String, since: ContinuousClock.Instant) {
        self.step = step
        self.since = since
    }
}

/// The part of librdkafka's statistics document that becomes metrics.
struct ClientStatistics: Decodable {
    let replyQueue: Int
    let queuedMessages: Int
    let brokers: [String: Broker]
    let group: Group?

    enum CodingKeys: String, CodingKey {
        case replyQueue = "replyq"
        case queuedMessages = "msg_cnt"
        case brokers
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

    struct Group: Decodable {
        let rebalances: Int
        let joinState: String

        enum CodingKeys: String, CodingKey {
            case rebalances = "rebalance_cnt"
            case joinState = "join_state"
        }
    }
}

/// The names of this library's metrics.
enum KafkaMetric {
    /// Gauge {client, role, broker, percentile}: seconds from request to answer over the last interval.
    static let brokerRoundTrip = "kafka_broker_round_trip_seconds"
    /// Gauge {client, role}: produced messages that wait for delivery or for their report to be read.
    static let queuedMessages = "kafka_client_queued_messages"
    /// Gauge {client, role}: events that wait for the owner to poll.
    static let replyQueue = "kafka_client_reply_queue"
    /// Counter {client, role, group}.
    static let rebalances = "kafka_consumer_rebalances"
    /// Gauge {client, role, group}: how long the rebalance lasts that the group is in; 0 for none.
    static let rebalance = "kafka_consumer_rebalance_seconds"
}
