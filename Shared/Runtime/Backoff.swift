// SPDX-License-Identifier: Apache-2.0

/// A pause that doubles while something keeps failing, up to a limit.
public struct Backoff: Sendable {
    private let first: Duration
    private let longest: Duration
    /// How long to wait now.
    public private(set) var pause: Duration

    public init(from first: Duration, upTo longest: Duration) {
        self.first = first
        self.longest = longest
        pause = first
    }

    /// It failed once more.
    /// - Returns: how long to wait now.
    public mutating func next() -> Duration {
        defer { pause = min(pause * 2, longest) }
        return pause
    }

    /// The same between half of it and all of it, so that many who wait for one thing do not come at once.
    public mutating func nextSpread() -> Duration {
        var random: any RandomNumberGenerator = SystemRandomNumberGenerator()
        return nextSpread(using: &random)
    }

    mutating func nextSpread(using random: inout any RandomNumberGenerator) -> Duration {
        next() * Double.random(in: 0.5...1, using: &random)
    }

    /// It worked.
    public mutating func reset() { pause = first }
}
