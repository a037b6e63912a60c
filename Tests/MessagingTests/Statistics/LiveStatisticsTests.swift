// SPDX-License-Identifier: Apache-2.0

import Contracts
import Glibc
import Messaging
import MessagingTestKit
import Metrics
import MetricsTestKit
import Testing

@Suite(.dedicatedThread) struct LiveStatisticsTests {
    @Test func aConsumersLagIsReportedWhileItPolls() throws {
        let metrics = TestMetrics()
        try withMetricsFactory(metrics) {
            let broker = try TestBroker(["in": 2])
            defer { broker.close() }
            let producer = try broker.producer()
            try producer.deliver([Record(topic: broker.topic("in"), value: [1])])
            let handler = TestHandler()
            let consumer = try broker.consumer(
                ["in"], handler: handler, settings: ["statistics.interval.ms": "100"])
            try wait(until: metrics.recorders(label: "kafka_consumer_rebalance_seconds").last?.lastValue == 0) {
                _ = try consumer.poll(maxRecords: 10, timeout: .milliseconds(50))
            }
            #expect(consumer.rebalance == nil)
            #expect(metrics.counters.contains { $0.label == "kafka_consumer_rebalances" && $0.totalValue > 0 })
            consumer.close(timeout: .seconds(20))
            #expect(metrics.recorders(label: "kafka_consumer_rebalance_seconds").isEmpty)
            producer.close(timeout: .seconds(5))
        }
    }
}
