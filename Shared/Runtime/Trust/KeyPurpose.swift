// SPDX-License-Identifier: Apache-2.0

public import Crypto

/// What a key that is derived from the deployment's internal key is good for. Who holds one can do this and nothing else.
public enum KeyPurpose: String, Sendable, CaseIterable {
    /// Signs the commands that services send themselves and each other.
    case commands
    /// Signs events, and all replies but the gateway's. Who only reads them holds this one.
    case events
    /// Signs what passes between the gateway and the services: the commands that it sends for others, and their replies.
    case gateway
    /// Closes the confidential answers that stand in a store.
    case store
    /// Signs the user tokens of apps that have no `tokenSecret`.
    case tokens

    /// Never to be changed: what was signed or closed would no longer open. The last two are older than the others.
    private var label: String {
        switch self {
        case .commands: "identitybus commands v1"
        case .events: "identitybus events v1"
        case .gateway: "identitybus gateway v1"
        case .store: "identitybus journal v1"
        case .tokens: "identitybus derived secrets v1"
        }
    }

    /// HKDF-SHA256 without a salt; the purpose is the `info`.
    public func key(from internalKey: SymmetricKey) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(inputKeyMaterial: internalKey, info: Array(label.utf8), outputByteCount: 32)
    }
}
