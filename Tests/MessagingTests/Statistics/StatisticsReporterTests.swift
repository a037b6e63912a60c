// SPDX-License-Identifier: Apache-2.0

import Contracts
import Metrics
import MetricsTestKit
import Testing

@testable import Messaging

@Suite struct StatisticsReporterTests {
    private let metrics = TestMetrics()

    private func document(committed: Int, position: Int, fetched: Int, end: Int) -> [UInt8] {
        let partitions = (-1...1).map {
            """
            "\($0)": {"partition": \($0), "consumer_lag": \(committed), "app_offset": \(position),
                "next_offset": \(fetched), "ls_offset": \(end), "hi_offset": 99, "fetch_state": "active"}
            """
        }
        let text = """
            {"name": "x", "replyq": 3, "msg_cnt": 4,
             "brokers": {
                "h:1/bootstrap": {"nodeid": -1, "rtt": {"min": 0, "p95": 1, "p99": 2, "cnt": 5}},
                "h:1/1": {"nodeid": 1, "rtt": {"min": 0, "p95": 1500, "p99": 2500, "cnt": 5}}},
             "topics": {"t": {"partitions": {\(partitions.joined(separator: ","))}}},
             "cgrp": {"state": "up", "rebalance_cnt": 2}}
            """
        return Array(text.utf8)
    }

    private func report(
        _ reporter: StatisticsReporter, committed: Int = 5, position: Int = 10, fetched: Int = 20, end: Int = 30
    ) {
        document(committed: committed, position: position, fetched: fetched, end: end).withUnsafeBytes {
            reporter.report(json: $0)
        }
    }

    private func labels(_ partition: Int) -> [(String, String)] {
        [("group", "g"), ("topic", "t"), ("partition", "\(partition)")]
    }

    private func reporter() -> StatisticsReporter {
        StatisticsReporter(clientID: "c", role: .consumer, group: "g", factory: metrics)
    }

    @Test func theDocumentBecomesGauges() throws {
        let reporter = reporter()
        reporter.assignment = [TopicPartition(topic: "t", partition: 0)]
        report(reporter)
        #expect(try metrics.expectGauge("kafka_consumer_lag", labels(0)).lastValue == 20)
        let client = [("client", "c"), ("role", "consumer")]
        #expect(try metrics.expectGauge("kafka_client_reply_queue", client).lastValue == 3)
        #expect(try metrics.expectGauge("kafka_client_queued_messages", client).lastValue == 4)
        #expect(try metrics.expectGauge("kafka_consumer_rebalances", client + [("group", "g")]).lastValue == 2)
        let broker = client + [("broker", "1"), ("quantile", "0.99")]
        #expect(try metrics.expectGauge("kafka_broker_round_trip_seconds", broker).lastValue == 0.0025)
        #expect(metrics.recorders(label: "kafka_broker_round_trip_seconds").count == 2)
    }

    /// Committed offsets are told rarely: they say nothing about the lag once something was read.
    @Test func lagIsThatOfTheReader() throws {
        let reporter = reporter()
        reporter.assignment = [TopicPartition(topic: "t", partition: 0)]
        let lag = { try metrics.expectGauge("kafka_consumer_lag", labels(0)).lastValue }
        report(reporter, committed: -1, position: 10, end: 30)
        #expect(try lag() == 20)
        report(reporter, committed: -1, position: 10, end: -1001)
        #expect(try lag() == 89)
        report(reporter, committed: 700, position: 10, end: 30)
        #expect(try lag() == 20)
        report(reporter, committed: 700, position: -1001, fetched: 25, end: 30)
        #expect(try lag() == 5)
        report(reporter, committed: 7, position: -1001, fetched: -1001, end: 30)
        #expect(try lag() == 7)
    }

    @Test func lagThatIsNotKnownIsNotReported() {
        let reporter = reporter()
        reporter.assignment = [TopicPartition(topic: "t", partition: 0)]
        report(reporter, committed: -1, position: -1001, fetched: -1001, end: 30)
        #expect(metrics.recorders(label: "kafka_consumer_lag").isEmpty)
    }

    @Test func partitionsThatAreGivenUpAreDropped() throws {
        let reporter = reporter()
        reporter.assignment = [TopicPartition(topic: "t", partition: 0), TopicPartition(topic: "t", partition: 1)]
        report(reporter)
        #expect(metrics.recorders(label: "kafka_consumer_lag").count == 2)
        reporter.assignment = [TopicPartition(topic: "t", partition: 1)]
        #expect(metrics.recorders(label: "kafka_consumer_lag").count == 1)
        report(reporter)
        #expect(metrics.recorders(label: "kafka_consumer_lag").count == 1)
        reporter.close()
        #expect(metrics.recorders.isEmpty)
    }

    @Test(arguments: ["", "{", "[]", "{\"replyq\": \"many\"}"])
    func whatCannotBeReadIsSkipped(text: String) {
        let reporter = reporter()
        Array(text.utf8).withUnsafeBytes { reporter.report(json: $0) }
        #expect(metrics.recorders.isEmpty)
    }
}
