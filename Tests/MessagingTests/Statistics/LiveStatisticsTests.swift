// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Messaging
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
            try producer.deliver([ProducerRecord(topic: broker.topic("in"), value: [1])])
            let handler = TestHandler()
            let consumer = try broker.consumer(
                ["in"], handler: handler, settings: ["statistics.interval.ms": "100"])
            try wait(until: metrics.recorders(label: "kafka_consumer_lag").count == 2) {
                _ = try consumer.poll(maxRecords: 10, timeout: .milliseconds(50))
            }
            #expect(!metrics.recorders(label: "kafka_consumer_rebalances").isEmpty)
            consumer.close(timeout: .seconds(20))
            #expect(metrics.recorders(label: "kafka_consumer_lag").isEmpty)
            producer.close(timeout: .seconds(5))
        }
    }
}
