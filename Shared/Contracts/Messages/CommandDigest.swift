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

    public static func text(_ digest: [UInt8]) -> String { digest.hex }
}
