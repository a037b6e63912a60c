// SPDX-License-Identifier: Apache-2.0

public import Crypto

/// What an app's SDK shows to create a user by itself. Kept as a digest; its description never shows it.
public struct AppSecret: Sendable, CustomStringConvertible {
    private let code: HashedAuthenticationCode<SHA256>
    private let key: SymmetricKey

    public init(_ secret: String) {
        key = SymmetricKey(size: .bits256)
        code = HMAC<SHA256>.authenticationCode(for: Array(secret.utf8), using: key)
    }

    /// Whether it is the same. Takes as long whatever differs: what is compared are keyed digests.
    public func matches(_ other: String) -> Bool {
        HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: Array(other.utf8), using: key)
    }

    public var description: String { "an app secret" }
}

/// The key of an app's user tokens, when the apps file gives one. Its description never shows it.
public struct TokenSecret: Sendable, CustomStringConvertible {
    public let key: SymmetricKey

    public init(_ secret: String) { key = SymmetricKey(data: Array(secret.utf8)) }

    public var description: String { "a token secret" }
}
