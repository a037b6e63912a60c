// SPDX-License-Identifier: Apache-2.0

/// Keeps an error that repeats from filling the log: one line per error and place in ten seconds.
struct QuietErrors {
    private struct Kind: Hashable {
        let code: Int32
        let place: ConsumerErrors.Place
    }

    private static let pause: Duration = .seconds(10)
    private var lastLogged: [Kind: ContinuousClock.Instant] = [:]

    /// Whether this error deserves a line now.
    mutating func shouldLog(code: Int32, at place: ConsumerErrors.Place, now: ContinuousClock.Instant) -> Bool {
        let kind = Kind(code: code, place: place)
        if let last = lastLogged[kind], last.duration(to: now) < Self.pause { return false }
        // Names of topics may come without end; the memory of them must not.
        if lastLogged.count >= 1000 { lastLogged = [:] }
        lastLogged[kind] = now
        return true
    }
}
