// SPDX-License-Identifier: Apache-2.0

public import Crypto
public import WireJSON

/// Ids that follow from what caused them, so that deciding or publishing twice gives the same id.
///
/// Whoever knows a command can compute the ids of the messages it leads to. The ids of what it makes (users, profiles,
/// aliases) are keyed by a salt that only the service's store knows, so that nobody outside can tell them beforehand, or
/// find them for a command that stands in a log.
public enum DerivedID {
    /// The salt of a store, with what follows from it alone computed once.
    public struct Salt: Sendable {
        private let start: HMAC<SHA256>

        public init(_ key: SymmetricKey) { start = HMAC(key: key) }

        fileprivate func code(_ parts: [String]) -> HMAC<SHA256>.MAC {
            var code = start
            DerivedID.withDomain(parts) { code.update(data: $0) }
            return code.finalize()
        }
    }

    /// A person's id: 24 lower-case hex characters, from the HMAC-SHA256 of the creating command's key (L20). `counter`
    /// numbers the attempts, for the day that another system has given the id before (L156).
    public static func user(salt: Salt, of command: CommandKey, counter: Int = 0) -> UserID {
        let parts = ["user-id", command.app.text, command.source.text, command.id.text]
        return UserID(salt.code(parts + (counter == 0 ? [] : [String(counter)])).prefix(12).hex)
    }

    /// The id of message number `index` that a command led to: UUIDv5 of the command's key and the index.
    public static func message(of command: CommandKey, index: Int) -> String {
        uuid5(["message", command.app.text, command.source.text, command.id.text, String(index)])
    }

    /// The id of forward number `number` of a command.
    public static func forward(of command: CommandKey, number: Int) -> CommandID {
        CommandID(uuid5(["forward", command.app.text, command.source.text, command.id.text, String(number)]))
    }

    /// The id of a later answer to a command: the final one, or one that is `pending` still.
    public static func settlement(of command: CommandKey, isFinal: Bool = true) -> String {
        uuid5([isFinal ? "settlement" : "interim", command.app.text, command.source.text, command.id.text])
    }

    /// The MPID of a profile that a command makes: 64 bits of the HMAC-SHA256 of the command's key, well mixed in all of
    /// them. `counter` numbers the attempts, for the day that a number is taken already (S2).
    public static func mpid(salt: Salt, of command: CommandKey, counter: Int) -> MPID {
        var counter = counter
        while true {
            let digest = salt.code(["mpid", command.app.text, command.source.text, command.id.text, String(counter)])
            if let mpid = MPID(digest.prefix(8).reduce(Int64(0)) { $0 << 8 | Int64($1) }) { return mpid }
            counter += 1 << 32
        }
    }

    /// The id of the alias that a command asked for: a UUID of version 8 (RFC 9562), from an HMAC-SHA256.
    public static func alias(salt: Salt, of command: CommandKey) -> AliasID {
        AliasID(
            uuid(salt.code(["alias", command.app.text, command.source.text, command.id.text]).prefix(16), version: 8))
    }

    /// The id of a message about a record whose sender is not known: UUIDv5 of the record's coordinates. It cannot be
    /// made to collide with an id derived from a command.
    /// - Parameter incarnation: of the log. One that was made anew has another record at the same offset.
    public static func message(
        cluster: String, topic: String, partition: Int32, incarnation: Int64, offset: Int64, index: Int
    ) -> String {
        let log = ["record", cluster, topic, String(partition)]
        return uuid5(
            log + [String(offset), String(index)] + (incarnation > 0 ? [String(incarnation)] : []))
    }

    /// The ids of the span in which a service decides a record, and of the trace where it begins one: they stand in what comes
    /// of the record, which is the same however often it is decided. Whoever reads the record can compute them; they open
    /// nothing.
    /// - Parameter time: of the record, by its log: one that was made anew has another record at the same offset.
    public static func span(
        service: String, topic: String, partition: Int32, offset: Int64, time: Int64
    ) -> (span: UInt64, traceHigh: UInt64, traceLow: UInt64) {
        withDomain(["span", service, topic, String(partition), String(offset), String(time)]) { text in
            SHA256.hash(data: text).withUnsafeBytes { digest in
                func number(_ place: Int) -> UInt64 {
                    // None of the ids may be 0.
                    max(1, digest.loadUnaligned(fromByteOffset: place * 8, as: UInt64.self).bigEndian)
                }
                return (number(0), number(1), number(2))
            }
        }
    }

    /// Lengths are part of the text, so that no two lists of parts give one name.
    private static func withDomain<Result>(
        _ parts: [String], after lead: [UInt8] = [], _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        // A length has at most 19 digits.
        let capacity = parts.reduce(lead.count) { $0 + $1.utf8.count + 21 }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: capacity) { text in
            var end = text.initialize(fromContentsOf: lead)
            func append(_ bytes: String.UTF8View) {
                end = text[end...].initialize(fromContentsOf: bytes)
            }
            for part in parts {
                if end > lead.count { append("\n".utf8) }
                append(String(part.utf8.count).utf8)
                append(":".utf8)
                append(part.utf8)
            }
            return body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(text)[..<end]))
        }
    }

    /// The namespace for our UUIDv5 names: an arbitrary constant, never to be changed.
    private static let namespace: [UInt8] = [
        0x8e, 0x0c, 0x5f, 0x52, 0x1b, 0x6d, 0x4a, 0x3e, 0x9a, 0x57, 0x2f, 0x60, 0xd1, 0x7c, 0x43, 0x88,
    ]

    private static func uuid5(_ parts: [String]) -> String {
        // SHA-1 is what UUIDv5 is defined with (RFC 9562); nothing here relies on its collision resistance.
        withDomain(parts, after: namespace) { text in
            Insecure.SHA1.hash(data: text).withUnsafeBytes { uuid($0, version: 5) }
        }
    }

    /// The UUID of that version with the first 16 of these bytes, as far as its form leaves them free.
    public static func uuid(_ bytes: some Sequence<UInt8>, version: UInt8) -> String {
        String(unsafeUninitializedCapacity: 36) { text in
            var count = 0
            for (index, byte) in bytes.enumerated() {
                if index == 16 { break }
                if index == 4 || index == 6 || index == 8 || index == 10 {
                    text[count] = UInt8(ascii: "-")
                    count += 1
                }
                let byte =
                    switch index {
                    case 6: byte & 0x0F | version << 4
                    case 8: byte & 0x3F | 0x80
                    default: byte
                    }
                (text[count], text[count + 1]) = hexDigits(byte)
                count += 2
            }
            return count
        }
    }
}

/// What a command says, as 32 bytes: SHA-256 of its type, a zero byte and its canonical data. Two commands under one id
/// are the same one when their digests are equal, and a reply names the digest of the command that it answers.
public enum CommandDigest {
    public static func bytes(type: String, data: JSONView) -> [UInt8] {
        data.withCanonicalBytes { bytes(type: type, canonical: $0) }
    }

    public static func bytes(type: String, data: JSONValue) -> [UInt8] {
        data.canonicalBytes().withUnsafeBytes { bytes(type: type, canonical: $0) }
    }

    private static func bytes(type: String, canonical: UnsafeRawBufferPointer) -> [UInt8] {
        var hash = SHA256()
        var type = type
        type.withUTF8 { hash.update(bufferPointer: UnsafeRawBufferPointer($0)) }
        withUnsafeBytes(of: UInt8(0)) { hash.update(bufferPointer: $0) }
        hash.update(bufferPointer: canonical)
        return hash.finalize().withUnsafeBytes { Array($0) }
    }

    /// As it stands in a reply: lower-case hex.
    public static func text(type: String, data: JSONValue) -> String { text(bytes(type: type, data: data)) }

    public static func text(_ digest: [UInt8]) -> String { digest.hex }
}

/// The byte as two lower-case digits.
private func hexDigits(_ byte: UInt8) -> (UInt8, UInt8) {
    func digit(_ value: UInt8) -> UInt8 { value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10 }
    return (digit(byte >> 4), digit(byte & 15))
}

extension Sequence<UInt8> {
    /// Two lower-case hex digits for each byte.
    public var hex: String {
        let bytes = Array(self)
        return String(unsafeUninitializedCapacity: 2 * bytes.count) { text in
            for (index, byte) in bytes.enumerated() { (text[2 * index], text[2 * index + 1]) = hexDigits(byte) }
            return 2 * bytes.count
        }
    }
}

extension [UInt8] {
    /// Reads what ``Swift/Sequence/hex`` writes, and capital letters. `nil` for anything else.
    public init?(hex text: some StringProtocol) {
        func value(_ digit: UInt8) -> UInt8? {
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
            default: nil
            }
        }
        var digits = text.utf8.makeIterator()
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count / 2)
        while let first = digits.next() {
            guard let high = value(first), let low = digits.next().flatMap(value) else { return nil }
            bytes.append(high << 4 | low)
        }
        self = bytes
    }
}

extension String {
    /// A secret as its file means it: editors and `echo` end a file with a line feed.
    public var withoutFinalNewlines: String { String(reversed().drop { $0.isNewline }.reversed()) }
}
