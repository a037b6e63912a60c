// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Crypto
public import Runtime

/// What a device shows to speak for its install, also while there is no user on it yet: a JWT (HS256) that is no user
/// token and is never taken for one: it has another type, another key and no `sub`. Issued by the user service, checked
/// by the gateway.
public struct InstallToken: Sendable, Hashable {
    public var app: String
    public var installID: String
    /// The creation that it is from. A reset ends that, and with it the token.
    public var creation: String
    /// Whole seconds.
    public var issued: Timestamp
    public var expires: Timestamp

    /// - Parameter lifetime: in milliseconds; cut to whole seconds, as JWT counts them.
    public init(app: String, installID: String, creation: String, issued: Timestamp, lifetime: Int64) {
        self.app = app
        self.installID = installID
        self.creation = creation
        self.issued = Timestamp(milliseconds: issued.milliseconds / 1000 * 1000)
        expires = Timestamp(milliseconds: (issued.milliseconds + lifetime) / 1000 * 1000)
    }

    private struct Claims: Codable {
        var aud: String
        var install: String
        var creation: String
        var iat: Int64
        var exp: Int64
    }

    private static let type = "install+jwt"
    /// `{"alg":"HS256","typ":"install+jwt"}`
    private static let header = "eyJhbGciOiJIUzI1NiIsInR5cCI6Imluc3RhbGwrand0In0."

    /// Whether a text is meant as one; whether it is valid makes no difference.
    public static func isMeant(by text: String) -> Bool { text.hasPrefix(header) }

    /// Follows from the key of user tokens, and is another one: neither kind checks out as the other.
    private static func key(_ userTokenKey: SymmetricKey) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(
            inputKeyMaterial: userTokenKey, info: Array("identitybus install token v1".utf8), outputByteCount: 32)
    }

    /// Deciding twice gives the same text.
    /// - Parameter key: that of the app's user tokens.
    public func signed(with key: SymmetricKey) -> String {
        let claims = Claims(
            aud: app, install: installID, creation: creation, iat: issued.milliseconds / 1000,
            exp: expires.milliseconds / 1000)
        // Texts and numbers always encode.
        return HS256.sign(claims, key: Self.key(key), type: Self.type) ?? ""
    }

    /// Reads a token whose signature checks out and whose time has not passed.
    /// - Returns: `nil` for everything else; why is nobody's business outside.
    public static func verified(
        _ text: String, apps: AppDirectory, secrets: DerivedSecrets, now: Timestamp
    ) -> InstallToken? {
        // As `UserToken.verified`: one algorithm, one spelling, and the app says whose key to check it with.
        guard text.utf8.count <= 4096, isMeant(by: text), !text.utf8.contains(UInt8(ascii: "=")),
            let claims = HS256.payload(of: text, as: Claims.self), let app = apps[claims.aud],
            UserToken.keys(of: app, secrets: secrets).contains(where: { HS256.isValid(text, key: key($0)) }),
            claims.exp > now.milliseconds / 1000
        else { return nil }
        return InstallToken(
            app: app.id, installID: claims.install, creation: claims.creation,
            issued: Timestamp(milliseconds: claims.iat * 1000), lifetime: (claims.exp - claims.iat) * 1000)
    }
}
