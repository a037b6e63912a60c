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
            try wait(until: metrics.recorders(label: "kafka_consumer_lag").count == 2) {
                _ = try consumer.poll(maxRecords: 10, timeout: .milliseconds(50))
            }
            #expect(!metrics.recorders(label: "kafka_consumer_rebalances").isEmpty)
            consumer.close(timeout: .seconds(20))
            #expect(metrics.recorders(label: "kafka_consumer_lag").isEmpty)
            producer.close(timeout: .seconds(5))
        }
    }

    @Test func eachPartitionHasItsOwnLag() throws {
        let metrics = TestMetrics()
        try withMetricsFactory(metrics) {
            let broker = try TestBroker(["in": 2])
            defer { broker.close() }
            let producer = try broker.producer()
            let handler = TestHandler()
            let consumer = try broker.consumer(
                ["in"], handler: handler, settings: ["statistics.interval.ms": "100"])
            try consumer.join(2)
            for (partition, count) in [(Int32(0), 3000), (1, 3)] {
                try producer.deliver(
                    (0..<count).map { _ in
                        Record(topic: broker.topic("in"), value: [1], partition: partition)
                    })
            }
            let lag = { (partition: Int) in
                metrics.recorders(label: "kafka_consumer_lag").first {
                    $0.dimensions.contains { $0 == ("partition", "\(partition)") }
                }?.lastValue
            }
            // Slowly: what is fetched waits in one queue for both partitions. There is more than can be read meanwhile.
            try wait(until: lag(0).map { $0 > 0 } == true) {
                _ = try consumer.poll(maxRecords: 1, timeout: .milliseconds(50))
                usleep(30_000)
            }
            #expect((lag(0) ?? 0) <= 3000 && (lag(1) ?? 0) <= 3)
            consumer.close(timeout: .seconds(20))
            producer.close(timeout: .seconds(5))
        }
    }
}
