// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Foundation
import Testing
import WireJSON

@testable import Apps

/// Install tokens are JWTs of their own kind: they are never user tokens, and user tokens are never them.
@Suite struct InstallTokenTests {
    private let app = AppSettings(
        id: "demo", sdk: SDKSettings(tokenSecret: TokenSecret(String(repeating: "t", count: 32))))
    private let secrets = DerivedSecrets(DeploymentKeys(internalKeys: [SymmetricKey(size: .bits256)]))
    private var apps: AppDirectory { AppDirectory([app, AppSettings(id: "other")]) }
    private let now = Timestamp(milliseconds: 1_800_000_000_999)

    private func token(_ app: AppID = "demo") -> InstallToken {
        InstallToken(app: app, installID: "i1", creation: "c1", issued: now, lifetime: 60_000)
    }

    @Test func weReadWhatWeWriteUntilItExpires() throws {
        for id in ["demo", "other"] {
            let settings = try #require(apps[AppID(id)])
            let text = token(AppID(id)).signed(with: UserToken.key(of: settings, secrets: secrets))
            #expect(text == token(AppID(id)).signed(with: UserToken.key(of: settings, secrets: secrets)))
            #expect(InstallToken.isMeant(by: text))
            #expect(InstallToken.verified(text, apps: apps, secrets: secrets, now: now) == token(AppID(id)))
            let end = token(AppID(id)).expires
            #expect(InstallToken.verified(text, apps: apps, secrets: secrets, now: end) == nil)
            let late = InstallToken.verified(text, apps: apps, secrets: secrets, now: end, inGrace: true)
            #expect(late == token(AppID(id)) && late?.isExpired(now: end) == true)
            let over = Timestamp(milliseconds: end.milliseconds + 400 * 86_400_000)
            #expect(InstallToken.verified(text, apps: apps, secrets: secrets, now: over, inGrace: true) == nil)
        }
    }

    /// Anybody's JWT library sees at once that it is none of a user.
    @Test func itSaysWhatItIs() throws {
        let text = token().signed(with: UserToken.key(of: app, secrets: secrets))
        let parts = try text.split(separator: ".").prefix(2).map { part in
            let padded = part.replacing("-", with: "+").replacing("_", with: "/")
            let data = try #require(
                Data(base64Encoded: padded + String(repeating: "=", count: (4 - padded.count % 4) % 4)))
            return try #require(try JSONSerialization.jsonObject(with: data) as? [String: any Sendable])
        }
        #expect(parts[0] as? [String: String] == ["alg": "HS256", "typ": "install+jwt"])
        #expect(Set(parts[1].keys) == ["aud", "install", "creation", "iat", "exp"])
        #expect(parts[1]["install"] as? String == "i1" && parts[1]["exp"] as? Int == 1_800_000_060)
    }

    @Test func neitherKindIsTakenForTheOther() async throws {
        let key = UserToken.key(of: app, secrets: secrets)
        let install = token().signed(with: key)
        let user = UserToken(app: "demo", userID: "u1", installID: "i1", creation: "c1", issued: now, lifetime: 60_000)
            .signed(with: key)
        #expect(UserToken.verified(user, apps: apps, secrets: secrets, now: now) != nil)
        #expect(UserToken.verified(install, apps: apps, secrets: secrets, now: now) == nil)
        #expect(InstallToken.verified(user, apps: apps, secrets: secrets, now: now) == nil)
        // Also with the other's header, and with a header that who holds the app's own secret could sign.
        func swapped(_ token: String, headerOf other: String) -> String {
            let rest = token.drop { $0 != "." }
            return "\(other.prefix { $0 != "." })\(rest)"
        }
        let asUser = swapped(install, headerOf: user)
        #expect(UserToken.verified(asUser, apps: apps, secrets: secrets, now: now) == nil)
        let asInstall = swapped(user, headerOf: install)
        #expect(InstallToken.verified(asInstall, apps: apps, secrets: secrets, now: now) == nil)
        let claims: JSONValue = [
            "aud": "demo", "install": "i1", "creation": "c1", "iat": 1_800_000_000, "exp": 1_800_000_060,
        ]
        let forged = HS256.sign(claims, key: key, type: "install+jwt")
        #expect(InstallToken.isMeant(by: forged))
        #expect(InstallToken.verified(forged, apps: apps, secrets: secrets, now: now) == nil, "it has a key of its own")
    }

    @Test func nothingElseIsBelieved() throws {
        let key = UserToken.key(of: app, secrets: secrets)
        let good = token().signed(with: key)
        var texts = ["", "..", good + "=", good + ".", " " + good, String(good.dropLast(3)) + "AAA"]
        texts.append(token().signed(with: UserToken.key(of: AppSettings(id: "other"), secrets: secrets)))
        texts.append(token("nobody").signed(with: key))
        texts.append(token("other").signed(with: UserToken.key(of: AppSettings(id: "other"), secrets: .none)))
        for text in texts {
            #expect(InstallToken.verified(text, apps: apps, secrets: secrets, now: now) == nil, "\(text)")
        }
    }
}
