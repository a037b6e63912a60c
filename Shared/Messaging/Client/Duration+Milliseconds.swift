// SPDX-License-Identifier: Apache-2.0

extension Duration {
    /// Whole milliseconds for librdkafka: rounded up, never negative, at most some 24 days.
    ///
    /// Rounding up keeps a wait of half a millisecond from becoming a busy loop of zero waits.
    var kafkaMilliseconds: Int32 {
        let (seconds, attoseconds) = components
        if seconds < 0 || attoseconds < 0 { return 0 }
        if seconds >= 2_000_000 { return 2_000_000_000 }
        let part = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        return Int32(seconds * 1000 + part)
    }
}
