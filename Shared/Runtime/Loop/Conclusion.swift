// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
import Messaging
import Storage

/// What one record came to: its row in the journal, and the messages in it.
struct Conclusion {
    var position: JournalPosition
    /// The record's time in Kafka, -1 when it has none.
    var loggedAt: Int64 = -1
    var key: CommandKey?
    var digest: [UInt8]
    var type: String
    var subject: String?
    var outcome: String
    var reason: String?
    var messages: [OutboundMessage]

    init(
        _ position: JournalPosition, type: String, outcome: String, reason: String? = nil, _ messages: [OutboundMessage]
    ) {
        self.position = position
        digest = []
        self.type = type
        self.outcome = outcome
        self.reason = reason
        self.messages = messages
    }

    func entry(now: Timestamp, vault: OutboxVault) throws -> JournalEntry {
        JournalEntry(
            position: position, key: key, digest: digest, type: type, subject: subject, outcome: outcome,
            reason: reason, messages: try vault.close(messages), loggedAt: loggedAt < 0 ? now.milliseconds : loggedAt,
            decidedAt: now.milliseconds)
    }
}
