// SPDX-License-Identifier: Apache-2.0

/// Numbers from 0, of which number n comes up 1/(n+1) times as often as 0 (Zipf's law with the exponent 1).
struct Zipf {
    private let sums: [Double]

    init(count: Int) {
        var sum = 0.0
        sums = (0..<count).map { number in
            sum += 1 / Double(number + 1)
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
