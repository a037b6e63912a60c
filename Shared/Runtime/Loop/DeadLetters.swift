// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Messaging

extension MessageWriter {
    /// What becomes of a record that is not decided.
    func deadLetter(_ record: KafkaRecord, _ cause: Refusal.Cause, now: Timestamp) -> OutboxRecord {
        let letter = DeadLetter(
            reason: cause.reason, step: cause.step, error: cause.detail, attempts: cause.attempts,
            topic: record.topicPartition.topic, partition: record.topicPartition.partition, offset: record.offset,
            timestampMs: record.timestampMs, group: topics.group(service))
        return DeadLetterSize.fitting(
            OutboxRecord(
                .deadLetter,
                Record(
                    topic: topics.deadLetters(service), key: record.key, value: record.value,
                    headers: record.headers + letter.headers(now: now))))
    }

    /// What takes the place of a message that its topic will not have: a dead letter that holds it, but no secret; of a
    /// dead letter, a smaller one.
    /// - Returns: `nil` when there is no smaller one.
    func undeliverable(_ message: OutboxRecord, _ error: KafkaError, now: Timestamp) -> OutboxRecord? {
        guard message.role != .deadLetter else { return DeadLetterSize.smaller(message) }
        let letter = DeadLetter(
            reason: "UNDELIVERABLE", step: .publish, error: error.description, topic: message.topic, partition: -1,
            offset: -1, timestampMs: -1, group: topics.group(service))
        var record = message.record
        record.topic = topics.deadLetters(service)
        record.headers += letter.headers(now: now)
        if message.role == .confidentialReply {
            record.value = nil
            record.headers.append(Header("dlq_value", "withheld: it holds a secret"))
        }
        return DeadLetterSize.fitting(OutboxRecord(.deadLetter, record))
    }
}

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
    static func fitting(_ letter: OutboxRecord) -> OutboxRecord {
        var letter = letter
        while size(letter) > limit, let next = smaller(letter) { letter = next }
        return letter
    }

    /// The next smaller form: with the beginning of the value, then without value and without what is not ours.
    static func smaller(_ letter: OutboxRecord) -> OutboxRecord? {
        var smaller = letter
        if let value = letter.value, value.count > kept {
            smaller.record.value = Array(value.prefix(kept))
            smaller.record.headers += [
                Header("dlq_value_bytes", String(value.count)),
                Header("dlq_value_sha256", SHA256.hash(data: value).hex),
            ]
            return smaller
        }
        smaller.record.value = nil
        smaller.record.headers = letter.headers.filter { $0.name.hasPrefix("dlq_") }
        if let key = letter.key, key.count > largestKey { smaller.record.key = Array(key.prefix(largestKey)) }
        return smaller == letter ? nil : smaller
    }

    private static func size(_ letter: OutboxRecord) -> Int {
        letter.headers.reduce((letter.key?.count ?? 0) + (letter.value?.count ?? 0)) { size, header in
            size + header.name.utf8.count + (header.value?.count ?? 0) + 10
        }
    }

}
