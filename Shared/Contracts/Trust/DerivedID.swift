// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Crypto

/// Ids that follow from what caused them, so that deciding or publishing twice gives the same id.
public enum DerivedID {
    /// A person's id: 24 lower-case hex characters, from the SHA-256 of the creating command's key.
    public static func user(app: String, source: String, commandID: String) -> String {
        let digest = SHA256.hash(data: Array(domain("user-id", app, source, commandID).utf8))
        return hex(digest.prefix(12))
    }

    /// The id of message number `index` that a command led to: UUIDv5 of the command's key and the index.
    public static func message(app: String, source: String, commandID: String, index: Int) -> String {
        uuid5(domain("message", app, source, commandID, String(index)))
    }

    /// The id of a message about a record whose sender is not known: UUIDv5 of the record's coordinates. It cannot be
    /// made to collide with an id derived from a command.
    public static func message(cluster: String, topic: String, partition: Int32, offset: Int64, index: Int) -> String {
        uuid5(domain("record", cluster, topic, String(partition), String(offset), String(index)))
    }

    /// Lengths are part of the text, so that no two lists of parts give one name.
    private static func domain(_ parts: String...) -> String {
        parts.map { "\($0.utf8.count):\($0)" }.joined(separator: "\n")
    }

    /// The namespace for our UUIDv5 names: an arbitrary constant, never to be changed.
    private static let namespace: [UInt8] = [
        0x8e, 0x0c, 0x5f, 0x52, 0x1b, 0x6d, 0x4a, 0x3e, 0x9a, 0x57, 0x2f, 0x60, 0xd1, 0x7c, 0x43, 0x88,
    ]

    private static func uuid5(_ name: String) -> String {
        // SHA-1 is what UUIDv5 is defined with (RFC 9562); nothing here relies on its collision resistance.
        var bytes = Array(Insecure.SHA1.hash(data: namespace + Array(name.utf8)).prefix(16))
        bytes[6] = bytes[6] & 0x0F | 0x50
        bytes[8] = bytes[8] & 0x3F | 0x80
        let text = Array(hex(bytes).utf8)
        let cuts = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32]
        return cuts.map { String(decoding: text[$0], as: UTF8.self) }.joined(separator: "-")
    }

    private static func hex(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        text.reserveCapacity(32)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}
