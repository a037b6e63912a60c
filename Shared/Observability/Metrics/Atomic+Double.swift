// SPDX-License-Identifier: Apache-2.0

import Synchronization

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
