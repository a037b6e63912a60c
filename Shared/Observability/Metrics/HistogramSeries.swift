// SPDX-License-Identifier: Apache-2.0

import Metrics
import Synchronization

/// A histogram: an aggregating `Recorder`, or a `Timer` in seconds. Safe from any thread; an observation holds a short
/// lock, so that buckets, sum and count of one scrape always belong together.
///
/// NaN is ignored. A negative duration (a clock that was set back) counts as zero.
final class HistogramSeries: MetricSeries, RecorderHandler, TimerHandler {
    private struct Cells: Sendable {
        var counts: [UInt64]
        var sum: Double = 0
    }

    let family: String
    let labels: LabelSet
    private let buckets: HistogramBuckets
    private let cells: Mutex<Cells>

    init(family: String, labels: LabelSet, buckets: HistogramBuckets) {
        self.family = family
        self.labels = labels
        self.buckets = buckets
        cells = Mutex(Cells(counts: Array(repeating: 0, count: buckets.labels.count)))
    }

    func record(_ value: Int64) { observe(Double(value)) }
    func record(_ value: Double) { observe(value) }
    func recordNanoseconds(_ duration: Int64) { observe(Double(max(0, duration)) / 1_000_000_000) }

    private func observe(_ value: Double) {
        guard !value.isNaN else { return }
        let index = buckets.index(of: value)
        cells.withLock { cells in
            cells.counts[index] &+= 1
            cells.sum += value
        }
    }

    func write(to output: inout String) {
        let snapshot = cells.withLock { $0 }
        var total: UInt64 = 0
        for (count, label) in zip(snapshot.counts, buckets.labels) {
            total &+= count
            output += "\(family)_bucket\(labels.braced(adding: label)) \(total)\n"
        }
        output += "\(family)_sum\(labels.braced()) \(MetricText.number(snapshot.sum))\n"
        output += "\(family)_count\(labels.braced()) \(total)\n"
    }
}
