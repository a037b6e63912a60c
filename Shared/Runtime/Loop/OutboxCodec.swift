// SPDX-License-Identifier: Apache-2.0

import Contracts

/// The journal's `messages` column: the messages of one command, one after the other, every part with its length in
/// front (little endian; -1 stands for an absent key or value). Binary because dead letters hold arbitrary bytes and
/// because a message must come out byte for byte as it went in.
public enum OutboxCodec {
    public struct Corrupted: Error, Sendable, CustomStringConvertible {
        public var description: String { "the journal's messages column is not what this version writes" }
    }

    public static func encode(_ messages: [OutboundMessage]) -> [UInt8] {
        var bytes: [UInt8] = []
        // Headers of our own messages take some 200 bytes, keys some 50.
        bytes.reserveCapacity(messages.reduce(5) { $0 + 256 + $1.topic.utf8.count + ($1.value?.count ?? 0) })
        bytes.append(2)  // the format's version
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
    public static func decode(_ bytes: [UInt8]) throws(Corrupted) -> [OutboundMessage] {
        var reader = Reader(bytes: bytes)
        let version = try reader.byte()
        guard version == 1 || version == 2 else { throw Corrupted() }
        let count = try reader.integer()
        guard count >= 0 else { throw Corrupted() }
        var messages: [OutboundMessage] = []
        for _ in 0..<count {
            let byte = try reader.byte()
            guard let role = OutboundMessage.Role(rawValue: byte & ~givenUp) else { throw Corrupted() }
            let topic = try reader.text()
            let key = try reader.bytesOrNil()
            let headerCount = try reader.integer()
            guard headerCount >= 0 else { throw Corrupted() }
            var headers: [WireHeader] = []
            for _ in 0..<headerCount {
                guard let name = try reader.bytesOrNil() else { throw Corrupted() }
                headers.append(WireHeader(nameBytes: name, try reader.bytesOrNil()))
            }
            var message = OutboundMessage(
                role: role, topic: topic, key: key, headers: headers, value: try reader.bytesOrNil(),
                mayBeGivenUp: byte & givenUp != 0)
            // The first version did not say who named a reply's topic.
            if version == 1 { message.mayBeGivenUp = message.isReply && !topic.hasSuffix("identity.replies.v1") }
            messages.append(message)
        }
        guard reader.isAtEnd else { throw Corrupted() }
        return messages
    }

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
