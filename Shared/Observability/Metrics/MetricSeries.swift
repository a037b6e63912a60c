// SPDX-License-Identifier: Apache-2.0

import Contracts
import Metrics
import Synchronization

/// One labelled series of a family. Updates and `write` may run on any thread at the same time; an update is visible
/// to every `write` that starts after it returned.
protocol MetricSeries: AnyObject, Sendable {
    /// The exposed name of the family.
    var family: String { get }
    var labels: LabelSet { get }

    /// Appends the sample lines of this series, each ending in a line feed.
    func write(to output: inout String)
    /// Whether it was told nothing since that moment, so that its value may not be true any more.
    func isStale(since moment: ContinuousClock.Instant) -> Bool
}

extension MetricSeries {
    func isStale(since moment: ContinuousClock.Instant) -> Bool { false }
}

/// A counter that takes whole and fractional amounts. Lock-free; safe from any thread.
///
/// A counter only goes up: negative and non-finite amounts are ignored, and the whole part stops at `Int64.max`
/// instead of wrapping, which a scraper would read as a restart. Whole amounts are exact up to there.
final class CounterSeries: MetricSeries, CounterHandler, FloatingPointCounterHandler {
    let family: String
    let labels: LabelSet
    private let whole = Atomic<Int64>(0)
    private let fraction = Atomic<UInt64>(0)

    init(family: String, labels: LabelSet) {
        self.family = family
        self.labels = labels
    }

    func increment(by amount: Int64) {
        guard amount > 0 else { return }
        var current = whole.load(ordering: .relaxed)
        while true {
            let (sum, overflow) = current.addingReportingOverflow(amount)
            let next = overflow ? Int64.max : sum
            let (done, seen) = whole.weakCompareExchange(expected: current, desired: next, ordering: .relaxed)
            if done { return }
            current = seen
        }
    }

    func increment(by amount: Double) {
        guard amount > 0, amount.isFinite else { return }
        fraction.addDouble(amount)
    }

    func reset() {
        whole.store(0, ordering: .relaxed)
        fraction.store(0, ordering: .relaxed)
    }

    func write(to output: inout String) {
        let whole = whole.load(ordering: .relaxed)
        let fraction = Double(bitPattern: fraction.load(ordering: .relaxed))
        let value = fraction == 0 ? String(whole) : MetricText.number(Double(whole) + fraction)
        output += "\(family)\(labels.braced()) \(value)\n"
    }
}

/// A value that goes up and down: a `Gauge`, a `Meter`, or a `Recorder` that does not aggregate. Lock-free; safe from
/// any thread. Of two concurrent `set`s one wins whole; concurrent `increment`s and `decrement`s all count.
final class GaugeSeries: MetricSeries, MeterHandler, RecorderHandler {
    let family: String
    let labels: LabelSet
    private let bits = Atomic<UInt64>(0)
    private static let start = ContinuousClock.now
    /// Milliseconds since `start`.
    private let told = Atomic<Int64>(0)

    init(family: String, labels: LabelSet) {
        self.family = family
        self.labels = labels
    }

    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) {
        bits.store(value.bitPattern, ordering: .relaxed)
        told.store(Self.start.duration(to: .now).inMilliseconds, ordering: .relaxed)
    }

    func isStale(since moment: ContinuousClock.Instant) -> Bool {
        told.load(ordering: .relaxed) < Self.start.duration(to: moment).inMilliseconds
    }
    func increment(by amount: Double) { bits.addDouble(amount) }
    func decrement(by amount: Double) { bits.addDouble(-amount) }
    func record(_ value: Int64) { set(value) }
    func record(_ value: Double) { set(value) }

    func write(to output: inout String) {
        let value = Double(bitPattern: bits.load(ordering: .relaxed))
        output += "\(family)\(labels.braced()) \(MetricText.number(value))\n"
    }
}

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
    func recordNanoseconds(_ duration: Int64) { recordNanoseconds(duration, times: 1) }
    func recordNanoseconds(_ duration: Int64, times: Int) {
        observe(Double(max(0, duration)) / 1_000_000_000, times: times)
    }

    private func observe(_ value: Double, times: Int = 1) {
        guard !value.isNaN, times > 0 else { return }
        let index = buckets.index(of: value)
        cells.withLock { cells in
            cells.counts[index] &+= UInt64(times)
            cells.sum += value * Double(times)
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

/// The upper bounds of a histogram, ascending and finite, with their exposed text computed once per family.
/// The `+Inf` bucket is implied.
struct HistogramBuckets: Sendable {
    let bounds: [Double]
    /// `le="0.1"` and so on, one longer than `bounds`: the last is `le="+Inf"`.
    let labels: [String]

    /// Takes bounds in any order; repeated and non-finite ones are left out.
    init(_ raw: [Double]) {
        bounds = Set(raw.filter(\.isFinite)).sorted()
        labels = (bounds + [.infinity]).map { "le=\"\(MetricText.number($0))\"" }
    }

    /// The index of the first bucket that holds `value`; a bound includes the value that equals it.
    func index(of value: Double) -> Int {
        // A dozen bounds fit in two cache lines, so a scan beats a binary search.
        bounds.firstIndex { value <= $0 } ?? bounds.count
    }
}

extension Atomic where Value == UInt64 {
    /// Treats the stored bits as a `Double` and adds to it. Lock-free; no concurrent addition is lost.
    func addDouble(_ amount: Double) {
        var current = load(ordering: .relaxed)
        while true {
            let next = (Double(bitPattern: current) + amount).bitPattern
            let (done, seen) = weakCompareExchange(expected: current, desired: next, ordering: .relaxed)
            if done { return }
            current = seen
        }
    }
}
