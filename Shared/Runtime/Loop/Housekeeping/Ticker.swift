// SPDX-License-Identifier: Apache-2.0

/// The next time of what is done again and again.
struct Ticker {
    private let interval: Duration
    private var last: ContinuousClock.Instant

    /// - Parameter start: the first time is an interval later.
    init(every interval: Duration, from start: ContinuousClock.Instant) {
        self.interval = interval
        last = start
    }

    /// - Returns: whether it is time. The next time is an interval after `now` then, however late it is.
    mutating func ticks(_ now: ContinuousClock.Instant) -> Bool {
        guard now - last >= interval else { return false }
        last = now
        return true
    }
}
