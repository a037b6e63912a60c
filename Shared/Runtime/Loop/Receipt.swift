// SPDX-License-Identifier: Apache-2.0

import Contracts
import Glibc
import Storage

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

/// What a receipt leaves out of the reply, because it follows from the command and the inbox row. Where it is not all
/// known (``Receipt`` for people), it is left empty.
struct ReplyParts {
    /// What stands for what: control characters, which stand in no JSON text.
    private let parts: [(mark: UInt8, text: [UInt8])]

    init(key: CommandKey? = nil, index: Int = 0, subject: String?, digest: String, decidedAt: Int64, id: String) {
        let replyID = key.map {
            DerivedID.message(app: $0.app, source: $0.source, commandID: $0.id, index: index)
        }
        let time = Timestamp(milliseconds: decidedAt).rfc3339
        parts = [(1, replyID ?? ""), (2, digest), (3, time), (4, id), (5, subject ?? "")].map {
            ($0.0, Array($0.1.utf8))
        }
    }

    /// - Returns: `nil` when the value is no JSON text of ours.
    func removed(from value: [UInt8]) -> [UInt8]? {
        // What is short is not worth a mark.
        let sought = parts.filter { $0.text.count >= 8 }
        // Most bytes begin none of them: a bit for each first byte, of its lower six bits.
        let begins = sought.reduce(into: UInt64(0)) { $0 |= 1 << UInt64($1.text[0] & 63) }
        var result: [UInt8] = []
        result.reserveCapacity(value.count)
        let isText = value.withUnsafeBytes { value in
            var (copied, index) = (0, 0)
            while index < value.count {
                let byte = value[index]
                guard byte > 5 else { return false }
                let start = index
                index += 1
                guard begins >> UInt64(byte & 63) & 1 == 1 else { continue }
                for part in sought where Self.stands(part.text, in: value, at: start) {
                    result.append(contentsOf: value[copied..<start])
                    result.append(part.mark)
                    index = start + part.text.count
                    copied = index
                    break
                }
            }
            result.append(contentsOf: value[copied...])
            return true
        }
        return isText ? result : nil
    }

    private static func stands(_ text: [UInt8], in value: UnsafeRawBufferPointer, at index: Int) -> Bool {
        guard text.count <= value.count - index, let start = value.baseAddress else { return false }
        return memcmp(text, start + index, text.count) == 0
    }

    func restored(in value: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(2 * value.count)
        for byte in value {
            if byte <= 5, let part = parts.first(where: { $0.mark == byte }) {
                result.append(contentsOf: part.text)
            } else {
                result.append(byte)
            }
        }
        return result
    }
}
