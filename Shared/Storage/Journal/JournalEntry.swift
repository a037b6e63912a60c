// SPDX-License-Identifier: Apache-2.0

/// One decided input message: inbox, outbox, audit record and receipt at once.
public struct JournalEntry: Sendable, Hashable {
    public let position: JournalPosition
    /// The command's key. Nil for input that was dead-lettered before it was authenticated.
    public let key: CommandKey?
    /// The hash of the command's content, which tells a repeated command from a reused id.
    public let digest: [UInt8]
    public let type: String
    public let subject: String?
    public let outcome: String
    public let reason: String?
    /// The messages to publish, encoded by the caller. May be empty.
    public let messages: [UInt8]
    /// The time that Kafka gave to the record, in milliseconds since 1970.
    public let loggedAt: Int64
    /// When it was decided, in milliseconds since 1970.
    public let decidedAt: Int64

    public init(
        position: JournalPosition, key: CommandKey?, digest: [UInt8], type: String, subject: String?,
        outcome: String, reason: String?, messages: [UInt8], loggedAt: Int64, decidedAt: Int64
    ) {
        self.position = position
        self.key = key
        self.digest = digest
        self.type = type
        self.subject = subject
        self.outcome = outcome
        self.reason = reason
        self.messages = messages
        self.loggedAt = loggedAt
        self.decidedAt = decidedAt
    }
}
