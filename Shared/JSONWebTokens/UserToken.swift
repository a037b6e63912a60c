// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Crypto
public import Runtime
import Storage

/// What an SDK shows to speak for its user: a JWT (HS256) that any JWT library reads. Issued by the user service,
/// checked by the gateway.
public struct UserToken: Sendable, Hashable {
    public var app: String
    public var userID: String
    public var installID: String
    /// Whole seconds.
    public var issued: Timestamp
    public var expires: Timestamp

    /// - Parameter lifetime: in milliseconds; cut to whole seconds, as JWT counts them.
    public init(app: String, userID: String, installID: String, issued: Timestamp, lifetime: Int64) {
        self.app = app
        self.userID = userID
        self.installID = installID
        self.issued = Timestamp(milliseconds: issued.milliseconds / 1000 * 1000)
        expires = Timestamp(milliseconds: (issued.milliseconds + lifetime) / 1000 * 1000)
    }

    private struct Claims: Codable {
        var sub: String
        var aud: String
        var install: String
        var iat: Int64
        var exp: Int64
    }

    /// `{"alg":"HS256","typ":"JWT"}`
    private static let header = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."

    /// The key that signs: the app's own `sdk.tokenSecret`, or one derived from the deployment's internal key. Not from
    /// the app secret: that one is in every copy of the app.
    public static func key(of app: AppSettings, secrets: DerivedSecrets) -> SymmetricKey {
        app.sdk.tokenSecret?.key ?? secrets.tokenKey(of: app.id)
    }

    /// The keys that a token may be signed with: while the internal key is changed, those of each.
    static func keys(of app: AppSettings, secrets: DerivedSecrets) -> [SymmetricKey] {
        app.sdk.tokenSecret.map { [$0.key] } ?? secrets.tokenKeys(of: app.id)
    }

    /// Deciding twice gives the same text.
    public func signed(with key: SymmetricKey) -> String {
        let claims = Claims(
            sub: userID, aud: app, install: installID, iat: issued.milliseconds / 1000,
            exp: expires.milliseconds / 1000)
        // Texts and numbers always encode.
        return HS256.sign(claims, key: key) ?? ""
    }

    /// Reads a token whose signature checks out and whose time has not passed.
    /// - Returns: `nil` for everything else; why is nobody's business outside.
    public static func verified(
        _ text: String, apps: AppDirectory, secrets: DerivedSecrets, now: Timestamp
    ) -> UserToken? {
        // Our own header, to the letter: there is no other algorithm to be talked into. No padding either: a token has
        // one spelling. The app is read before the
        // signature is checked, because it says whose key to check it with.
        guard text.utf8.count <= 4096, text.hasPrefix(header), !text.utf8.contains(UInt8(ascii: "=")),
            let claims = HS256.payload(of: text, as: Claims.self), let app = apps[claims.aud],
            keys(of: app, secrets: secrets).contains(where: { HS256.isValid(text, key: $0) }),
            claims.exp > now.milliseconds / 1000
        else { return nil }
        return UserToken(
            app: app.id, userID: claims.sub, installID: claims.install,
            issued: Timestamp(milliseconds: claims.iat * 1000), lifetime: (claims.exp - claims.iat) * 1000)
    }
}
