// SPDX-License-Identifier: Apache-2.0

public import Crypto

/// Ids that follow from what caused them, so that deciding or publishing twice gives the same id.
///
/// Whoever knows a command can compute the ids of the messages it leads to. The ids of what it makes (users, profiles,
/// aliases) are keyed by a salt that only the service's store knows, so that nobody outside can tell them beforehand, or
/// find them for a command that stands in a log.
public enum DerivedID {
    /// A person's id: 24 lower-case hex characters, from the HMAC-SHA256 of the creating command's key (L20).
    public static func user(salt: SymmetricKey, app: AppID, source: SourceID, commandID: CommandID) -> UserID {
        UserID(code(salt, domain("user-id", app.text, source.text, commandID.text)).prefix(12).hex)
    }

    /// The id of message number `index` that a command led to: UUIDv5 of the command's key and the index.
    public static func message(app: AppID, source: SourceID, commandID: CommandID, index: Int) -> String {
        uuid5(domain("message", app.text, source.text, commandID.text, String(index)))
    }

    /// The id of forward number `number` of a command.
    public static func forward(app: AppID, source: SourceID, commandID: CommandID, number: Int) -> CommandID {
        CommandID(uuid5(domain("forward", app.text, source.text, commandID.text, String(number))))
    }

    /// The id of a later answer to a command: the final one, or one that is `pending` still.
    public static func settlement(app: AppID, source: SourceID, commandID: CommandID, isFinal: Bool = true) -> String {
        uuid5(domain(isFinal ? "settlement" : "interim", app.text, source.text, commandID.text))
    }

    /// The MPID of a profile that a command makes: 64 bits of the HMAC-SHA256 of the command's key, well mixed in all of
    /// them. `counter` numbers the attempts, for the day that a number is taken already (S2).
    public static func mpid(salt: SymmetricKey, app: AppID, source: SourceID, commandID: CommandID, counter: Int)
        -> MPID
    {
        var counter = counter
        while true {
            let digest = code(salt, domain("mpid", app.text, source.text, commandID.text, String(counter)))
            if let mpid = MPID(digest.prefix(8).reduce(Int64(0)) { $0 << 8 | Int64($1) }) { return mpid }
            counter += 1 << 32
        }
    }

    /// The id of the alias that a command asked for: a UUID of version 8 (RFC 9562), from an HMAC-SHA256.
    public static func alias(salt: SymmetricKey, app: AppID, source: SourceID, commandID: CommandID) -> AliasID {
        AliasID(uuid(code(salt, domain("alias", app.text, source.text, commandID.text)).prefix(16), version: 8))
    }

    /// The id of a message about a record whose sender is not known: UUIDv5 of the record's coordinates. It cannot be
    /// made to collide with an id derived from a command.
    public static func message(cluster: String, topic: String, partition: Int32, offset: Int64, index: Int) -> String {
        uuid5(domain("record", cluster, topic, String(partition), String(offset), String(index)))
    }

    /// Lengths are part of the text, so that no two lists of parts give one name.
    private static func domain(_ parts: String...) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(parts.reduce(0) { $0 + $1.utf8.count + 8 })
        for part in parts {
            if !text.isEmpty { text.append(UInt8(ascii: "\n")) }
            text.append(contentsOf: String(part.utf8.count).utf8)
            text.append(UInt8(ascii: ":"))
            text.append(contentsOf: part.utf8)
        }
        return text
    }

    /// The namespace for our UUIDv5 names: an arbitrary constant, never to be changed.
    private static let namespace: [UInt8] = [
        0x8e, 0x0c, 0x5f, 0x52, 0x1b, 0x6d, 0x4a, 0x3e, 0x9a, 0x57, 0x2f, 0x60, 0xd1, 0x7c, 0x43, 0x88,
    ]

    private static func uuid5(_ name: [UInt8]) -> String {
        // SHA-1 is what UUIDv5 is defined with (RFC 9562); nothing here relies on its collision resistance.
        uuid(Insecure.SHA1.hash(data: namespace + name).prefix(16), version: 5)
    }

    /// The UUID of that version with these 16 bytes, as far as its form leaves them free.
    public static func uuid(_ bytes: some Sequence<UInt8>, version: UInt8) -> String {
        var bytes = Array(bytes)
        bytes[6] = bytes[6] & 0x0F | version << 4
        bytes[8] = bytes[8] & 0x3F | 0x80
        var text: [UInt8] = []
        text.reserveCapacity(36)
        for (index, byte) in bytes.enumerated() {
            if [4, 6, 8, 10].contains(index) { text.append(UInt8(ascii: "-")) }
            text.appendHex(byte)
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func code(_ salt: SymmetricKey, _ text: [UInt8]) -> HMAC<SHA256>.MAC {
        HMAC<SHA256>.authenticationCode(for: text, using: salt)
    }
}

extension Sequence<UInt8> {
    /// Two lower-case hex digits for each byte.
    public var hex: String {
        var text: [UInt8] = []
        text.reserveCapacity(64)
        for byte in self { text.appendHex(byte) }
        return String(decoding: text, as: UTF8.self)
    }
}

extension [UInt8] {
    private static let hexDigits = Array("0123456789abcdef".utf8)

    mutating func appendHex(_ byte: UInt8) {
        append(Self.hexDigits[Int(byte >> 4)])
        append(Self.hexDigits[Int(byte & 15)])
    }

    /// Reads what ``Swift/Sequence/hex`` writes, and capital letters. `nil` for anything else.
    public init?(hex text: some StringProtocol) {
        let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }.map(UInt8.init)
        guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
        self = stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}

extension String {
    /// A secret as its file means it: editors and `echo` end a file with a line feed.
    public var withoutFinalNewlines: String { String(reversed().drop { $0.isNewline }.reversed()) }
}
