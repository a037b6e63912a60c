// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Glibc
import Synchronization

/// What other threads may tell the loop.
public final class LoopSignals: Sendable {
    private let stopping = Atomic(false)
    private let stoppingAtOnce = Atomic(false)

    public init() {}

    /// Asks the loop to finish its batch, publish, leave the group and end.
    public func stop() { stopping.store(true, ordering: .releasing) }

    /// Asks it not to wait for anything any more.
    public func stopAtOnce() {
        stoppingAtOnce.store(true, ordering: .releasing)
        stop()
    }

    var isStopping: Bool { stopping.load(ordering: .acquiring) }
    var isStoppingAtOnce: Bool { stoppingAtOnce.load(ordering: .acquiring) }

    /// Blocks the loop's thread, at most until it is asked to stop.
    func sleep(_ duration: Duration) {
        let deadline = ContinuousClock.now + duration
        while !isStopping {
            let left = deadline - .now
            guard left > .zero else { return }
            usleep(UInt32(min(left, .milliseconds(50)).inMicroseconds))
        }
    }
}
