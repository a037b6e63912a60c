// SPDX-License-Identifier: Apache-2.0

import Contracts
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

    /// Never to be changed: what was signed or closed would no longer open.
    private var label: String {
        switch self {
        case .commands: "identitybus commands v1"
        case .events: "identitybus events v1"
        case .gateway: "identitybus gateway v1"
        case .store: "identitybus store v1"
        case .tokens: "identitybus tokens v1"
        }
    }

    /// HKDF-SHA256 without a salt; the purpose is the `info`.
    public func key(from internalKey: SymmetricKey) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(inputKeyMaterial: internalKey, info: Array(label.utf8), outputByteCount: 32)
    }
}

/// The deployment's keys, as far as a process has them: of each internal key the keys by purpose. The first internal key
/// signs, all of them check, so that they can be changed one after the other without a stop (docs/operations.md "Keys").
public struct DeploymentKeys: Sendable {
    /// What comes from one internal key.
    private struct Generation {
        var internalKey: SymmetricKey?
        var derived: [KeyPurpose: SymmetricKey]
    }

    private var generations: [Generation]

    /// Of a deployment without signatures.
    public static let none = DeploymentKeys(internalKeys: [])

    /// All purposes.
    public init(internalKeys: [SymmetricKey]) {
        generations = internalKeys.map { key in
            let derived = KeyPurpose.allCases.map { ($0, $0.key(from: key)) }
            return Generation(internalKey: key, derived: Dictionary(uniqueKeysWithValues: derived))
        }
    }

    /// The key that signs or closes; `nil` when this process has none for that.
    public func signing(_ purpose: KeyPurpose) -> SymmetricKey? { generations.first?.derived[purpose] }

    /// The keys that what is signed or closed may be from, the current one first.
    public func checking(_ purpose: KeyPurpose) -> [SymmetricKey] { generations.compactMap { $0.derived[purpose] } }

    /// The internal keys themselves, where this process has them.
    public var internalKeys: [SymmetricKey] { generations.compactMap(\.internalKey) }

    /// Whether these are an internal key and what is derived from it. Who has only the derived ones can tell, too.
    func comeFrom(_ key: SymmetricKey) -> Bool {
        generations.contains { generation in
            if let internalKey = generation.internalKey { return internalKey == key }
            return generation.derived.first.map { $0.value == $0.key.key(from: key) } ?? false
        }
    }

    public var isEmpty: Bool { generations.isEmpty }

    // MARK: As text

    /// What the gateway is given instead of internal keys.
    public static let gatewayPurposes: [KeyPurpose] = [.gateway, .tokens]
    /// What somebody is given who checks events and replies.
    public static let readerPurposes: [KeyPurpose] = [.events]

    /// The keys for `purposes` as one line, which characters of any shell or settings file can hold:
    /// `gateway:<hex>.tokens:<hex>` for each internal key, separated by commas.
    public func text(for purposes: [KeyPurpose]) -> String {
        generations.map { generation in
            purposes.compactMap { purpose in
                generation.derived[purpose].map { "\(purpose.rawValue):\($0.withUnsafeBytes(\.hex))" }
            }.joined(separator: ".")
        }.joined(separator: ",")
    }

    /// Reads what ``text(for:)`` writes.
    /// - Returns: `nil` when it is something else, or lacks one of `purposes`.
    public init?(text: String, purposes: [KeyPurpose]) {
        generations = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            var derived: [KeyPurpose: SymmetricKey] = [:]
            for item in part.split(separator: ".", omittingEmptySubsequences: false) {
                let halves = item.split(separator: ":", omittingEmptySubsequences: false)
                guard halves.count == 2, let purpose = KeyPurpose(rawValue: String(halves[0])),
                    let key = Self.key(hex: halves[1]), derived.updateValue(key, forKey: purpose) == nil
                else { return nil }
            }
            guard purposes.allSatisfy({ derived[$0] != nil }) else { return nil }
            // What a process has no need of, it does not keep.
            generations.append(Generation(derived: derived.filter { purposes.contains($0.key) }))
        }
    }

    private static func key(hex: Substring) -> SymmetricKey? {
        guard let bytes = [UInt8](hex: hex), bytes.count == 32 else { return nil }
        return SymmetricKey(data: bytes)
    }
}
