// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Crypto

/// A credential of an app (facts/linking-and-verification.md A3). Its description never shows the secret.
public struct APIKey: Sendable, CustomStringConvertible {
    public var id: String
    public var secret: SymmetricKey
    public var scopes: Set<Scope>
    public var expires: Timestamp?
    public var isRevoked: Bool

    public init(id: String, secret: SymmetricKey, scopes: Set<Scope>, expires: Timestamp?, isRevoked: Bool) {
        self.id = id
        self.secret = secret
        self.scopes = scopes
        self.expires = expires
        self.isRevoked = isRevoked
    }

    public var description: String { "API key \(id)" }
}
