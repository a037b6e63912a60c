// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Storage

/// What one record came to: its row in the journal, and the messages in it.
struct Entry {
    var position: JournalPosition
    var key: CommandKey?
    var digest: [UInt8]
    var type: String
    var subject: String?
    var outcome: String
    var reason: String?
    var messages: [OutboxRecord]
    /// When the record was written, by the log's word; milliseconds since 1970.
    var loggedAt: Int64

    /// The partition that the record was read from.
    var place: TopicPartition { TopicPartition(topic: position.topic, partition: position.partition) }

    func isOfSamePartition(as other: Entry) -> Bool {
        position.partition == other.position.partition && position.topic == other.position.topic
    }

    init(
        _ record: KafkaRecord, incarnation: Int64, type: String, outcome: String, reason: String? = nil,
        _ messages: [OutboxRecord]
    ) {
        position = JournalPosition(
            topic: record.topicPartition.topic, partition: record.topicPartition.partition, incarnation: incarnation,
            offset: record.offset)
        loggedAt = record.timestampMs
        digest = []
        self.type = type
        self.outcome = outcome
        self.reason = reason
        self.messages = messages
    }

    func row(now: Timestamp, vault: OutboxVault) throws -> JournalEntry {
        JournalEntry(
            position: position, key: key, digest: digest, type: type, subject: subject, outcome: outcome,
            reason: reason, messages: try vault.close(messages),
            loggedAt: loggedAt < 0 ? now.milliseconds : min(loggedAt, now.milliseconds),
            decidedAt: now.milliseconds)
    }
}

extension Outcome {
    /// As it stands in the journal and in metrics.
    var name: String {
        switch self {
        case .succeeded: "succeeded"
        case .rejected: "rejected"
        case .expired: "expired"
        case .pending, .begun: "pending"
        case .noted: "noted"
        }
    }

    /// What a reply says. Nobody is told of `noted`, but who tries such a command without effect.
    var status: ReplyStatus {
        switch self {
        case .succeeded, .noted: .succeeded
        case .rejected: .rejected
        case .expired: .expired
        case .pending, .begun: .pending
        }
    }

    var isFinal: Bool {
        switch self {
        case .succeeded, .rejected, .expired: true
        case .pending, .begun, .noted: false
        }
    }

    /// Why it was rejected.
    var reason: String? {
        if case .rejected(let rejection) = self { rejection.reason.rawValue } else { nil }
    }
}
