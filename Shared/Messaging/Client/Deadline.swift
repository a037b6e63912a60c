// SPDX-License-Identifier: Apache-2.0

/// A moment on the monotonic clock by which something has to be over.
struct Deadline {
    private let end: ContinuousClock.Instant

    init(after timeout: Duration) {
        end = ContinuousClock.now.advanced(by: timeout)
    }

    /// What is left, never negative.
    var remaining: Duration { max(.zero, ContinuousClock.now.duration(to: end)) }

    var isOver: Bool { ContinuousClock.now >= end }
}
