// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Crypto
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
    /// What the receipt need not keep of its reply.
    var replyParts: ReplyParts?
    /// When the record was written, by the log's word; milliseconds since 1970.
    var loggedAt: Int64
    /// What `key` is stored under, and the decisions before this one, see ``DecisionChain``.
    var stored: StoredKey?
    var before: [UInt8] = []

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
        return InboxRow(
            position: position, key: key, stored: stored, digest: digest, verdict: outcome,
            receipt: try vault.close(receipt, replyParts),
            loggedAt: loggedAt < 0 ? now.milliseconds : min(loggedAt, now.milliseconds),
            decidedAt: now.milliseconds, decider: decider, before: before)
    }

    /// `nil` when there is nothing to publish.
    func outboxRow(vault: OutboxVault) throws -> OutboxRow? {
        messages.isEmpty ? nil : OutboxRow(position: position, messages: try vault.close(messages))
    }
}

/// A record to publish, exactly as it will stand on its topic. The outbox keeps it so: publishing it again gives the
/// same id and the same bytes.
public struct OutboxRecord: Sendable, Hashable {
    public enum Role: UInt8, Sendable, Hashable {
        case event = 1
        case reply = 2
        case deadLetter = 3
        /// For another service, or for this one later.
        case command = 4
        /// A reply with a secret in it, which the store keeps encrypted.
        case confidentialReply = 5
    }

    public var role: Role
    public var record: Record
    /// A reply to a topic that an outsider named. When that topic refuses it for long, it becomes a dead letter;
    /// everything else waits for as long as it takes.
    public var mayBeGivenUp: Bool

    public init(_ role: Role, _ record: Record, mayBeGivenUp: Bool = false) {
        self.role = role
        self.record = record
        self.mayBeGivenUp = mayBeGivenUp
    }

    var isReply: Bool { role == .reply || role == .confidentialReply }

    public var topic: String { record.topic }
    public var key: [UInt8]? { record.key }
    public var headers: [Header] { record.headers }
    public var value: [UInt8]? { record.value }
}

/// The outbox's `messages` column: the messages of one command, one after the other, every part with its length in
/// front (little endian; -1 stands for an absent key or value). Binary because dead letters hold arbitrary bytes and
/// because a message must come out byte for byte as it went in.
public enum OutboxCodec {
    public struct Corrupted: Error, Sendable, CustomStringConvertible {
        public var description: String { "a row of the store holds messages in a form that this version does not know" }
    }

    public static func encode(_ messages: [OutboxRecord]) -> [UInt8] {
        var bytes: [UInt8] = []
        // Headers of our own messages take some 200 bytes, keys some 50.
        bytes.reserveCapacity(messages.reduce(5) { $0 + 256 + $1.topic.utf8.count + ($1.value?.count ?? 0) })
        bytes.append(format)
        append(Int32(messages.count), to: &bytes)
        for message in messages {
            bytes.append(message.role.rawValue | (message.mayBeGivenUp ? givenUp : 0))
            append(message.topic, to: &bytes)
            append(message.key, to: &bytes)
            append(Int32(message.headers.count), to: &bytes)
            for header in message.headers {
                if let raw = header.rawName { append(raw, to: &bytes) } else { append(header.name, to: &bytes) }
                append(header.value, to: &bytes)
            }
            append(message.value, to: &bytes)
        }
        return bytes
    }

    /// - Throws: `Corrupted`.
    public static func decode(_ bytes: [UInt8]) throws(Corrupted) -> [OutboxRecord] {
        var reader = Reader(bytes: bytes)
        guard try reader.byte() == format else { throw Corrupted() }
        let count = try reader.integer()
        guard count >= 0 else { throw Corrupted() }
        var messages: [OutboxRecord] = []
        for _ in 0..<count {
            let byte = try reader.byte()
            guard let role = OutboxRecord.Role(rawValue: byte & ~givenUp) else { throw Corrupted() }
            let topic = try reader.text()
            let key = try reader.bytesOrNil()
            let headerCount = try reader.integer()
            guard headerCount >= 0 else { throw Corrupted() }
            var headers: [Header] = []
            for _ in 0..<headerCount {
                guard let name = try reader.bytesOrNil() else { throw Corrupted() }
                headers.append(Header(nameBytes: name, try reader.bytesOrNil()))
            }
            messages.append(
                OutboxRecord(
                    role, Record(topic: topic, key: key, value: try reader.bytesOrNil(), headers: headers),
                    mayBeGivenUp: byte & givenUp != 0))
        }
        guard reader.isAtEnd else { throw Corrupted() }
        return messages
    }

    /// The first byte.
    private static let format: UInt8 = 1
    /// Stands in the role's byte.
    private static let givenUp: UInt8 = 0x80

    private static func append(_ value: Int32, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    private static func append(_ text: String, to bytes: inout [UInt8]) {
        append(Int32(text.utf8.count), to: &bytes)
        bytes.append(contentsOf: text.utf8)
    }

    private static func append(_ part: [UInt8]?, to bytes: inout [UInt8]) {
        append(Int32(part?.count ?? -1), to: &bytes)
        if let part { bytes.append(contentsOf: part) }
    }

    private struct Reader {
        var bytes: [UInt8]
        var position = 0

        var isAtEnd: Bool { position == bytes.count }

        mutating func byte() throws(Corrupted) -> UInt8 {
            guard position < bytes.count else { throw Corrupted() }
            defer { position += 1 }
            return bytes[position]
        }

        mutating func integer() throws(Corrupted) -> Int {
            var value: UInt32 = 0
            for shift in 0..<4 { value |= UInt32(try byte()) << UInt32(8 * shift) }
            return Int(Int32(bitPattern: value))
        }

        mutating func bytesOrNil() throws(Corrupted) -> [UInt8]? {
            let count = try integer()
            if count == -1 { return nil }
            guard count >= 0, count <= bytes.count - position else { throw Corrupted() }
            defer { position += count }
            return Array(bytes[position..<position + count])
        }

        mutating func text() throws(Corrupted) -> String {
            guard let part = try bytesOrNil(), let text = String(validating: part, as: UTF8.self) else {
                throw Corrupted()
            }
            return text
        }
    }
}

/// Keeps confidential replies encrypted while they stand in the store (AES-GCM, under a key that comes from the
/// deployment's internal key).
struct OutboxVault {
    /// The first closes, all of them open.
    private let keys: [SymmetricKey]
    let packing = ReceiptPacking()

    /// - Parameter keys: without any there are no confidential messages: services that write them need them.
    init(_ keys: DeploymentKeys) { self.keys = keys.checking(.store) }

    struct Sealed: Error, CustomStringConvertible {
        var description: String {
            "a confidential reply was stored under another internal key: name it in IDENTITYBUS_PREVIOUS_INTERNAL_KEYS"
        }
    }

    struct NoKey: Error, CustomStringConvertible {
        var description: String { "a confidential reply cannot be stored: IDENTITYBUS_INTERNAL_KEY is not set" }
    }

    /// The outbox's form of the messages.
    func close(_ messages: [OutboxRecord]) throws -> [UInt8] {
        guard messages.contains(where: { $0.role == .confidentialReply }) else { return OutboxCodec.encode(messages) }
        return OutboxCodec.encode(
            try messages.map { message in
                guard message.role == .confidentialReply, let value = message.value else { return message }
                var sealed = message
                sealed.record.value = try seal(value)
                return sealed
            })
    }

    /// The form in which a record is kept that was read; it may hold secrets. Without a key, it stands as it did in its
    /// topic.
    func close(read record: Record) throws -> [UInt8] {
        try close([OutboxRecord(keys.isEmpty ? .command : .confidentialReply, record)])
    }

    /// The inbox's form of a receipt.
    /// - Parameter parts: what follows from the command.
    func close(_ receipt: Receipt, _ parts: ReplyParts?) throws -> [UInt8] {
        try ReceiptCodec.encode(receipt, parts, packing: packing, seal: seal)
    }

    /// The reply in a receipt; `nil` when there is none, or no key of now opens it.
    /// - Parameter parts: what follows from the command.
    /// - Throws: `OutboxCodec.Corrupted`.
    func reply(
        in receipt: [UInt8], _ parts: (Receipt) -> ReplyParts
    ) throws(OutboxCodec.Corrupted) -> OutboxRecord? {
        let (receipt, isOpen) = try ReceiptCodec.decode(
            receipt, parts, packing: packing, open: open(sealed:))
        return isOpen ? receipt.reply : nil
    }

    private func seal(_ value: [UInt8]) throws -> [UInt8] {
        guard let key = keys.first, let box = try AES.GCM.seal(value, using: key).combined else { throw NoKey() }
        return Array(box)
    }

    /// All messages.
    /// - Throws: `OutboxCodec.Corrupted`; ``Sealed`` when one cannot be opened.
    func open(_ bytes: [UInt8]) throws -> [OutboxRecord] {
        try OutboxCodec.decode(bytes).map { message in
            guard let opened = opened(message) else { throw Sealed() }
            return opened
        }
    }

    /// The last message, if it is a reply and can be opened.
    /// - Throws: `OutboxCodec.Corrupted`.
    func lastReply(_ bytes: [UInt8]) throws(OutboxCodec.Corrupted) -> OutboxRecord? {
        guard let last = try OutboxCodec.decode(bytes).last, last.isReply else { return nil }
        return opened(last)
    }

    private func opened(_ message: OutboxRecord) -> OutboxRecord? {
        guard message.role == .confidentialReply, let value = message.value else { return message }
        guard let plain = open(sealed: value) else { return nil }
        var opened = message
        opened.record.value = plain
        return opened
    }

    private func open(sealed value: [UInt8]) -> [UInt8]? {
        guard let box = try? AES.GCM.SealedBox(combined: value) else { return nil }
        for key in keys {
            if let plain = try? AES.GCM.open(box, using: key) { return Array(plain) }
        }
        return nil
    }
}
