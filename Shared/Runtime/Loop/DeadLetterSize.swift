// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto

/// Keeps dead letters small enough for their topic. A record may be larger than any topic of ours takes (Kafka limits
/// batches after compression), and a dead letter is larger than what it holds.
///
/// What is cut is told: `dlq_value_bytes` and `dlq_value_sha256` are those of the whole value.
enum DeadLetterSize {
    /// What the dead-letter topic is made for, with some room for the envelope of the batch; in bytes.
    static let limit = 2_900_000
    /// How much of a value that is too large is kept, in bytes.
    static let kept = 65_536
    private static let largestKey = 1024

    /// The letter as it is when it fits, else cut.
    static func fitting(_ letter: OutboundMessage) -> OutboundMessage {
        var letter = letter
        while size(letter) > limit, let next = smaller(letter) { letter = next }
        return letter
    }

    /// The next smaller form: with the beginning of the value, then without value and without what is not ours.
    static func smaller(_ letter: OutboundMessage) -> OutboundMessage? {
        var smaller = letter
        if let value = letter.value, value.count > kept {
            smaller.value = Array(value.prefix(kept))
            smaller.headers += [
                WireHeader("dlq_value_bytes", String(value.count)),
                WireHeader("dlq_value_sha256", SHA256.hash(data: value).hex),
            ]
            return smaller
        }
        smaller.value = nil
        smaller.headers = letter.headers.filter { $0.name.hasPrefix("dlq_") }
        if let key = letter.key, key.count > largestKey { smaller.key = Array(key.prefix(largestKey)) }
        return smaller == letter ? nil : smaller
    }

    private static func size(_ letter: OutboundMessage) -> Int {
        letter.headers.reduce((letter.key?.count ?? 0) + (letter.value?.count ?? 0)) { size, header in
            size + header.name.utf8.count + (header.value?.count ?? 0) + 10
        }
    }
}
