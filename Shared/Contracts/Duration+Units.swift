// SPDX-License-Identifier: Apache-2.0

/// Durations as plain numbers, for what is told outside of this process. What is left over is cut off.
extension Duration {
    public var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) * 1e-18
    }

    public var inMilliseconds: Int64 { count(of: 1000) }
    public var inMicroseconds: Int64 { count(of: 1_000_000) }
    public var inNanoseconds: Int64 { count(of: 1_000_000_000) }

    private func count(of perSecond: Int64) -> Int64 {
        let (seconds, attoseconds) = components
        return seconds * perSecond + attoseconds / (1_000_000_000_000_000_000 / perSecond)
    }
}
