// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Foundation
import TestKit
import Testing

@testable import Runtime
@testable import Verification

@Suite struct AuthTokenTests {
    private func verify(
        _ token: String?, _ userID: String?, _ email: String?, _ settings: VerificationSettings = Fixture.settings(),
        fullPrivacy: Bool = false, now: Timestamp = Fixture.now
    ) -> AuthToken.Verdict {
        AuthToken.verify(
            token, of: Identifiers(userID: userID, email: email), settings, fullPrivacy: fullPrivacy, now: now)
    }

    struct Vector: Sendable, CustomTestStringConvertible {
        var userID: String?
        var email: String?
        var base64: String
        var hex: String?
        var testDescription: String { "\(userID ?? "-") \(email ?? "-")" }
    }

    /// F55.
    static let vectors = [
        Vector(
            userID: "captain_planet", base64: "0YXx/SAmWmwcgIqAjMdsomnTjPwnxVzMyRflSGFBRDU=",
            hex: "d185f1fd20265a6c1c808a808cc76ca269d38cfc27c55cccc917e54861414435"),
        Vector(
            email: "captain@example.com", base64: "ZVSH+Fq2mtIkHdbUz7utaSyhfqA+kEc2TRNnpYvQ+T0=",
            hex: "655487f85ab69ad2241dd6d4cfbbad692ca17ea03e9047364d1367a58bd0f93d"),
        Vector(
            userID: "captain_planet", email: "captain@example.com",
            base64: "pZXZc5LIEndozpTesCNt71buvH759yRwZGeC5mHfuzc=",
            hex: "a595d97392c8127768ce94deb0236def56eebc7ef9f72470646782e661dfbb37"),
        Vector(
            userID: "captain_planet", email: "Captain@Example.com",
            base64: "xrDg+XEkrmWblgtVsxcn9+OdxYaxJYe3lTsROYzNXtw=",
            hex: "c6b0e0f97124ae659b960b55b31727f7e39dc586b12587b7953b11398ccd5edc"),
        Vector(
            userID: "1abc", base64: "dijtQKLo11sPc5DqmpJjmZ6jZySnXHL9CIl1FImQ4lY=",
            hex: "7628ed40a2e8d75b0f7390ea9a9263999ea36724a75c72fd088975148990e256"),
        Vector(
            userID: "1ABC", base64: "gmIa8TZJrnMk7RJb0xSAKkmQLOHwOZuOkyp8E75WC3A=",
            hex: "82621af13649ae7324ed125bd314802a49902ce1f0399b8e932a7c13be560b70"),
        Vector(
            userID: "üser-✓", base64: "wqirE2dt4bo8OPQ5uwD4Uq7qeUfv1Sq7kzsjohpxXsw=",
            hex: "c2a8ab13676de1ba3c38f439bb00f852aeea7947efd52abb933b23a21a715ecc"),
        Vector(userID: "victim123", email: "a@evil.io", base64: "plEleacK8pLqFYpfehFcqsO8jifXCdRGk2gd9SeIm2o="),
        Vector(email: "victim123a@evil.io", base64: "plEleacK8pLqFYpfehFcqsO8jifXCdRGk2gd9SeIm2o="),
    ]

    /// V10.
    @Test(arguments: vectors) func vendorVectors(_ vector: Vector) {
        let url = vector.base64.replacing("+", with: "-").replacing("/", with: "_")
        var spellings = [vector.base64, url, String(vector.base64.dropLast()), String(url.dropLast())]
        if let hex = vector.hex { spellings += [hex, hex.uppercased()] }
        for spelling in spellings {
            #expect(verify(spelling, vector.userID, vector.email) == .valid(keyID: "k1"), "\(spelling)")
        }
        let key = Fixture.k1
        let made = AuthToken.make(
            for: Identifiers(userID: vector.userID, email: vector.email), key: key, .vendor, fullPrivacy: false)
        #expect(made == vector.base64)
    }

    /// Every vector's token passes for its own identifiers only, but for the two that collide by construction.
    @Test func tokensDoNotPassForOthers() {
        for one in Self.vectors {
            for other in Self.vectors where other.base64 != one.base64 {
                #expect(verify(other.base64, one.userID, one.email) == .invalid)
            }
        }
    }

    /// The published vector of another vendor: key `secret`, text `Message` (F55).
    @Test func foreignVector() {
        let settings = Fixture.settings(keys: [Fixture.key("k", "secret")])
        #expect(verify("qnR8UCqJggD55PohusaBNviGoOJ67HC6Btry4qXLVZc=", "Message", nil, settings) == .valid(keyID: "k"))
    }

    @Test(arguments: [nil, "", " ", "\n\t "] as [String?]) func missing(_ token: String?) {
        #expect(verify(token, "captain_planet", nil) == .notProvided)
    }

    static let good = vectors[0].base64

    static let malformedTokens: [String] = {
        var tokens: [String] = []
        tokens.append("x")
        tokens.append(good + "=")
        tokens.append(good + " ")
        tokens.append(" " + good)
        tokens.append(good + "\n")
        tokens.append("\"\(good)\"")
        tokens.append(String(good.dropLast(2)))
        tokens.append(good + good)
        tokens.append(String(good.dropLast(2)) + "==")
        tokens.append(good.replacing("0YXx", with: "0YXy"))
        tokens.append("=" + String(good.dropLast()))
        tokens.append(String(repeating: "=", count: 44))
        tokens.append(String(repeating: "A", count: 43) + "=")
        tokens.append(String(repeating: "é", count: 22))
        // The last character's spare bits are not 0: the same bytes for a careless decoder.
        tokens.append(good.replacing("DU=", with: "DV="))
        tokens.append(String(repeating: "0", count: 64))
        tokens.append(String(repeating: "g", count: 64))
        tokens.append(String(vectors[0].hex?.dropLast() ?? ""))
        tokens.append(good.replacing("D", with: "\0"))
        tokens.append(String(repeating: "A", count: 1 << 20))
        tokens.append("null")
        tokens.append("undefined")
        tokens.append("e30.e30.AA")
        return tokens
    }()

    @Test(arguments: malformedTokens) func malformed(_ token: String) {
        #expect(verify(token, "captain_planet", nil) == .invalid)
    }

    // MARK: Keys

    /// V31.
    @Test func everyLiveKeyVerifies() {
        #expect(verify(Fixture.token("anna"), "anna", nil) == .valid(keyID: "k1"))
        #expect(verify(Fixture.token("anna", "second_secret_key_0123456789"), "anna", nil) == .valid(keyID: "k2"))
        #expect(verify(Fixture.token("anna", "third_secret_key"), "anna", nil) == .invalid)
        #expect(verify(Fixture.token("anna"), "anna", nil, Fixture.settings(keys: [])) == .invalid)
        #expect(verify(Fixture.token("anna"), "anna", nil, Fixture.settings(keys: [Fixture.k2])) == .invalid)
    }

    @Test func aRetiredKeyNeverVerifies() {
        let retiring = Fixture.key("k1", Fixture.secret, retireAt: Fixture.now)
        let settings = Fixture.settings(keys: [retiring, Fixture.k2])
        let before = Timestamp(milliseconds: Fixture.now.milliseconds - 1)
        #expect(verify(Fixture.token("anna"), "anna", nil, settings, now: before) == .valid(keyID: "k1"))
        #expect(verify(Fixture.token("anna"), "anna", nil, settings) == .invalid)
        #expect(
            verify(Fixture.token("anna", "second_secret_key_0123456789"), "anna", nil, settings)
                == .valid(keyID: "k2"))
    }

    /// The secret is text: hex in it is not decoded.
    @Test func secretsAreText() {
        let hex = "00112233445566778899aabbccddeeff"
        let settings = Fixture.settings(keys: [Fixture.key("k", hex)])
        #expect(verify(Fixture.token("anna", hex), "anna", nil, settings) == .valid(keyID: "k"))
        let decoded = SymmetricKey(data: [UInt8](hex: hex) ?? [])
        let token = Data(HMAC<SHA256>.authenticationCode(for: Data("anna".utf8), using: decoded)).base64EncodedString()
        #expect(verify(token, "anna", nil, settings) == .invalid)
    }

    // MARK: Signed fields

    struct Shape: Sendable, CustomTestStringConvertible {
        var fields: Fixture.Fields
        var userID: String?
        var email: String?
        /// What has to be signed; `nil`: nothing makes it pass.
        var text: String?
        var fullPrivacy = false
        var testDescription: String { "\(fields) \(userID ?? "-") \(email ?? "-")\(fullPrivacy ? " private" : "")" }
    }

    static let shapes = [
        Shape(fields: .vendor, userID: "u", text: "u"), Shape(fields: .vendor, email: "e@x.io", text: "e@x.io"),
        Shape(fields: .vendor, userID: "u", email: "e@x.io", text: "ue@x.io"),
        Shape(fields: .userId, userID: "u", text: "u"), Shape(fields: .userId, email: "e@x.io"),
        Shape(fields: .userId, userID: "u", email: "e@x.io", text: "u"),
        Shape(fields: .email, userID: "u"), Shape(fields: .email, email: "e@x.io", text: "e@x.io"),
        Shape(fields: .email, userID: "u", email: "e@x.io", text: "e@x.io"),
        Shape(fields: .delimited, userID: "u"), Shape(fields: .delimited, email: "e@x.io"),
        Shape(fields: .delimited, userID: "u", email: "e@x.io", text: "u\ne@x.io"),
        // Full privacy: the e-mail is dropped before.
        Shape(fields: .vendor, userID: "u", text: "u", fullPrivacy: true),
        Shape(fields: .userId, userID: "u", text: "u", fullPrivacy: true),
        Shape(fields: .delimited, userID: "u", text: "u", fullPrivacy: true),
        Shape(fields: .email, userID: "u", fullPrivacy: true),
    ]

    @Test(arguments: shapes) func onlyTheSignedTextPasses(_ shape: Shape) {
        let settings = Fixture.settings(.enforce, shape.fields)
        for text in ["u", "e@x.io", "ue@x.io", "u\ne@x.io", "u\n", "\ne@x.io", "\n", "e@x.iou", ""] {
            let verdict = verify(
                Fixture.token(text), shape.userID, shape.email, settings, fullPrivacy: shape.fullPrivacy)
            #expect(
                verdict == (text == shape.text ? .valid(keyID: "k1") : .invalid), "signed: \(text.debugDescription)")
        }
    }

    @Test func whatIsNotSignedIsNotUsed() {
        let both = Identifiers(userID: "u", email: "e@x.io", name: "n")
        #expect(SignedMessage.covered(both, .vendor) == both)
        #expect(SignedMessage.covered(both, .delimited) == both)
        #expect(SignedMessage.covered(both, .userId) == Identifiers(userID: "u", name: "n"))
        #expect(SignedMessage.covered(both, .email) == Identifiers(email: "e@x.io", name: "n"))
    }

    // MARK: The concatenation attack (V14)

    /// Somebody owns the e-mail address `victim123a@evil.io` and has its token. Each row is what they may try with it.
    static let attacks: [(userID: String?, email: String?)] = [
        ("victim123", "a@evil.io"), ("victim", "123a@evil.io"), ("v", "ictim123a@evil.io"),
        ("victim123a@evil.io", nil),
    ]

    /// Under `vendor` all of them work: the joined text is the same. This is why the other policies are there.
    @Test(arguments: attacks) func vendorIsAmbiguous(_ attack: (userID: String?, email: String?)) {
        let token = Fixture.token("victim123a@evil.io")
        #expect(verify(token, nil, "victim123a@evil.io") == .valid(keyID: "k1"))
        #expect(verify(token, attack.userID, attack.email) == .valid(keyID: "k1"))
    }

    /// Under the others the token is what the backend gives to the owner of that address, and none works. With
    /// `email` a user id is not used at all, so it may stand beside the right e-mail and changes nothing.
    @Test(arguments: [Fixture.Fields.userId, .email, .delimited], attacks)
    func theOthersAreNot(_ fields: Fixture.Fields, _ attack: (userID: String?, email: String?)) {
        let settings = Fixture.settings(.enforce, fields)
        // A backend under `userId` or `delimited` gives the attacker a token for their own user id.
        let owner = Identifiers(userID: "mallory", email: "victim123a@evil.io")
        let token = AuthToken.make(for: owner, key: Fixture.k1, fields, fullPrivacy: false)
        #expect(verify(token, owner.userID, owner.email, settings) == .valid(keyID: "k1"))
        #expect(verify(token, attack.userID, attack.email, settings) == .invalid)
        // And one who gets the vendor's token anyhow gains nothing either.
        let joined = Fixture.token("victim123a@evil.io")
        let passes = verify(joined, attack.userID, attack.email, settings) != .invalid
        // Only a user id that is that very text was signed under `userId`; nobody else's.
        #expect(passes == (fields == .userId && attack.userID == "victim123a@evil.io"))
    }

    /// (`1`, `23a@evil.io`) and (`123`, `a@evil.io`) (V14).
    @Test func delimitedTellsThemApart() {
        #expect(verify(Fixture.token("123a@evil.io"), "1", "23a@evil.io") == .valid(keyID: "k1"))
        #expect(verify(Fixture.token("123a@evil.io"), "123", "a@evil.io") == .valid(keyID: "k1"))
        let settings = Fixture.settings(.enforce, .delimited)
        #expect(verify(Fixture.token("1\n23a@evil.io"), "1", "23a@evil.io", settings) == .valid(keyID: "k1"))
        #expect(verify(Fixture.token("1\n23a@evil.io"), "123", "a@evil.io", settings) == .invalid)
    }

    /// No user id that counts has a line feed, so `delimited` has one reading only.
    @Test func aLineFeedInAUserIDDoesNotCount() {
        #expect(
            Claimant(userID: "a\nb", email: "c@d.io", fullPrivacy: false) == .anonymous(.userIdControlCharacter))
        #expect(Claimant(userID: "a", email: "b\nc@d.io", fullPrivacy: false) == .anonymous(.userEmailInvalid))
    }

    /// Seeded: no random text passes, no spelling crashes.
    @Test func survivesGarbage() {
        var random = SplitMix64(seed: fuzzSeed)
        let alphabet = Array("ABCxyz019+/-_= \n\0é✓.%\"".unicodeScalars)
        for _ in 0..<20_000 {
            let length = Int.random(in: 0...70, using: &random)
            var token = String.UnicodeScalarView()
            for _ in 0..<length { token.append(alphabet[Int.random(in: 0..<alphabet.count, using: &random)]) }
            let text = String(token)
            #expect(verify(text, "captain_planet", nil) == (text.isBlank ? .notProvided : .invalid))
        }
    }
}

/// The Swift lines of docs/verification.md stand in ServerSnippet.swift; test_verification_docs.py compares the two.
@Suite struct ServerSnippetTests {
    @Test(arguments: AuthTokenTests.vectors) func givesTheVendorsTokens(_ vector: AuthTokenTests.Vector) {
        let message = (vector.userID ?? "") + (vector.email ?? "")
        #expect(userAuthToken(secret: Fixture.secret, message: message) == vector.base64)
    }
}
