// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Crypto
import WireJSON

/// What an SDK shows to speak for its user: a JWT (HS256) that any JWT library reads. Issued by the user service,
/// checked by the gateway (U37, F7).
public struct UserToken: Sendable, Hashable {
    public var app: AppID
    public var userID: UserID
    public var installID: InstallID
    /// The creation that brought the user: all that the token names when it has expired (U78).
    public var creation: String
    /// Whole seconds.
    public var issued: Timestamp
    public var expires: Timestamp

    /// - Parameter lifetime: in milliseconds; cut to whole seconds, as JWT counts them.
    public init(
        app: AppID, userID: UserID, installID: InstallID, creation: String, issued: Timestamp, lifetime: Int64
    ) {
        self.app = app
        self.userID = userID
        self.installID = installID
        self.creation = creation
        self.issued = Timestamp(milliseconds: issued.milliseconds / 1000 * 1000)
        expires = Timestamp(milliseconds: (issued.milliseconds + lifetime) / 1000 * 1000)
    }

    private static let header = HS256.header(type: "JWT")

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
        HS256.sign(
            [
                "aud": .string(app.text), "creation": .string(creation), "exp": .seconds(expires),
                "iat": .seconds(issued), "install": .string(installID.text), "sub": .string(userID.text),
            ], key: key)
    }

    /// Whether its time has passed.
    public func isExpired(now: Timestamp) -> Bool { expires.milliseconds <= now.milliseconds / 1000 * 1000 }

    /// Reads a token whose signature checks out and whose time has not passed.
    /// - Parameter inGrace: also when it has, for less than the app's `tokenGraceSeconds`.
    /// - Returns: `nil` for everything else; why is nobody's business outside.
    public static func verified(
        _ text: String, apps: AppDirectory, secrets: DerivedSecrets, now: Timestamp, inGrace: Bool = false
    ) -> UserToken? {
        guard let token = Common(text, header: header, apps, now, inGrace: inGrace),
            let userID = token.claims["sub"]?.stringValue.map({ UserID($0) }),
            let creation = token.claims["creation"]?.stringValue,
            keys(of: token.app, secrets: secrets).contains(where: token.text.isSigned(with:))
        else { return nil }
        return UserToken(
            app: token.app.id, userID: userID, installID: token.installID, creation: creation, issued: token.issued,
            lifetime: token.lifetime)
    }
}

/// What a device shows to speak for its install, also while there is no user on it yet: a JWT (HS256) that is no user
/// token and is never taken for one: it has another type, another key and no `sub`. Issued by the user service, checked
/// by the gateway (U39).
public struct InstallToken: Sendable, Hashable {
    public var app: AppID
    public var installID: InstallID
    /// The creation that it is from. A reset ends that, and with it the token.
    public var creation: String
    /// Whole seconds.
    public var issued: Timestamp
    public var expires: Timestamp

    /// - Parameter lifetime: in milliseconds; cut to whole seconds, as JWT counts them.
    public init(app: AppID, installID: InstallID, creation: String, issued: Timestamp, lifetime: Int64) {
        self.app = app
        self.installID = installID
        self.creation = creation
        self.issued = Timestamp(milliseconds: issued.milliseconds / 1000 * 1000)
        expires = Timestamp(milliseconds: (issued.milliseconds + lifetime) / 1000 * 1000)
    }

    private static let type = "install+jwt"
    private static let header = HS256.header(type: type)

    /// Whether a text is meant as one; whether it is valid makes no difference.
    public static func isMeant(by text: String) -> Bool { text.utf8.starts(with: header.utf8) }

    /// Follows from the key of user tokens, and is another one: neither kind checks out as the other.
    private static func key(_ userTokenKey: SymmetricKey) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(
            inputKeyMaterial: userTokenKey, info: Array("identitybus install token v1".utf8), outputByteCount: 32)
    }

    /// Deciding twice gives the same text.
    /// - Parameter key: that of the app's user tokens.
    public func signed(with key: SymmetricKey) -> String {
        HS256.sign(
            [
                "aud": .string(app.text), "creation": .string(creation), "exp": .seconds(expires),
                "iat": .seconds(issued),
                "install": .string(installID.text),
            ], key: Self.key(key), type: Self.type)
    }

    /// Whether its time has passed.
    public func isExpired(now: Timestamp) -> Bool { expires.milliseconds <= now.milliseconds / 1000 * 1000 }

    /// Reads a token whose signature checks out and whose time has not passed.
    /// - Parameter inGrace: also when it has, for less than the app's `tokenGraceSeconds`.
    /// - Returns: `nil` for everything else; why is nobody's business outside.
    public static func verified(
        _ text: String, apps: AppDirectory, secrets: DerivedSecrets, now: Timestamp, inGrace: Bool = false
    ) -> InstallToken? {
        guard let token = Common(text, header: header, apps, now, inGrace: inGrace),
            let creation = token.claims["creation"]?.stringValue,
            UserToken.keys(of: token.app, secrets: secrets).contains(where: { token.text.isSigned(with: key($0)) })
        else { return nil }
        return InstallToken(
            app: token.app.id, installID: token.installID, creation: creation, issued: token.issued,
            lifetime: token.lifetime)
    }
}

/// What both kinds have, read from a token that is not yet believed: the app has to be known before the signature is
/// checked, because it says whose key to check it with.
private struct Common {
    let text: HS256.Unverified
    let app: AppSettings
    let installID: InstallID
    let issued: Timestamp
    let lifetime: Int64

    var claims: JSONObject { text.claims }

    /// In seconds; milliseconds have to fit.
    private static let latest = Int64.max / 1000

    /// - Returns: `nil` when the form is another one, the app is not known, or the token's time has passed.
    init?(_ token: String, header: String, _ apps: AppDirectory, _ now: Timestamp, inGrace: Bool) {
        guard token.utf8.count <= 4096, let text = HS256.Unverified(token, header: header),
            let app = text.claims["aud"]?.stringValue.flatMap({ apps[AppID($0)] }),
            let installID = text.claims["install"]?.stringValue.map({ InstallID($0) }),
            let issued = text.claims["iat"]?.int64Value,
            let expires = text.claims["exp"]?.int64Value,
            (0...Self.latest).contains(issued), (issued...Self.latest).contains(expires),
            expires > (now.milliseconds - (inGrace ? app.sdk.tokenGrace : 0)) / 1000
        else { return nil }
        (self.text, self.app, self.installID) = (text, app, installID)
        self.issued = Timestamp(milliseconds: issued * 1000)
        lifetime = (expires - issued) * 1000
    }
}

extension JSONValue {
    fileprivate static func seconds(_ time: Timestamp) -> JSONValue { .number(JSONNumber(time.milliseconds / 1000)) }
}
