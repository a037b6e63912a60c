// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Foundation
import Testing

@testable import Runtime
@testable import Verification

/// Each usual mistake of a backend is named.
@Suite struct DiagnosisTests {
    private static let hexSecret = "00112233445566778899aabbccddeeff"

    private func explain(
        _ token: String, _ fields: Fixture.Fields = .vendor, _ userID: String? = "Anna", _ email: String? = "Anna@B.io",
        keys: [VerificationSettings.Key]? = nil
    ) -> String {
        let all =
            keys ?? [
                Fixture.k1, Fixture.key("hex", Self.hexSecret),
                Fixture.key("gone", "retired_secret", retireAt: Fixture.now),
            ]
        let app = AppSettings(id: "support", verification: Fixture.settings(.enforce, fields, keys: all))
        let other = AppSettings(
            id: "other", verification: Fixture.settings(keys: [Fixture.key("ok", "secret_of_another")]))
        let diagnosis = TokenDiagnosis(app: app, now: Fixture.now, otherApps: [app, other])
        return diagnosis.explain(token: token, userID: userID, email: email).joined(separator: " | ")
    }

    private static func base64(_ bytes: some Sequence<UInt8>) -> String { Data(bytes).base64EncodedString() }
    private static let text = "AnnaAnna@B.io"
    private static let good = Fixture.token(text)

    static let mistakes: [(String, String)] = [
        (good, "passes (key k1)"), ("", "no token"), (" \(good)\n", "white space or quotes"),
        ("\"\(good)\"", "white space or quotes"),
        (good.replacing("+", with: "%2B").replacing("/", with: "%2F").replacing("=", with: "%3D"), "percent-encoded"),
        (
            base64(Fixture.hmac(text).map { String(format: "%02x", $0) }.joined().utf8),
            "wrong encoding: base64 of the hex"
        ),
        ("not base64!", "neither base64 nor hex"), ("AAAA", "3 bytes"),
        (Fixture.token("Anna@B.ioAnna"), "wrong field order"), (Fixture.token("Anna@B.io\nAnna"), "wrong field order"),
        (Fixture.token("Annaanna@b.io"), "e-mail case"), (Fixture.token("annaanna@b.io"), "e-mail case"),
        (Fixture.token("anna@b.io"), "e-mail case"), (Fixture.token("anna@b.ioAnna"), "wrong field order"),
        (Fixture.token("Anna"), "user id alone"), (Fixture.token("Anna@B.io"), "e-mail alone"),
        (Fixture.token("Anna\nAnna@B.io"), "line feed"), (Fixture.token("Anna:Anna@B.io"), "separator"),
        (Fixture.token(text + "\n"), "line feed at the end"),
        (Fixture.token(text, "retired_secret"), "retired key: gone"),
        (Fixture.token(text, "secret_of_another"), "another app's key: ok of app other"),
        (Fixture.token(text, Fixture.secret + "\n"), "line feed at its end"),
        (Fixture.token(text, base64(Fixture.secret.utf8)), "base64-encoded secret"),
        (
            base64(
                HMAC<SHA256>.authenticationCode(
                    for: Data(text.utf8),
                    using: SymmetricKey(data: [UInt8](hex: hexSecret) ?? []))),
            "hex-decoded secret (key hex)"
        ),
        (
            base64(HMAC<SHA512>.authenticationCode(for: Data(text.utf8), using: Fixture.symmetric(Fixture.secret))),
            "HMAC-SHA512"
        ),
        (
            base64(
                HMAC<Insecure.SHA1>.authenticationCode(for: Data(text.utf8), using: Fixture.symmetric(Fixture.secret))),
            "HMAC-SHA1"
        ),
        (base64(SHA256.hash(data: Data((Fixture.secret + text).utf8))), "SHA-256 of secret and text"),
        (base64(SHA256.hash(data: Data(text.utf8))), "without the secret"),
        (Fixture.token(Fixture.secret, text), "exchanged"),
        (Fixture.token(text, "nobody_knows_this"), "none of the usual mistakes"),
    ]

    @Test(arguments: mistakes) func isNamed(_ token: String, _ words: String) {
        let said = explain(token)
        #expect(said.contains(words), "\(said)")
        // Not even an operator's screen shows a secret.
        #expect(!said.contains(Fixture.secret) && !said.contains("secret_of_another"))
    }

    /// The usual ones, whichever of the two wrote capitals.
    @Test(
        arguments: [
            ("Ole", "ole", nil, "letter case: Ole was signed"),
            ("ole", "Ole", nil, "letter case: the lower-cased text"),
            ("McKay", "mckay", nil, "letter case: McKay was signed"), ("OLE", "ole", nil, "the upper-cased text"),
            ("Jan Van Der Meer-Smith", "jan van der meer-smith", nil, "letter case: Jan Van Der Meer-Smith was signed"),
            ("oleAnn.Ole@b.io", "ole", "ann.ole@b.io", "letter case: ole and Ann.Ole@b.io were signed"),
            ("OleOle@b.io", "ole", "ole@b.io", "letter case: Ole and Ole@b.io were signed"),
        ] as [(String, String, String?, String)])
    func letterCaseIsNamedBothWays(_ signed: String, _ userID: String, _ email: String?, _ words: String) {
        let said = explain(Fixture.token(signed), .vendor, userID, email)
        #expect(said.contains(words), "\(said)")
    }

    @Test func anotherNameIsNotTakenForLetterCase() {
        #expect(explain(Fixture.token("Olf"), .vendor, "ole", nil).contains("none of the usual mistakes"))
    }

    @Test func twoMistakesAtOnce() {
        let said = explain(Fixture.token("Anna@B.ioAnna", "retired_secret"))
        #expect(said.contains("wrong field order") && said.contains("retired key"))
    }

    @Test func whatTheAppSigns() {
        #expect(explain(Fixture.token("Anna"), .email, "Anna", nil).contains("email must be given"))
        #expect(explain(Fixture.token("Anna"), .delimited, "Anna", nil).contains("email and userId must be given"))
        #expect(explain(Self.good, .delimited).contains("without a separator"))
        #expect(explain(Self.good, .vendor, " Anna", nil).contains("anonymous"))
        #expect(explain(Self.good, keys: []).contains("no verification keys"))
    }
}
