// SPDX-License-Identifier: Apache-2.0

import Metrics
import Synchronization

/// Holds every metric of the process and renders them in the Prometheus text exposition format 0.0.4.
///
/// Threading: every member may be called from any thread. Updating a metric takes no lock (counters, gauges) or a
/// short lock of its own (histograms); creating, destroying and scraping take the registry's lock for as long as
/// a dictionary look-up or copy takes. Nothing here waits for I/O other than the kernel's answer from `/proc`.
///
/// Guarantees:
/// - Two handles with the same name and labels update the same series.
/// - A name has one kind. A later request for another kind gets a handle that does nothing and is counted in
///   `metrics_dropped_series_total`, because one inconsistent name would make the whole scrape unreadable.
/// - Output is sorted by name and by labels, so two scrapes differ only where values do.
public final class PrometheusRegistry: Sendable {
    /// The value of the `Content-Type` header that belongs to `exposition()`.
    public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    let configuration: Configuration
    private let processMetrics = ProcessMetrics()
    private let dropped = CounterSeries(family: "metrics_dropped_series_total", labels: LabelSet([]))
    private let families: Mutex<MetricFamilies>

    /// Creates an empty registry. Only the process metrics and the count of dropped series are in it.
    public init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
        let reserved = ProcessMetrics.names + [dropped.family]
        families = Mutex(MetricFamilies(limit: configuration.seriesLimit, reserved: reserved))
    }

    /// The current value of every metric, ready to be sent as the body of a scrape.
    public func exposition() -> String {
        let families = families.withLock { $0.byName }
        var blocks = processMetrics.blocks() + [droppedBlock()]
        for (name, family) in families {
            var text = MetricText.header(name: name, kind: family.kind, help: configuration.help[name])
            for (_, series) in family.series.sorted(by: { $0.key < $1.key }) { series.write(to: &text) }
            blocks.append((name, text))
        }
        return blocks.sorted { $0.name < $1.name }.map(\.text).joined()
    }

    /// The series for this name and these labels, made on first use; nil when it has to be dropped.
    func series<Series: MetricSeries>(
        _ name: String, kind: MetricKind, dimensions: [(String, String)], buckets: [Double] = [],
        make: (LabelSet, HistogramBuckets?) -> Series
    ) -> Series? {
        let labels = LabelSet(dimensions)
        let found = families.withLock { families in
            families.series(
                name, kind: kind, labels: labels,
                buckets: { kind == .histogram ? HistogramBuckets(configuration.bucketsByName[name] ?? buckets) : nil },
                make: { make(labels, $0) })
        }
        if found == nil { dropped.increment(by: Int64(1)) }
        return found as? Series
    }

    /// Takes a series out of the exposition. A handle to a series that is already gone changes nothing, also when a
    /// newer series has taken its place.
    func remove(_ series: any MetricSeries) {
        families.withLock { $0.remove(series) }
    }

    private func droppedBlock() -> (name: String, text: String) {
        let help = "Requests for a series that were refused: too many label combinations, or a name of another kind."
        var text = MetricText.header(name: dropped.family, kind: .counter, help: help)
        dropped.write(to: &text)
        return (dropped.family, text)
    }
}
