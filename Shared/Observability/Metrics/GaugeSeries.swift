// SPDX-License-Identifier: Apache-2.0

import Metrics
import Synchronization

/// A value that goes up and down: a `Gauge`, a `Meter`, or a `Recorder` that does not aggregate. Lock-free; safe from
/// any thread. Of two concurrent `set`s one wins whole; concurrent `increment`s and `decrement`s all count.
final class GaugeSeries: MetricSeries, MeterHandler, RecorderHandler {
    let family: String
    let labels: LabelSet
    private let bits = Atomic<UInt64>(0)

    init(family: String, labels: LabelSet) {
        self.family = family
        self.labels = labels
    }

    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }
    func increment(by amount: Double) { bits.addDouble(amount) }
    func decrement(by amount: Double) { bits.addDouble(-amount) }
    func record(_ value: Int64) { set(value) }
    func record(_ value: Double) { set(value) }

    func write(to output: inout String) {
        let value = Double(bitPattern: bits.load(ordering: .relaxed))
        output += "\(family)\(labels.braced()) \(MetricText.number(value))\n"
    }
}
