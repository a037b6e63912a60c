// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation

extension Double {
    /// `12345.6` as `12,346`, small numbers with up to three digits behind the point.
    var shown: String {
        if self >= 100 {
            let digits = Array(String(Int(rounded())))
            var text = ""
            for (index, digit) in digits.enumerated() {
                if index > 0, (digits.count - index).isMultiple(of: 3) { text.append(",") }
                text.append(digit)
            }
            return text
        }
        return String(format: self >= 10 ? "%.1f" : self >= 1 ? "%.2f" : "%.3f", self)
    }

    /// `0.42` as `42 %`.
    var percent: String { String(format: self < 0.1 ? "%.1f %%" : "%.0f %%", self * 100) }
}

/// How often `work` runs in a second. It is run for about a second, in rounds that do `count` pieces each.
func rate(of count: Int, _ work: () throws -> Void) rethrows -> Double {
    try work()
    let start = ContinuousClock.now
    var rounds = 0
    while ContinuousClock.now - start < .seconds(1) {
        try work()
        rounds += 1
    }
    return Double(rounds * count) / (ContinuousClock.now - start).inSeconds
}

/// A line at once, also when the output is a pipe.
func say(_ line: String) {
    print(line)
    fflush(nil)
}
