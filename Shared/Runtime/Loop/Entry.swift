// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Storage

/// What one record came to: its row in the inbox, and the messages in the outbox.
struct Entry {
    var position: LogPosition
    var key: CommandKey?
    var digest: [UInt8]
    var type: String
    var outcome: Verdict
    var reason: String?
    var messages: [OutboxRecord]
    /// What is kept beyond publishing.
    var receipt = Receipt()
    /// When the record was written, by the log's word; milliseconds since 1970.
    var loggedAt: Int64

    /// The partition that the record was read from.
    var place: TopicPartition { position.log.partition }

    init(
        _ record: KafkaRecord, incarnation: Int64, type: String, outcome: Verdict, reason: String? = nil,
        _ messages: [OutboxRecord]
    ) {
        position = LogPosition(log: LogID(record.topicPartition, incarnation: incarnation), offset: record.offset)
        loggedAt = record.timestampMs
        digest = []
        self.type = type
        self.outcome = outcome
        self.reason = reason
        self.messages = messages
    }

    func inboxRow(now: Timestamp, decider: Int64, vault: OutboxVault) throws -> InboxRow {
        var receipt = receipt
        receipt.type = type
        receipt.reason = reason
        let parts = ReplyParts(
            key: key, index: receipt.replyIndex, subject: receipt.subject, digest: CommandDigest.text(digest),
            decidedAt: now.milliseconds, id: receipt.id)
        return InboxRow(
            position: position, key: key, digest: digest, verdict: outcome,
            receipt: try vault.close(receipt, parts),
            loggedAt: loggedAt < 0 ? now.milliseconds : min(loggedAt, now.milliseconds),
            decidedAt: now.milliseconds, decider: decider)
    }

    /// `nil` when there is nothing to publish.
    func outboxRow(vault: OutboxVault) throws -> OutboxRow? {
        messages.isEmpty ? nil : OutboxRow(position: position, messages: try vault.close(messages))
    }
}

extension Outcome {
    /// As it stands in the inbox and in metrics.
    var verdict: Verdict {
        switch self {
        case .succeeded: .succeeded
        case .rejected: .rejected
        case .expired: .expired
        case .pending, .begun: .pending
        case .noted: .noted
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
