// SPDX-License-Identifier: Apache-2.0

import Contracts

/// How long things took. All are kept, so percentiles are exact.
struct Times {
    private var microseconds: [UInt32] = []

    var count: Int { microseconds.count }

    mutating func add(_ time: Duration) {
        microseconds.append(UInt32(clamping: Int(max(0, time.inSeconds * 1e6))))
    }

    /// Percentiles in milliseconds; the number of times.
    func tell(_ report: inout Report, _ prefix: String = "") {
        let sorted = microseconds.sorted()
        func add(_ name: String, _ share: Double) {
            guard !sorted.isEmpty else { return }
            let index = min(sorted.count - 1, Int((share * Double(sorted.count)).rounded(.up)) - 1)
            report.add(prefix + name, Double(sorted[max(0, index)]) / 1000, "ms")
        }
        for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("max", 1)] {
            add(name, share)
        }
        report.add(prefix + "measured", Double(count))
    }
}
