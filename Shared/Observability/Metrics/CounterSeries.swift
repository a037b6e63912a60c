// SPDX-License-Identifier: Apache-2.0

import Metrics
import Synchronization

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
