// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

public import Contracts
public import Crypto
import Foundation
import Storage
import WireJSON

/// What an SDK shows to speak for its user: a JWT (HS256) that any JWT library reads. Issued by the user service,
/// checked by the gateway.
///
/// Written here rather than with jwt-kit, whose signing is asynchronous and does not promise an order of members:
/// deciders are synchronous, and deciding twice must give the same bytes.
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

    private struct Claims: Decodable {
        var sub: String
        var aud: String
        var install: String
        var iat: Int64
        var exp: Int64
    }

    private static let header = encoded(Array(#"{"alg":"HS256","typ":"JWT"}"#.utf8))

    /// The app's own `sdk.tokenSecret`, or a key derived from the deployment's internal key. Not from the app secret:
    /// that one is in every copy of the app.
    public static func key(of app: AppSettings, secrets: DerivedSecrets) -> SymmetricKey {
        app.sdk.tokenSecret?.key
            ?? SymmetricKey(data: secrets.bytes("user-token-key", for: CommandKey(app: app.id, source: "", id: "")))
    }

    public func signed(with key: SymmetricKey) -> String {
        var claims = JSONObject()
        claims["sub"] = .string(userID)
        claims["aud"] = .string(app)
        claims["install"] = .string(installID)
        claims["iat"] = .number(JSONNumber(issued.milliseconds / 1000))
        claims["exp"] = .number(JSONNumber(expires.milliseconds / 1000))
        let text = "\(Self.header).\(Self.encoded(JSONValue.object(claims).serialized()))"
        return "\(text).\(Self.encoded(Array(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: key))))"
    }

    /// Reads a token whose signature checks out and whose time has not passed.
    /// - Returns: `nil` for everything else; why is nobody's business outside.
    public static func verified(
        _ text: String, apps: AppDirectory, secrets: DerivedSecrets, now: Timestamp
    ) -> UserToken? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        // Our own header, to the letter: there is no other algorithm to be talked into.
        guard text.utf8.count <= 4096, parts.count == 3, parts[0] == header, let data = decoded(parts[1]),
            let claims = try? WireJSONDecoder().decode(Claims.self, from: data), let app = apps[claims.aud],
            let code = decoded(parts[2])
        else { return nil }
        let signed = Array("\(parts[0]).\(parts[1])".utf8)
        guard
            HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: signed, using: key(of: app, secrets: secrets)),
            claims.exp > now.milliseconds / 1000
        else { return nil }
        return UserToken(
            app: app.id, userID: claims.sub, installID: claims.install,
            issued: Timestamp(milliseconds: claims.iat * 1000), lifetime: (claims.exp - claims.iat) * 1000)
    }

    // MARK: base64url

    private static func encoded(_ bytes: [UInt8]) -> String {
        String(
            Data(bytes).base64EncodedString().compactMap { character -> Character? in
                switch character {
                case "+": "-"
                case "/": "_"
                case "=": nil
                default: character
                }
            })
    }

    private static func decoded(_ text: Substring) -> [UInt8]? {
        guard !text.contains(where: { $0 == "+" || $0 == "/" || $0 == "=" }) else { return nil }
        let standard = text.map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
        let padding = String(repeating: "=", count: (4 - standard.count % 4) % 4)
        return Data(base64Encoded: String(standard) + padding).map { Array($0) }
    }
}
