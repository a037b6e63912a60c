// SPDX-License-Identifier: Apache-2.0

import Contracts
import Glibc
import Messaging
import MessagingTestKit
import Metrics
import MetricsTestKit
import Testing

@Suite(.dedicatedThread) struct LiveStatisticsTests {
    @Test func rebalancesAreReportedWhileItPolls() throws {
        let metrics = TestMetrics()
        try withMetricsFactory(metrics) {
            let broker = try TestBroker(["in": 2])
            defer { broker.close() }
            let producer = try broker.producer()
            try producer.deliver([Record(topic: broker.topic("in"), value: [1])])
            let handler = TestHandler()
            let consumer = try broker.consumer(
                ["in"], handler: handler, settings: ["statistics.interval.ms": "100"])
            let hasRebalanced = {
                metrics.counters.contains { $0.label == "kafka_consumer_rebalances" && $0.totalValue > 0 }
                    && metrics.recorders(label: "kafka_consumer_rebalance_seconds").last?.lastValue == 0
            }
            try wait(until: hasRebalanced()) {
                _ = try consumer.poll(maxRecords: 10, timeout: .milliseconds(50))
            }
            #expect(consumer.rebalance == nil)
            consumer.close(timeout: .seconds(20))
            #expect(metrics.recorders(label: "kafka_consumer_rebalance_seconds").isEmpty)
            producer.close(timeout: .seconds(5))
        }
    }
}
