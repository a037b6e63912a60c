// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

/// Keeps an error that repeats from filling the log: one line per error and place in ten seconds.
struct QuietErrors {
    private struct Place: Hashable {
        let code: Int32
        let partition: TopicPartition?
    }

    private static let pause: Duration = .seconds(10)
    private var lastLogged: [Place: ContinuousClock.Instant] = [:]

    /// Whether this error deserves a line now.
    mutating func shouldLog(code: Int32, at partition: TopicPartition?, now: ContinuousClock.Instant) -> Bool {
        let place = Place(code: code, partition: partition)
        if let last = lastLogged[place], last.duration(to: now) < Self.pause { return false }
        // Names of topics may come without end; the memory of them must not.
        if lastLogged.count >= 1000 { lastLogged = [:] }
        lastLogged[place] = now
        return true
    }
}
