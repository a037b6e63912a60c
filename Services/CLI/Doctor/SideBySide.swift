// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// Blocking work, each on a thread of its own, so that what hangs keeps nothing else waiting.
final class SideBySide<Value: Sendable>: Sendable {
    private let done = Mutex<[Int: Value]>([:])
    private let count: Int

    init(_ works: [@Sendable () -> Value]) {
        count = works.count
        for (index, work) in works.enumerated() {
            let thread = Thread { [self] in
                let value = work()
                done.withLock { $0[index] = value }
            }
            thread.name = "identitybus-look"
            thread.stackSize = 2 << 20
            thread.start()
        }
    }

    /// The results in order; `nil` for what was not done in time. Blocks.
    /// - Parameter stop: is asked ten times a second.
    func results(by end: ContinuousClock.Instant, unless stop: () -> Bool = { false }) -> [Value?] {
        while ContinuousClock.now < end, !stop() {
            if done.withLock({ $0.count }) == count { break }
            Thread.sleep(forTimeInterval: 0.02)
        }
        return done.withLock { done in (0..<count).map { done[$0] } }
    }
}
