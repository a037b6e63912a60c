// SPDX-License-Identifier: Apache-2.0

/// Whether one more request would be answered in time, by what came of those before it (docs/gateway.md#limits). Of one
/// group of ``Shares``. Pure.
///
/// More wait than were answered in the last half of the reply time-out: the next one would wait longer than that half, and
/// the other half is for a group of consumers that comes together anew. A burst has a quarter to show how fast it goes.
struct Pace {
    private static let slots = 8

    private let timeout: Duration
    private let crowd: Int
    private let beginning: ContinuousClock.Instant
    private var crowdedSince: ContinuousClock.Instant?
    /// Answers in the last half of the time-out, by eighths of it: that of `newest` is at its remainder.
    private var answers = [Int](repeating: 0, count: slots)
    private var newest = 0

    /// - Parameters:
    ///   - timeout: how long a request waits for its reply.
    ///   - crowd: fewer than these always may wait.
    init(timeout: Duration, crowd: Int, now: ContinuousClock.Instant) {
        self.timeout = timeout
        self.crowd = crowd
        beginning = now
    }

    mutating func answered(at now: ContinuousClock.Instant) {
        advance(to: now)
        answers[newest % Self.slots] += 1
    }

    /// Asked before each request that is let in.
    mutating func isTooSlow(for waiting: Int, at now: ContinuousClock.Instant) -> Bool {
        guard waiting >= crowd else {
            crowdedSince = nil
            return false
        }
        let since = crowdedSince ?? now
        crowdedSince = since
        guard since.duration(to: now) >= timeout / 4 else { return false }
        advance(to: now)
        return waiting >= answers.reduce(0, +)
    }

    private mutating func advance(to now: ContinuousClock.Instant) {
        let number = Int(beginning.duration(to: now) / (timeout / 2 / Self.slots))
        guard number > newest else { return }
        for slot in max(newest + 1, number - Self.slots + 1)...number { answers[slot % Self.slots] = 0 }
        newest = number
    }
}
