// SPDX-License-Identifier: Apache-2.0

import Foundation
import Metrics
import Testing

@testable import Observability

@Suite struct PrometheusRegistryTests {
    @Test func goldenExposition() {
        var configuration = PrometheusRegistry.Configuration()
        configuration.help = ["identity_commands_total": "Commands by\noutcome \\ \"type\"."]
        configuration.bucketsByName = ["batch_size": [10, 1, 10, .infinity]]
        let registry = PrometheusRegistry(configuration: configuration)

        let labels = [("type", "login"), ("outcome", "ok")]
        Counter(label: "identity.commands", dimensions: labels, factory: registry).increment(by: 3)
        Counter(label: "identity.commands", dimensions: labels.reversed(), factory: registry).increment()
        Counter(label: "identity.commands", dimensions: [("type", "alias")], factory: registry).increment()
        FloatingPointCounter(label: "cpu-credits", factory: registry).increment(by: 0.75)
        Gauge(label: "inflight", factory: registry).record(7)
        Meter(label: "temperature", factory: registry).set(21.5)
        Recorder(label: "last", aggregate: false, factory: registry).record(-3)
        let sizes = Recorder(label: "batch_size", factory: registry)
        for size in [1, 2, 10, 11] { sizes.record(size) }

        #expect(
            Samples(registry).text == """
                # TYPE batch_size histogram
                batch_size_bucket{le="1"} 1
                batch_size_bucket{le="10"} 3
                batch_size_bucket{le="+Inf"} 4
                batch_size_sum 24
                batch_size_count 4
                # TYPE cpu_credits_total counter
                cpu_credits_total 0.75
                # HELP identity_commands_total Commands by\\noutcome \\\\ "type".
                # TYPE identity_commands_total counter
                identity_commands_total{outcome="ok",type="login"} 4
                identity_commands_total{type="alias"} 1
                # TYPE inflight gauge
                inflight 7
                # TYPE last gauge
                last -3
                # TYPE temperature gauge
                temperature 21.5

                """)
    }

    @Test func timersAreCumulativeHistogramsInSeconds() {
        let registry = PrometheusRegistry()
        let timer = Timer(label: "db.commit", dimensions: [("table", "journal")], factory: registry)
        timer.recordNanoseconds(1_000_000)  // 1 ms: on the bound
        timer.recordMilliseconds(3)
        timer.recordSeconds(0.3)
        timer.recordSeconds(60)
        timer.recordNanoseconds(-5)
        let samples = Samples(registry)
        let bounds = ["0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10"]
        let counts = bounds.map { samples.value("db_commit_seconds_bucket{table=\"journal\",le=\"\($0)\"}") }
        #expect(counts == ["2", "2", "3", "3", "3", "3", "3", "3", "4", "4", "4", "4", "4"])
        #expect(samples.value("db_commit_seconds_bucket{table=\"journal\",le=\"+Inf\"}") == "5")
        #expect(samples.value("db_commit_seconds_count{table=\"journal\"}") == "5")
        #expect(samples.value("db_commit_seconds_sum{table=\"journal\"}") == "60.304")
    }

    @Test func seriesBeyondTheLimitAreDroppedAndCounted() {
        var configuration = PrometheusRegistry.Configuration()
        configuration.seriesLimit = 3
        let registry = PrometheusRegistry(configuration: configuration)
        let counters = (0..<5).map { Counter(label: "hot", dimensions: [("k", "\($0)")], factory: registry) }
        for counter in counters { counter.increment() }
        Counter(label: "cold", dimensions: [("k", "0")], factory: registry).increment()
        #expect(Samples(registry).lines.filter { $0.hasPrefix("hot_total{") }.count == 3)
        #expect(Samples(registry).value("cold_total{k=\"0\"}") == "1")
        #expect(registry.exposition().contains("\nmetrics_dropped_series_total 2\n"))

        counters[0].destroy()
        counters[4].destroy()  // never had a series
        Counter(label: "hot", dimensions: [("k", "9")], factory: registry).increment()
        #expect(Samples(registry).value("hot_total{k=\"0\"}") == nil)
        #expect(Samples(registry).value("hot_total{k=\"9\"}") == "1")
    }

    @Test func aNameKeepsItsKind() {
        let registry = PrometheusRegistry()
        Recorder(label: "size", factory: registry).record(1)
        Gauge(label: "size", factory: registry).record(2)
        Gauge(label: "size_count", factory: registry).record(3)
        Gauge(label: "process_open_fds", factory: registry).record(-1)
        Counter(label: "metrics.dropped.series", factory: registry).increment()
        let text = registry.exposition()
        #expect(!text.contains("\nsize 2\n"))
        #expect(text.contains("\nsize_count 1\n"))
        #expect(!text.contains("process_open_fds -1"))
        #expect(text.contains("\nmetrics_dropped_series_total 4\n"))
    }

    @Test func destroyRemovesOnlyTheSeriesOfTheHandle() {
        let registry = PrometheusRegistry()
        let old = Gauge(label: "lag", dimensions: [("partition", "1")], factory: registry)
        old.record(5)
        old.destroy()
        #expect(Samples(registry).text.isEmpty)
        let new = Counter(label: "lag", factory: registry)  // the name is free again, for another kind too
        new.increment()
        let again = Gauge(label: "lag", dimensions: [("partition", "1")], factory: registry)
        again.record(6)
        old.destroy()
        #expect(Samples(registry).value("lag{partition=\"1\"}") == "6")
        again.destroy()
        #expect(Samples(registry).value("lag_total") == "1")

        let timer = Timer(label: "t", factory: registry)
        let meter = Meter(label: "m", factory: registry)
        let recorder = Recorder(label: "r", factory: registry)
        let fraction = FloatingPointCounter(label: "f", factory: registry)
        timer.destroy()
        meter.destroy()
        recorder.destroy()
        fraction.destroy()
        #expect(Samples(registry).text == "# TYPE lag_total counter\nlag_total 1\n")
    }

    @Test func countersOnlyGoUp() {
        let registry = PrometheusRegistry()
        let counter = Counter(label: "c", factory: registry)
        counter.increment(by: 5)
        counter.increment(by: -2)
        #expect(Samples(registry).value("c_total") == "5")
        counter.increment(by: Int64.max)
        #expect(Samples(registry).value("c_total") == "\(Int64.max)")
        counter.reset()
        #expect(Samples(registry).value("c_total") == "0")
        let fraction = FloatingPointCounter(label: "f", factory: registry)
        fraction.increment(by: Double.nan)
        fraction.increment(by: Double.infinity)
        fraction.increment(by: -1.0)
        fraction.increment(by: 1.25)
        #expect(Samples(registry).value("f_total") == "1.25")
    }

    @Test func gaugesGoBothWays() {
        let registry = PrometheusRegistry()
        let meter = Meter(label: "m", factory: registry)
        meter.increment(by: 2.5)
        meter.decrement(by: 4)
        #expect(Samples(registry).value("m") == "-1.5")
        meter.set(Double.nan)
        #expect(Samples(registry).value("m") == "NaN")
    }

    @Test func concurrentUpdatesAddUp() async {
        let registry = PrometheusRegistry()
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for round in 0..<2_000 {
                        // New handles on purpose: look-up and update race with the scrapes below.
                        Counter(label: "n", dimensions: [("t", "\(task % 2)")], factory: registry).increment(by: 2)
                        FloatingPointCounter(label: "x", factory: registry).increment(by: 0.5)
                        Meter(label: "m", factory: registry).increment(by: 1.0)
                        Recorder(label: "h", factory: registry).record(round % 3)
                        if round % 500 == 0 { _ = registry.exposition() }
                    }
                }
            }
        }
        let samples = Samples(registry)
        #expect(samples.value("n_total{t=\"0\"}") == "16000")
        #expect(samples.value("n_total{t=\"1\"}") == "16000")
        #expect(samples.value("x_total") == "8000")
        #expect(samples.value("m") == "16000")
        #expect(samples.value("h_count") == "16000")
        #expect(samples.value("h_bucket{le=\"+Inf\"}") == "16000")
        #expect(samples.value("h_bucket{le=\"1\"}") == "10672")
    }

    @Test func processMetricsDescribeThisProcess() throws {
        let text = PrometheusRegistry().exposition()
        func value(_ name: String) throws -> Double {
            let line = try #require(text.split(separator: "\n").first { $0.hasPrefix(name + " ") })
            return try #require(Double(line.dropFirst(name.count + 1)))
        }
        #expect(try value("process_cpu_seconds_total") >= 0)
        #expect(try value("process_resident_memory_bytes") > 1_000_000)
        #expect(try value("process_open_fds") >= 3)
        let age = Date().timeIntervalSince1970 - (try value("process_start_time_seconds"))
        #expect(age > -2 && age < 3_600)
        #expect(text.contains("# TYPE process_cpu_seconds_total counter\n"))
        #expect(text.contains("\nidentity_build_info{commit=\"\(Release.commit)\",version=\"\(Release.version)\"} 1\n"))
        #expect(text.hasSuffix("\n"))
    }
}
