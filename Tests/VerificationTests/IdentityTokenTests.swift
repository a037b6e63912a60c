// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Foundation
import TestKit
import Testing

@testable import Runtime
@testable import Verification

@Suite struct IdentityTokenTests {
    /// As the decider does it: form, signature and age, identities.
    private func read(
        _ text: String, now: Timestamp = Fixture.now, secret: String = Fixture.secret, fullPrivacy: Bool = false,
        settings: VerificationSettings = VerificationSettings()
    ) throws(Rejection) -> Claimant {
        let token = try IdentityToken(reading: text)
        var settings = settings
        settings.identityTokenSecrets = [Fixture.key("", secret)]
        _ = try token.verify(settings, now: now)
        return try token.claimant(fullPrivacy: fullPrivacy)
    }

    private func problem(
        _ text: String, now: Timestamp = Fixture.now, fullPrivacy: Bool = false,
        settings: VerificationSettings = VerificationSettings()
    ) -> Rejection? {
        do throws(Rejection) {
            _ = try read(text, now: now, fullPrivacy: fullPrivacy, settings: settings)
            return nil
        } catch {
            return error
        }
    }

    /// F59.
    static let vector =
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpZGVudGl0aWVzIjpbeyJpZGVudGlmaWVyIjoidWlkIiwidmFsdWUiOiJjYXB0YWluX3"
        + "BsYW5ldCJ9LHsiaWRlbnRpZmllciI6ImVtYWlsIiwidmFsdWUiOiJjYXB0YWluQGV4YW1wbGUuY29tIn1dLCJpYXQiOjE3MDAwMDAwMDB9"
        + ".AL4dlQeDqW4Hs0wNw7esl5a13IFWd2Tc_7lfBYFVBz4"

    @Test func vendorVector() throws {
        let captain = Claimant.user(Identifiers(userID: "captain_planet", email: "captain@example.com"))
        #expect(try read(Self.vector) == captain)
        #expect(throws: Rejection(.invalidIdentityToken)) { try read(Self.vector, secret: "second_secret_key_01") }
    }

    @Test func whatWeMakePasses() throws {
        for secret in [
            Fixture.secret, "8_bytes_", String(repeating: "s", count: 32), String(repeating: "l", count: 100),
        ] {
            let identifiers = Identifiers(userID: "anna ✓", email: "anna@example.com")
            let token = IdentityToken.make(
                for: identifiers, secret: Fixture.symmetric(secret), issuedAt: Fixture.now)
            #expect(try read(token, secret: secret) == .user(identifiers))
        }
    }

    // MARK: Age

    @Test(
        arguments: [
            (0, nil), (24 * 3600, nil), (24 * 3600 + 1, .invalidIdentityToken), (25 * 3600, .invalidIdentityToken),
            (-300, nil), (-301, .invalidIdentityToken), (-3600, .invalidIdentityToken),
        ] as [(Int64, ReasonCode?)]) func age(_ seconds: Int64, _ reason: ReasonCode?)
    {
        let now = Timestamp(milliseconds: Fixture.now.milliseconds + seconds * 1000)
        #expect(problem(Fixture.jwt(Fixture.payload(Fixture.uid)), now: now)?.reason == reason)
    }

    @Test(
        arguments: [
            (nil, .iatIsMandatory), ("null", .iatIsMandatory), ("\"1700000000\"", .iatIsMandatory),
            ("1700000000.5", .iatIsMandatory), ("1.7e9", .iatIsMandatory), ("[1700000000]", .iatIsMandatory),
            ("{}", .iatIsMandatory), ("true", .iatIsMandatory), ("99999999999999999999", .iatIsMandatory),
            ("0", .invalidIdentityToken), ("-1700000000", .invalidIdentityToken),
            // Milliseconds: far in the future.
            ("1700000000000", .invalidIdentityToken), ("9223372036854775807", .invalidIdentityToken),
            ("-9223372036854775808", .invalidIdentityToken),
        ] as [(String?, ReasonCode)]) func issuedAt(_ iat: String?, _ reason: ReasonCode)
    {
        #expect(problem(Fixture.jwt(Fixture.payload(Fixture.uid, iat: iat)))?.reason == reason)
    }

    /// The vendor has no `exp`; one that a backend sets all the same is kept to.
    @Test(
        arguments: [
            ("1700000001", nil), ("1700000000", .invalidIdentityToken), ("\"soon\"", .invalidIdentityToken),
        ] as [(String, ReasonCode?)]) func expiry(_ exp: String, _ reason: ReasonCode?)
    {
        let payload = #"{"identities":\#(Fixture.uid),"iat":1700000000,"exp":\#(exp)}"#
        #expect(problem(Fixture.jwt(payload))?.reason == reason)
    }

    /// V90.
    @Test(
        arguments: [
            ("1700000000", nil), ("1700000300", nil), ("1", nil), ("1700000301", .invalidIdentityToken),
            ("\"now\"", .invalidIdentityToken), ("null", .invalidIdentityToken),
        ] as [(String, ReasonCode?)]) func notBefore(_ nbf: String, _ reason: ReasonCode?)
    {
        let payload = #"{"identities":\#(Fixture.uid),"iat":1700000000,"nbf":\#(nbf)}"#
        #expect(problem(Fixture.jwt(payload))?.reason == reason)
    }

    /// V91 and V92: what an app does not name is not looked at.
    @Test(
        arguments: [
            (#""aud":"shop","iss":"us""#, true), (#""aud":["other","shop"],"iss":"us""#, true),
            (#""aud":"other","iss":"us""#, false), (#""aud":[],"iss":"us""#, false), (#""iss":"us""#, false),
            (#""aud":"SHOP","iss":"us""#, false), (#""aud":{"shop":1},"iss":"us""#, false),
            (#""aud":"shop","iss":"them""#, false), (#""aud":"shop""#, false), (#""aud":"shop","iss":["us"]"#, false),
        ]) func parties(_ members: String, _ passes: Bool)
    {
        let token = Fixture.jwt(#"{"identities":\#(Fixture.uid),"iat":1700000000,\#(members)}"#)
        var settings = VerificationSettings()
        #expect(problem(token) == nil)
        settings.identityTokenAudience = "shop"
        settings.identityTokenIssuer = "us"
        #expect(problem(token, settings: settings)?.reason == (passes ? nil : .invalidIdentityToken))
    }

    // MARK: Form and signature

    static let good = Fixture.jwt(Fixture.payload(Fixture.uid))
    static let parts = good.split(separator: ".").map(String.init)

    static let malformed: [(String, String)] = [
        ("x", "three parts"), ("..", "header"), ("a.b", "three parts"), (good + ".", "three parts"),
        ("." + good, "three parts"), (parts[0] + "." + parts[1], "three parts"), (good + " ", "signature"),
        (parts[0] + "." + parts[1] + ".", "signature"), (parts[0] + ".." + parts[2], "payload"),
        ("." + parts[1] + "." + parts[2], "header"), (good + "=", "signature"),
        (good.replacing(".", with: "\n"), "three parts"),
        // alg: none, other functions, other spellings.
        (Fixture.jwt(Fixture.payload(Fixture.uid), header: #"{"alg":"none"}"#), "alg"),
        (Fixture.base64URL(Data(#"{"alg":"none"}"#.utf8)) + "." + parts[1] + ".", "alg"),
        (Fixture.jwt(Fixture.payload(Fixture.uid), header: #"{"alg":"RS256","typ":"JWT"}"#), "alg"),
        (Fixture.jwt(Fixture.payload(Fixture.uid), header: #"{"alg":"ES256"}"#), "alg"),
        (Fixture.jwt(Fixture.payload(Fixture.uid), header: #"{"alg":"HS512"}"#), "alg"),
        (Fixture.jwt(Fixture.payload(Fixture.uid), header: #"{"alg":"hs256"}"#), "alg"),
        (Fixture.jwt(Fixture.payload(Fixture.uid), header: #"{"alg":["HS256"]}"#), "alg"),
        (Fixture.jwt(Fixture.payload(Fixture.uid), header: #"{"typ":"JWT"}"#), "alg"),
        (Fixture.jwt(Fixture.payload(Fixture.uid), header: #"{"alg":"HS256","alg":"none"}"#), "header"),
        (Fixture.jwt(Fixture.payload(Fixture.uid), header: #"{"alg":"HS256","typ":"JWE"}"#), "typ"),
        (Fixture.jwt(Fixture.payload(Fixture.uid), header: #"{"alg":"HS256","typ":1}"#), "typ"),
        (Fixture.jwt(Fixture.payload(Fixture.uid), header: #"{"alg":"HS256","crit":["b64"],"b64":false}"#), "critical"),
        (Fixture.jwt(Fixture.payload(Fixture.uid), header: "[]"), "header"),
        (Fixture.jwt(Fixture.payload(Fixture.uid), header: "\"HS256\""), "header"),
        (Fixture.jwt("not json"), "payload"), (Fixture.jwt("[]"), "payload"), (Fixture.jwt("null"), "payload"),
        (Fixture.jwt(#"{"iat":1700000000,"iat":1700000000}"#), "payload"),
        (Fixture.jwt(String(repeating: "[", count: 100) + String(repeating: "]", count: 100)), "payload"),
        (
            Fixture.jwt(
                #"{"identities":"# + String(repeating: "[", count: 30_000) + String(repeating: "]", count: 10_000) + "}"
            ),
            "payload"
        ),
        (Fixture.jwt(Fixture.payload("[\"" + String(repeating: "x", count: 1 << 20) + "\"]")), "65536"),
        (String(repeating: "A", count: 1 << 20), "65536"), (String(repeating: ".", count: 1 << 16), "three parts"),
        (parts[0] + "." + parts[1] + "." + Fixture.base64URL(Data(repeating: 0, count: 64)), "signature"),
        // The standard alphabet is not base64url.
        (parts[0] + "." + "+/+/" + "." + parts[2], "payload"),
        (Fixture.base64URL(Data([0xFF, 0xFE])) + "." + parts[1] + "." + parts[2], "header"),
    ]

    @Test(arguments: malformed) func form(_ token: String, _ names: String) {
        let rejection = problem(token)
        #expect(rejection?.reason == .invalidIdentityToken)
        #expect(rejection?.message.contains(names) == true, "\(rejection?.message ?? "")")
    }

    @Test func aTypeIsOptional() throws {
        for header in [#"{"alg":"HS256"}"#, #"{"alg":"HS256","typ":"jwt","kid":"k9"}"#] {
            #expect(problem(Fixture.jwt(Fixture.payload(Fixture.uid), header: header)) == nil)
        }
    }

    /// One changed character anywhere, or another secret: refused, without a word on why.
    @Test func signature() {
        let generic = Rejection(.invalidIdentityToken)
        #expect(problem(Fixture.jwt(Fixture.payload(Fixture.uid), secret: "another_secret_key")) == generic)
        let other = Fixture.jwt(Fixture.payload(#"[{"identifier":"uid","value":"mallory"}]"#)).split(separator: ".")
        #expect(problem("\(Self.parts[0]).\(other[1]).\(Self.parts[2])") == generic)
        #expect(problem("\(Self.parts[0]).\(Self.parts[1]).\(other[2])") == generic)
        // Signed with the text of a key, as a confusion of HS256 and RS256 would have it.
        let pem = "-----BEGIN PUBLIC KEY-----\nMFwwDQYJ\n-----END PUBLIC KEY-----\n"
        #expect(problem(Fixture.jwt(Fixture.payload(Fixture.uid), secret: pem)) == generic)
    }

    // MARK: Identities

    private static func identity(_ identifier: String, _ value: String, _ more: String = "") -> String {
        #"{"identifier":"\#(identifier)","value":"\#(value)"\#(more)}"#
    }

    private static func metadata(_ text: String) -> String {
        "[" + identity("uid", "u", #","metadata":\#(text)"#) + "]"
    }

    private static func list(_ count: Int, _ name: String = "email") -> String {
        let others = (0..<(count - 1)).map { identity(name, "a\($0)@b.io") }
        return "[" + ([identity("uid", "u")] + others).joined(separator: ",") + "]"
    }

    static let identities: [(String, ReasonCode?, String)] = [
        ("null", .identitiesDataInvalid, "list"), ("{}", .identitiesDataInvalid, "list"),
        ("\"uid\"", .identitiesDataInvalid, "list"), ("[]", .uidOrEmailIsMandatory, ""),
        ("[1]", .identitiesDataInvalid, "identities[0]"), ("[{}]", .identitiesDataInvalid, "INVALID_DATA"),
        ("[\(identity("name", "x"))]", .identitiesDataInvalid, "identities[0]"),
        ("[\(identity("UID", "x"))]", .identitiesDataInvalid, "INVALID_DATA"),
        ("[\(identity("steam_id", "x"))]", .uidOrEmailIsMandatory, ""),
        ("[\(identity("uid", ""))]", .identitiesDataInvalid, "EMPTY_DATA"),
        ("[\(identity("uid", "  "))]", .identitiesDataInvalid, "EMPTY_DATA"),
        ("[\(identity("uid", " u"))]", .identitiesDataInvalid, "INVALID_DATA"),
        (#"[{"identifier":"uid","value":"a\nb"}]"#, .identitiesDataInvalid, "INVALID_DATA"),
        (#"[{"identifier":"uid","value":7}]"#, .identitiesDataInvalid, "INVALID_VALUE_TYPE"),
        (#"[{"identifier":"uid"}]"#, .identitiesDataInvalid, "INVALID_VALUE_TYPE"),
        (#"[{"identifier":"uid","value":["u"]}]"#, .identitiesDataInvalid, "INVALID_VALUE_TYPE"),
        ("[\(identity("uid", String(repeating: "u", count: 750)))]", nil, ""),
        ("[\(identity("uid", String(repeating: "u", count: 751)))]", .identitiesDataInvalid, "750"),
        (
            "[\(identity("uid", "u")),\(identity("psn_id", String(repeating: "p", count: 301)))]",
            .identitiesDataInvalid,
            "identities[1].value: EXCEEDED_VALUE_LENGTH_LIMIT"
        ),
        ("[\(identity("email", "rubbish"))]", .identitiesDataInvalid, "e-mail"),
        ("[\(identity("uid", "a")),\(identity("uid", "b"))]", .identitiesDataInvalid, "identities[1]"),
        (list(30), nil, ""), (list(31), .identitiesSizeLimitExceeded, "30"),
        (list(5000, "x"), .invalidIdentityToken, "65536"),
        (metadata("null"), nil, ""), (metadata("{}"), nil, ""), (metadata(#"{"k":"v"}"#), nil, ""),
        (metadata("[]"), .identitiesDataInvalid, "INVALID_VALUE_TYPE"),
        (metadata(#"{"k":1}"#), .identitiesDataInvalid, "INVALID_VALUE_TYPE"),
        (metadata(#"{"":"v"}"#), .identitiesDataInvalid, "METADATA_EMPTY_KEY_OR_VALUE"),
        (metadata(#"{"k":" "}"#), .identitiesDataInvalid, "METADATA_EMPTY_KEY_OR_VALUE"),
        (
            metadata(#"{"\#(String(repeating: "k", count: 256))":"v"}"#), .identitiesDataInvalid,
            "META_DATA_EXCEEDED_KEY_LENGTH_LIMIT"
        ),
        (
            metadata(#"{"k":"\#(String(repeating: "v", count: 301))"}"#), .identitiesDataInvalid,
            "META_DATA_EXCEEDED_VALUE_LENGTH_LIMIT"
        ),
        (
            metadata("{" + (0..<31).map { #""k\#($0)":"v""# }.joined(separator: ",") + "}"), .identitiesDataInvalid,
            "META_DATA_EXCEEDED_COUNT_LIMIT"
        ),
        (metadata(#"{"a":{"b":{"c":{"d":{"e":{"f":"g"}}}}}}"#), .invalidIdentityToken, "payload"),
    ]

    @Test(arguments: identities) func identityList(_ list: String, _ reason: ReasonCode?, _ names: String) {
        let rejection = problem(Fixture.jwt(Fixture.payload(list)))
        #expect(rejection?.reason == reason)
        #expect(names.isEmpty || rejection?.message.contains(names) == true, "\(rejection?.message ?? "")")
    }

    @Test func whoItIsAbout() throws {
        let both = "[\(Self.identity("email", "a@b.io")),\(Self.identity("uid", "u"))]"
        let email = "[\(Self.identity("email", "a@b.io")),\(Self.identity("email", "c@d.io"))]"
        #expect(try read(Fixture.jwt(Fixture.payload(both))) == .user(Identifiers(userID: "u", email: "a@b.io")))
        #expect(try read(Fixture.jwt(Fixture.payload(email))) == .user(Identifiers(email: "a@b.io")))
        // Full privacy: the uid only, and without one nobody in particular.
        #expect(try read(Fixture.jwt(Fixture.payload(both)), fullPrivacy: true) == .user(Identifiers(userID: "u")))
        #expect(
            try read(Fixture.jwt(Fixture.payload(email)), fullPrivacy: true) == .anonymous(.fullPrivacyWithoutUserId))
        #expect(
            try read(Fixture.jwt(Fixture.payload("[]")), fullPrivacy: true) == .anonymous(.fullPrivacyWithoutUserId))
    }

    // MARK: Fuzz

    /// Bounded and seeded: good tokens with some bytes changed, cut, doubled, their JSON bent before it is signed.
    /// Nothing crashes, everything has a reason, and nothing that was changed after signing passes.
    @Test func survivesGarbage() {
        var random = SplitMix64(seed: fuzzSeed)
        let payloads = [
            Fixture.payload(Fixture.uid), Fixture.payload(Self.list(30)), Fixture.payload(Self.metadata(#"{"k":"v"}"#)),
            Fixture.payload("[]", iat: nil),
        ]
        for _ in 0..<3000 {
            let original = payloads[Int.random(in: 0..<payloads.count, using: &random)]
            // Bent and then signed: the parser behind the signature sees it.
            let bent = String(decoding: bend(Array(original.utf8), &random), as: UTF8.self)
            _ = problem(Fixture.jwt(bent))
            // Signed and then bent: never passes, unless the bytes are the same after all.
            let token = Fixture.jwt(original)
            let broken = String(decoding: bend(Array(token.utf8), &random), as: UTF8.self)
            if broken != token { #expect(problem(broken) != nil, "\(broken)") }
        }
    }

    private func bend(_ bytes: [UInt8], _ random: inout SplitMix64) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
            let place = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<5, using: &random) {
            case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
            case 1: bytes.remove(at: place)
            case 2: bytes.insert(bytes[Int.random(in: 0..<bytes.count, using: &random)], at: place)
            case 3: bytes.removeSubrange(place...)
            default: bytes += bytes[place...]
            }
        }
        return bytes
    }

    /// Also on one of Swift's few cooperative threads, and on many at once: nothing waits for anybody else.
    @Test func verifiesFromAnywhere() async {
        let passed = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<64 { group.addTask { self.problem(Self.good) == nil } }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(passed == 64)
    }
}
