// SPDX-License-Identifier: Apache-2.0

import Foundation
import Runtime

/// Numbers from 0, of which number n comes up 1/(n+1)^exponent times as often as 0 (Zipf's law).
struct Zipf {
    private let sums: [Double]

    init(count: Int, exponent: Double) {
        var sum = 0.0
        sums = (0..<count).map { number in
            sum += pow(Double(number + 1), -exponent)
            return sum
        }
    }

    func next(using random: inout SeededGenerator) -> Int {
        let lot = Double.random(in: 0..<(sums.last ?? 1), using: &random)
        var (low, high) = (0, sums.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if sums[middle] > lot { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
