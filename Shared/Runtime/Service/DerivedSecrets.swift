// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

public import Crypto
public import Storage

/// Secrets that follow from a command and the deployment's internal key: unguessable for everybody without the key,
/// and the same when the command is decided again (architecture.md section 2).
public struct DerivedSecrets: Sendable {
    private let key: SymmetricKey

    /// For deciders that give out no secrets, and tests.
    public static let none = DerivedSecrets(internalKey: SymmetricKey(data: [UInt8](repeating: 0, count: 32)))

    public init(internalKey: SymmetricKey) {
        key = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: internalKey, info: Array("identitybus derived secrets v1".utf8), outputByteCount: 32)
    }

    /// 64 bytes, HMAC-SHA512 of the purpose and the command's key.
    public func bytes(_ purpose: String, for command: CommandKey) -> [UInt8] {
        var hmac = HMAC<SHA512>(key: key)
        for part in [purpose, command.app, command.source, command.id] {
            hmac.update(data: Array("\(part.utf8.count):".utf8))
            hmac.update(data: Array(part.utf8))
        }
        return Array(hmac.finalize())
    }
}
