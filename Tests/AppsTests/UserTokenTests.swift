// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Foundation
import Testing
import WireJSON

@testable import Apps

/// User tokens: what we write, any JWT library reads; what others write, we do not believe.
@Suite struct UserTokenTests {
    private let app = AppSettings(
        id: "demo", sdk: SDKSettings(tokenSecret: TokenSecret(String(repeating: "t", count: 32))))
    private let secrets = DerivedSecrets(DeploymentKeys(internalKeys: [SymmetricKey(size: .bits256)]))
    private var apps: AppDirectory { AppDirectory([app, AppSettings(id: "other")]) }
    private let now = Timestamp(milliseconds: 1_800_000_000_999)
    private func token(_ app: AppID = "demo") -> UserToken {
        UserToken(app: app, userID: "u1", installID: "i1", creation: "c1", issued: now, lifetime: 60_000)
    }

    /// The token of these claims as another implementation makes it.
    @Test func aKnownToken() {
        #expect(
            token().signed(with: UserToken.key(of: app, secrets: secrets)) == """
                eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.\
                eyJhdWQiOiJkZW1vIiwiY3JlYXRpb24iOiJjMSIsImV4cCI6MTgwMDAwMDA2MCwiaWF0IjoxODAwMDAwMDAwLCJpbnN0YWxsIjoiaTEiLCJzdWIiOiJ1MSJ9.\
                13TMOu5-3ymTl1FEBbBVFfxnJB4gHoeLcIptmaKRz_g
                """)
    }

    @Test func weReadWhatWeWriteUntilItExpires() throws {
        for id in ["demo", "other"] {
            let settings = try #require(apps[AppID(id)])
            let text = token(AppID(id)).signed(with: UserToken.key(of: settings, secrets: secrets))
            #expect(text == token(AppID(id)).signed(with: UserToken.key(of: settings, secrets: secrets)))
            #expect(UserToken.verified(text, apps: apps, secrets: secrets, now: now) == token(AppID(id)))
            let end = token(AppID(id)).expires
            #expect(UserToken.verified(text, apps: apps, secrets: secrets, now: end) == nil)
            let before = Timestamp(milliseconds: end.milliseconds - 1)
            #expect(UserToken.verified(text, apps: apps, secrets: secrets, now: before) != nil)
        }
    }

    @Test func nothingElseIsBelieved() async throws {
        let key = UserToken.key(of: app, secrets: secrets)
        let good = token().signed(with: key)
        let parts = good.split(separator: ".").map(String.init)
        func base64(_ text: String) -> String {
            Data(text.utf8).base64EncodedString().replacing("=", with: "").replacing("+", with: "-")
                .replacing("/", with: "_")
        }
        let none = base64(#"{"alg":"none","typ":"JWT"}"#)
        let claims = base64(
            #"{"sub":"u2","aud":"demo","creation":"c1","install":"i1","iat":1800000000,"exp":1800000060}"#)
        var texts = [
            "", ".", "..", "a.b.c", good + ".", "\(parts[0]).\(parts[1]).", "\(none).\(parts[1]).",
            "\(none).\(parts[1]).\(parts[2])", "\(parts[0]).\(claims).\(parts[2])", good + "=", " " + good,
            String(repeating: "x", count: 5000),
        ]
        // Another app's key, another deployment's key, a key that is the app secret.
        texts.append(token().signed(with: UserToken.key(of: AppSettings(id: "other"), secrets: secrets)))
        texts.append(token("other").signed(with: UserToken.key(of: AppSettings(id: "other"), secrets: .none)))
        texts.append(token("nobody").signed(with: key))
        texts.append(token().signed(with: SymmetricKey(data: Array("demo-app-secret".utf8))))
        // A token that names no creation.
        texts.append(
            HS256.sign(
                ["aud": "demo", "exp": 1_800_000_060, "iat": 1_800_000_000, "install": "i1", "sub": "u1"], key: key))
        for text in texts {
            #expect(UserToken.verified(text, apps: apps, secrets: secrets, now: now) == nil, "\(text)")
        }
    }

    /// While the internal key is changed, tokens of before and after check out everywhere.
    @Test func aTokenOutlivesTheChangeOfTheInternalKey() {
        let old = SymmetricKey(size: .bits256)
        let new = SymmetricKey(size: .bits256)
        let (before, added, changed, after) = (
            DerivedSecrets(DeploymentKeys(internalKeys: [old])),
            DerivedSecrets(DeploymentKeys(internalKeys: [old, new])),
            DerivedSecrets(DeploymentKeys(internalKeys: [new, old])),
            DerivedSecrets(DeploymentKeys(internalKeys: [new]))
        )
        func reads(_ reader: DerivedSecrets, _ writer: DerivedSecrets, _ id: String) -> Bool {
            let text = token(AppID(id)).signed(with: UserToken.key(of: AppSettings(id: AppID(id)), secrets: writer))
            return UserToken.verified(text, apps: AppDirectory([AppSettings(id: AppID(id))]), secrets: reader, now: now)
                != nil
        }
        for (reader, writer) in [
            (added, before), (before, added), (changed, added), (added, changed), (after, changed),
        ] {
            #expect(reads(reader, writer, "other"))
        }
        #expect(!reads(after, before, "other") && !reads(before, changed, "other"))
    }

    /// Keys of tokens that are in devices (made with Python's hmac): every version accepts them.
    @Test func theDerivationStaysAsItWas() {
        let key = SymmetricKey(data: Array("an-internal-key-of-the-tests".utf8))
        let derived = DerivedSecrets(DeploymentKeys(internalKeys: [key])).tokenKey(of: "demo")
        #expect(
            derived.withUnsafeBytes { Data($0).base64EncodedString() }
                == "HSqgMVW4sQ2a5Fm3IbbkALyYUyv5sc2u+ZrVEI1nn4takGfQ7onctea0wUU3jWadf9d3zjBBXdQO52Wk/ALJ9Q==")
    }

    @Test func eachAppHasItsOwnKey() {
        let keys = ["demo", "other", "third"].map { UserToken.key(of: AppSettings(id: $0), secrets: secrets) }
        #expect(keys[0] != keys[1] && keys[1] != keys[2])
        #expect(keys.allSatisfy { $0.bitCount >= 256 })
    }
}
