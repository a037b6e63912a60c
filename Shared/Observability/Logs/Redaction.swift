// SPDX-License-Identifier: Apache-2.0

/// Decides which metadata values may not be written to a log.
///
/// Only keys are looked at: a secret that stands inside a message or under a harmless key is not found. Call sites must
/// not put it there.
enum Redaction {
    static let placeholder = "<redacted>"

    /// Endings of keys in lower case without separators, so that `secret` also covers `client_secret` and `appSecret`.
    private static let endings = ["secret", "password", "signature", "token", "authorization", "authenticationcode"]

    /// Whether the value under this key is replaced by the placeholder, at any depth of nesting.
    static func covers(_ key: String) -> Bool {
        // Compared without case and separators: HTTP, Swift and SQL spell the same word differently.
        let bytes = key.utf8.compactMap { byte -> UInt8? in
            switch byte {
            case UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: " "): nil
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte | 0x20
            default: byte
            }
        }
        return endings.contains { bytes.suffix($0.utf8.count).elementsEqual($0.utf8) }
    }
}
