// SPDX-License-Identifier: Apache-2.0

import Contracts
import Glibc
import Messaging
import Storage

/// What one record came to: its row in the inbox, and the messages in the outbox. A class, because copying it costs more
/// than making it.
final class Entry {
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

/// What the inbox keeps of a decision: enough to answer a repeated command with the very same reply, and to tell people
/// later what was decided (`identitybus explain`).
public struct Receipt: Sendable, Hashable {
    public var app = ""
    public var source = ""
    public var id = ""
    public var type = ""
    public var subject: String?
    public var reason: String?
    /// Events and commands to other services: their types and data.
    public var told: [Told] = []
    /// The reply, without its signature.
    public var reply: OutboxRecord?
    /// The reply's number among the messages that the command led to; its id follows from it.
    public var replyIndex = 0

    public struct Told: Sendable, Hashable {
        public var role: OutboxRecord.Role
        public var type: String
        public var data: [UInt8]
    }

    public init() {}

    /// - Parameter replyIndex: which of the messages answers the command, if one does.
    init(
        of attributes: EventAttributes, app: String, reason: String?, messages: [OutboxRecord], replyIndex: Int?
    ) {
        self.app = app
        source = attributes.source
        id = attributes.id
        type = attributes.type
        subject = attributes.subject
        self.reason = reason
        for (index, message) in messages.enumerated() {
            switch message.role {
            case .event, .command: if let told = Told(message) { self.told.append(told) }
            case .reply, .confidentialReply:
                guard index == replyIndex else { break }
                reply = message
                reply?.record.headers.removeAll { $0.name == HeaderName.signature }
                self.replyIndex = index
            case .deadLetter: break
            }
        }
    }
}

extension Receipt.Told {
    /// `nil` when it is not an envelope as we write it: attributes first, `data` last. (Neither of the two marks can stand
    /// inside a JSON string, where quotes are escaped.)
    init?(_ message: OutboxRecord) {
        guard let value = message.value, value.last == UInt8(ascii: "}"),
            let type = value.end(of: #","type":""#),
            let typeEnd = value[type...].firstIndex(of: UInt8(ascii: "\"")),
            let data = value.end(of: #","data":"#)
        else { return nil }
        role = message.role
        self.type = String(decoding: value[type..<typeEnd], as: UTF8.self)
        self.data = Array(value[data..<value.count - 1])
    }
}

extension [UInt8] {
    /// Where the first place of the text ends.
    fileprivate func end(of text: StaticString) -> Int? {
        withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return nil }
            let (count, first) = (text.utf8CodeUnitCount, Int32(text.utf8Start.pointee))
            var index = 0
            while index + count <= bytes.count,
                let found = memchr(start + index, first, bytes.count - count - index + 1)
            {
                index = UnsafeRawPointer(found) - start
                if memcmp(found, text.utf8Start, count) == 0 { return index + count }
                index += 1
            }
            return nil
        }
    }
}
