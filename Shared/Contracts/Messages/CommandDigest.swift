// SPDX-License-Identifier: Apache-2.0

import Crypto
public import WireJSON

/// What a command says, as 32 bytes: SHA-256 of its type, a zero byte and its canonical data. Two commands under one id
/// are the same one when their digests are equal, and a reply names the digest of the command that it answers.
public enum CommandDigest {
    public static func bytes(type: String, data: JSONValue) -> [UInt8] {
        var hash = SHA256()
        hash.update(data: Array(type.utf8))
        hash.update(data: [0])
        hash.update(data: data.canonicalBytes())
        return Array(hash.finalize())
    }

    /// As it stands in a reply: lower-case hex.
    public static func text(type: String, data: JSONValue) -> String { text(bytes(type: type, data: data)) }

    public static func text(_ digest: [UInt8]) -> String {
        String(unsafeUninitializedCapacity: digest.count * 2) { hex in
            for (index, byte) in digest.enumerated() {
                hex[index * 2] = digits[Int(byte >> 4)]
                hex[index * 2 + 1] = digits[Int(byte & 15)]
            }
            return digest.count * 2
        }
    }

    private static let digits = Array("0123456789abcdef".utf8)
}
