// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Foundation
import Storage
import WireJSON

@testable import Runtime
@testable import Verification

/// What every test starts from.
enum Fixture {
    typealias Fields = VerificationSettings.SignedFields

    static let now = Timestamp(milliseconds: 1_700_000_000_000)
    static let secret = "test_secret_key_0123456789"
    static let k1 = key("k1", secret)
    static let secondSecret = "second_secret_key_0123456789"
    static let k2 = key("k2", secondSecret)

    static func key(_ id: KeyID, _ secret: String, retireAt: Timestamp? = nil) -> VerificationSettings.Key {
        VerificationSettings.Key(id: id, secret: symmetric(secret), retireAt: retireAt)
    }

    static func symmetric(_ secret: String) -> SymmetricKey { SymmetricKey(data: Data(secret.utf8)) }

    static func settings(
        _ mode: VerificationSettings.Mode = .enforce, _ fields: Fields = .vendor,
        keys: [VerificationSettings.Key] = [k1, k2], fullPrivacy: Bool = false, clears: Bool = false,
        identityTokenSecret: String? = secret, sessionSeconds: Int64? = nil
    ) -> VerificationSettings {
        VerificationSettings(
            mode: mode, signedFields: fields, keys: keys,
            identityTokenSecrets: identityTokenSecret.map { [key("", $0)] } ?? [], fullPrivacy: fullPrivacy,
            clearAnonymousUserOnLogin: clears, sessionLifetime: sessionSeconds.map { $0 * 1000 })
    }

    static func context(
        _ settings: VerificationSettings, id: CommandID = "c1", app: AppID = "support", now: Timestamp = now,
        expiry: Timestamp? = nil, folded: Set<IdentityType> = []
    ) -> DecisionContext {
        DecisionContext(
            command: CommandKey(app: app, source: "test", id: id),
            app: AppSettings(id: app, sync: SyncSettings(folded: folded), verification: settings),
            principal: Principal(kind: .service, scopes: Set(Scope.allCases)), now: now, expiry: expiry)
    }

    /// The sync service's answer to a forward, as it comes.
    static func answer(
        to forward: CommandID, _ status: Reply<JSONValue>.Status, reason: ReasonCode? = nil, result: JSONValue? = nil
    ) -> VerificationCommand {
        var reply: JSONObject = [
            "commandId": .string(forward.text), "commandType": .string(LogInUser.type), "commandDigest": "d",
            "status": .string(status.rawValue),
        ]
        if let reason {
            reply["reason"] = .string(reason.rawValue)
            reply["message"] = .string(reason.defaultMessage)
        }
        if let result { reply["result"] = result }
        do {
            return try VerificationService.inputs.read(ReceivedReply.type, .object(reply))
        } catch {
            preconditionFailure("\(error)")
        }
    }

    static func hmac(_ text: String, _ secret: String = secret) -> Data {
        Data(HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: symmetric(secret)))
    }

    static func token(_ text: String, _ secret: String = secret) -> String { hmac(text, secret).base64EncodedString() }

    // JWTs written by hand, so that every wrong one can be made too.

    static func base64URL(_ data: Data) -> String {
        data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    static func jwt(
        _ payload: String, header: String = #"{"alg":"HS256","typ":"JWT"}"#, secret: String = secret
    ) -> String {
        let text = base64URL(Data(header.utf8)) + "." + base64URL(Data(payload.utf8))
        return text + "." + base64URL(hmac(text, secret))
    }

    static func payload(_ identities: String, iat: String? = "1700000000") -> String {
        let time = iat.map { #","iat":\#($0)"# } ?? ""
        return #"{"identities":\#(identities)\#(time)}"#
    }

    static let uid = #"[{"identifier":"uid","value":"captain_planet"}]"#
}
