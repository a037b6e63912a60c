// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The turn to try records that may end the process. It belongs to one loop of a process at a time: else an end would
/// be charged to what another loop was trying, too. Usable from any thread.
package final class Trial: Sendable {
    private let isTaken = Atomic(false)

    package init() {}

    /// - Returns: whether the turn is the caller's now, who gives it back.
    func take() -> Bool { !isTaken.exchange(true, ordering: .acquiring) }

    func giveBack() { isTaken.store(false, ordering: .releasing) }
}
