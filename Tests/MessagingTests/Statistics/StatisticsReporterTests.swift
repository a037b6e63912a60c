// SPDX-License-Identifier: Apache-2.0

import Metrics
import MetricsTestKit
import Testing

@testable import Messaging

@Suite struct StatisticsReporterTests {
    private let metrics = TestMetrics()

    private func report(
        _ reporter: StatisticsReporter, joinState: String = "steady", rebalances: Int = 2, answers: Int = 5
    ) {
        let text = """
            {"name": "x", "replyq": 3, "msg_cnt": 4,
             "brokers": {
                "h:1/bootstrap": {"nodeid": -1, "rtt": {"min": 0, "p95": 1, "p99": 2, "cnt": 5}},
                "h:1/1": {"nodeid": 1, "rtt": {"min": 0, "p95": 1500, "p99": 2500, "cnt": \(answers)}}},
             "topics": {},
             "cgrp": {"state": "up", "join_state": "\(joinState)", "rebalance_cnt": \(rebalances)}}
            """
        Array(text.utf8).withUnsafeBytes { reporter.report(json: $0) }
    }

    private let client = [("client", "c"), ("role", "consumer")]

    private func reporter(now: @escaping () -> ContinuousClock.Instant = { .now }) -> StatisticsReporter {
        StatisticsReporter(clientID: "c", role: .consumer, group: "g", factory: metrics, now: now)
    }

    @Test func theDocumentBecomesMetrics() throws {
        let reporter = reporter()
        report(reporter)
        #expect(try metrics.expectGauge("kafka_client_reply_queue", client).lastValue == 3)
        #expect(try metrics.expectGauge("kafka_client_queued_messages", client).lastValue == 4)
        let broker = client + [("broker", "1"), ("percentile", "99")]
        #expect(try metrics.expectGauge("kafka_broker_round_trip_seconds", broker).lastValue == 0.0025)
        #expect(metrics.recorders(label: "kafka_broker_round_trip_seconds").count == 2)
        report(reporter, answers: 0)
        #expect(metrics.recorders(label: "kafka_broker_round_trip_seconds").isEmpty)
        report(reporter)
        #expect(metrics.recorders(label: "kafka_broker_round_trip_seconds").count == 2)
        reporter.close()
        #expect(metrics.recorders.isEmpty)
    }

    @Test func rebalancesAreCountedOnce() throws {
        let reporter = reporter()
        for count in [2, 2, 5] { report(reporter, rebalances: count) }
        let counter = try metrics.expectCounter("kafka_consumer_rebalances", client + [("group", "g")])
        #expect(counter.totalValue == 5)
    }

    /// Whoever waits for others knows since when.
    @Test func aRebalanceLastsUntilTheGroupIsSteady() throws {
        var now = ContinuousClock.now
        let reporter = reporter { now }
        let seconds = {
            try metrics.expectGauge("kafka_consumer_rebalance_seconds", client + [("group", "g")]).lastValue
        }
        report(reporter)
        #expect(reporter.rebalance == nil)
        let began = now
        report(reporter, joinState: "wait-join")
        now += .seconds(5)
        report(reporter, joinState: "wait-sync")
        #expect(reporter.rebalance == Rebalance(step: "wait-sync", since: began))
        #expect(try seconds() == 5)
        report(reporter, joinState: "steady")
        #expect(try seconds() == 0)
        #expect(reporter.rebalance == nil)
    }

    @Test(arguments: ["", "{", "[]", "{\"replyq\": \"many\"}"])
    func whatCannotBeReadIsSkipped(text: String) {
        let reporter = reporter()
        Array(text.utf8).withUnsafeBytes { reporter.report(json: $0) }
        #expect(metrics.recorders.isEmpty)
    }
}
