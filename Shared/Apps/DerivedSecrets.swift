// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Crypto
import Synchronization

/// Ids and secrets that a decider gives out: unguessable for everybody outside, and the same when the command is decided
/// again.
///
/// What a command makes follows from the salt of the service's own store, so it does not change when the deployment's
/// keys do. What several processes have to know, the keys of user tokens, follows from the internal keys.
public struct DerivedSecrets: Sendable {
    public let salt: SymmetricKey
    private let tokenKey: SymmetricKey
    private let previousTokenKeys: [SymmetricKey]
    private let known = KnownKeys()

    /// For tests, and deciders that give out no secrets.
    public static let none = DerivedSecrets(.none, salt: [UInt8](repeating: 0, count: 32))

    /// - Parameter salt: the store's. Without one nothing can be derived from a command again: that is for processes
    ///   that only check user tokens.
    public init(_ keys: DeploymentKeys, salt: [UInt8]? = nil) {
        self.salt = salt.map { SymmetricKey(data: $0) } ?? SymmetricKey(size: .bits256)
        // Without keys: one that nobody else has.
        tokenKey = keys.signing(.tokens) ?? SymmetricKey(size: .bits256)
        previousTokenKeys = Array(keys.checking(.tokens).dropFirst())
    }

    /// 64 bytes, HMAC-SHA512 of the purpose and the parts under the salt.
    public func bytes(_ purpose: String, _ parts: [String]) -> [UInt8] { Self.code([purpose] + parts, salt) }

    /// The key that an app's user tokens are signed with.
    public func tokenKey(of app: AppID) -> SymmetricKey {
        known.key(of: app) { Self.tokenKey(of: app, tokenKey) }
    }

    /// The keys that an app's user tokens may be signed with: of each internal key one.
    public func tokenKeys(of app: AppID) -> [SymmetricKey] {
        ([tokenKey] + previousTokenKeys).map { Self.tokenKey(of: app, $0) }
    }

    private static func tokenKey(of app: AppID, _ key: SymmetricKey) -> SymmetricKey {
        SymmetricKey(data: code(["user-token-key", app.text, "", ""], key))
    }

    private static func code(_ parts: [String], _ key: SymmetricKey) -> [UInt8] {
        var hmac = HMAC<SHA512>(key: key)
        for part in parts {
            hmac.update(data: Array("\(part.utf8.count):".utf8))
            hmac.update(data: Array(part.utf8))
        }
        return Array(hmac.finalize())
    }
}

/// Keys that were derived before: that takes longer than to sign a token. There are as many as apps.
private final class KnownKeys: Sendable {
    private let keys = Mutex<[AppID: SymmetricKey]>([:])

    func key(of app: AppID, _ derived: () -> SymmetricKey) -> SymmetricKey {
        keys.withLock { keys in
            if let key = keys[app] { return key }
            let key = derived()
            keys[app] = key
            return key
        }
    }
}
