// SPDX-License-Identifier: Apache-2.0

public import Metrics

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
