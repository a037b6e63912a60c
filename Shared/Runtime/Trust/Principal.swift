// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// Who sent a command, after the credential checked out.
public struct Principal: Sendable, Hashable {
    public enum Kind: Sendable, Hashable {
        /// An app's API key, by id.
        case apiKey(String)
        /// One of the deployment's own services, speaking for itself.
        case service
        /// An SDK user's token, vouched for by the gateway.
        case user(String)
        /// An install's token, vouched for by the gateway: the creation that it is from, which a reset ends.
        case install(String)
    }

    public var kind: Kind
    public var scopes: Set<Scope>

    public init(kind: Kind, scopes: Set<Scope>) {
        self.kind = kind
        self.scopes = scopes
    }

    /// Checks that the principal may send a command that needs `scope` (L2).
    public func authorize(_ scope: Scope) throws(Rejection) {
        if scopes.contains(scope) { return }
        switch kind {
        case .user where scope != .sdk, .install where scope != .sdk: throw Rejection(.userTokenNotAllowed)  // U42
        default: break
        }
        throw Rejection(
            .insufficientScope,
            scope == .internal
                ? "Only the deployment's own services may send this command."
                : "This command needs an API key with the scope \(scope.rawValue).")
    }
}
