// SPDX-License-Identifier: Apache-2.0

public import Metrics
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
            let oldest = configuration.maxAge[name].map { ContinuousClock.now - $0 }
            let fresh = family.series.filter { series in oldest.map { !series.value.isStale(since: $0) } ?? true }
            if fresh.isEmpty { continue }
            for (_, series) in fresh.sorted(by: { $0.key < $1.key }) { series.write(to: &text) }
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

extension PrometheusRegistry {
    /// What the registry needs to know beforehand. Names in the dictionaries are exposed names, such as
    /// `outbox_batch_size` or `database_commit_seconds`.
    public struct Configuration: Sendable {
        /// The most series that one metric name may have. Further label combinations are dropped and counted in
        /// `metrics_dropped_series_total`.
        public var seriesLimit = 1_000

        /// Bucket bounds of every `Timer`, in seconds.
        public var timerBuckets: [Double] = [
            0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
        ]

        /// Bucket bounds of every aggregating `Recorder`; made for counts and batch sizes.
        public var recorderBuckets: [Double] = [
            1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 100_000, 1_000_000,
        ]

        /// Bucket bounds of single histograms, in place of the two lists above.
        public var bucketsByName: [String: [Double]] = [:]

        /// HELP texts. A metric without one is exposed without a HELP line.
        public var help: [String: String] = [:]

        /// Gauges that are not shown when nobody has set them for so long: an old value would pass for one of now.
        public var maxAge: [String: Duration] = [:]

        public init() {}
    }
}

/// Every family of a registry, by exposed name. A plain value without a lock; the registry guards it.
///
/// Invariants: a name has one kind; no two families put the same sample name into the exposition; no family has more
/// than `limit` series; a family without series does not exist.
struct MetricFamilies: Sendable {
    private(set) var byName: [String: MetricFamily] = [:]
    /// Every sample name in use, see `MetricKind.sampleNames`.
    private var claimed: Set<String>
    private let limit: Int

    /// `reserved` names are never given to a family.
    init(limit: Int, reserved: [String]) {
        self.limit = limit
        claimed = Set(reserved)
    }

    /// The series for this name and these labels, made on first use; nil when the name belongs to something else or
    /// the family is full. `buckets` and `make` are only called for what does not exist yet.
    mutating func series(
        _ name: String, kind: MetricKind, labels: LabelSet, buckets: () -> HistogramBuckets?,
        make: (HistogramBuckets?) -> any MetricSeries
    ) -> (any MetricSeries)? {
        if let family = byName[name] {
            guard family.kind == kind else { return nil }
            if let existing = family.series[labels] { return existing }
            guard family.series.count < limit else { return nil }
            let created = make(family.buckets)
            byName[name]?.series[labels] = created
            return created
        }
        let sampleNames = kind.sampleNames(of: name)
        guard limit > 0, claimed.isDisjoint(with: sampleNames) else { return nil }
        claimed.formUnion(sampleNames)
        let familyBuckets = buckets()
        let created = make(familyBuckets)
        byName[name] = MetricFamily(kind: kind, buckets: familyBuckets, series: [labels: created])
        return created
    }

    /// Removes this very series; one that is not held, or has been replaced, changes nothing.
    mutating func remove(_ series: any MetricSeries) {
        guard let family = byName[series.family], family.series[series.labels] === series else { return }
        byName[series.family]?.series[series.labels] = nil
        guard family.series.count == 1 else { return }
        byName[series.family] = nil
        claimed.subtract(family.kind.sampleNames(of: series.family))
    }
}

/// All series of one exposed name. A plain value that the registry guards with its lock.
struct MetricFamily: Sendable {
    let kind: MetricKind
    /// Only for histograms; the first creator of a family decides for all of its series.
    let buckets: HistogramBuckets?
    var series: [LabelSet: any MetricSeries]
}

/// How the handle types of swift-metrics become Prometheus metrics:
///
/// | swift-metrics | Prometheus | name |
/// | --- | --- | --- |
/// | `Counter`, `FloatingPointCounter` | counter | `…_total` |
/// | `Gauge`, `Meter`, `Recorder(aggregate: false)` | gauge | as given |
/// | `Recorder(aggregate: true)` | histogram | as given |
/// | `Timer` | histogram, seconds | `…_seconds` |
///
/// Characters that Prometheus does not allow become `_`. A suffix that is already there is not repeated.
/// `destroy` removes the series for all handles that share it; a handle made afterwards starts at zero.
extension PrometheusRegistry: MetricsFactory {
    public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        counter(label, dimensions) ?? NOOPMetricsHandler.instance
    }

    public func makeFloatingPointCounter(
        label: String, dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler {
        counter(label, dimensions) ?? NOOPMetricsHandler.instance
    }

    public func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        gauge(label, dimensions) ?? NOOPMetricsHandler.instance
    }

    public func makeRecorder(
        label: String, dimensions: [(String, String)], aggregate: Bool
    ) -> any RecorderHandler {
        guard aggregate else { return gauge(label, dimensions) ?? NOOPMetricsHandler.instance }
        let name = MetricName.metric(label)
        return histogram(name, dimensions, configuration.recorderBuckets) ?? NOOPMetricsHandler.instance
    }

    public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        let name = MetricName.metric(label, suffix: "_seconds")
        return histogram(name, dimensions, configuration.timerBuckets) ?? NOOPMetricsHandler.instance
    }

    public func destroyCounter(_ handler: any CounterHandler) { destroy(handler) }
    public func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) { destroy(handler) }
    public func destroyMeter(_ handler: any MeterHandler) { destroy(handler) }
    public func destroyRecorder(_ handler: any RecorderHandler) { destroy(handler) }
    public func destroyTimer(_ handler: any TimerHandler) { destroy(handler) }

    private func destroy(_ handler: AnyObject) {
        // The handle of a dropped series is not one of ours, and there is nothing to remove.
        guard let series = handler as? any MetricSeries else { return }
        remove(series)
    }

    private func counter(_ label: String, _ dimensions: [(String, String)]) -> CounterSeries? {
        let name = MetricName.metric(label, suffix: "_total")
        return series(name, kind: .counter, dimensions: dimensions) { labels, _ in
            CounterSeries(family: name, labels: labels)
        }
    }

    private func gauge(_ label: String, _ dimensions: [(String, String)]) -> GaugeSeries? {
        let name = MetricName.metric(label)
        return series(name, kind: .gauge, dimensions: dimensions) { labels, _ in
            GaugeSeries(family: name, labels: labels)
        }
    }

    private func histogram(
        _ name: String, _ dimensions: [(String, String)], _ buckets: [Double]
    ) -> HistogramSeries? {
        series(name, kind: .histogram, dimensions: dimensions, buckets: buckets) { labels, buckets in
            HistogramSeries(family: name, labels: labels, buckets: buckets ?? HistogramBuckets([]))
        }
    }
}
