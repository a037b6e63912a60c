// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Verification

@Suite struct ClaimantTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var userID: String?
        var email: String?
        var expected: Claimant
        var fullPrivacy = false
        var testDescription: String { "\(userID?.debugDescription ?? "-") \(email?.debugDescription ?? "-")" }
    }

    private static func user(_ userID: String?, _ email: String? = nil) -> Claimant {
        .user(Identifiers(userID: userID, email: email))
    }

    /// V1, V2, V3, V5.
    static let rows = [
        Row(expected: .anonymous(.noIdentifier)), Row(userID: "", email: "", expected: .anonymous(.noIdentifier)),
        Row(userID: " \t\n", email: "  ", expected: .anonymous(.noIdentifier)),
        Row(userID: "u", expected: user("u")), Row(userID: "u", email: " ", expected: user("u")),
        Row(userID: "U", expected: user("U")), Row(userID: "a b", expected: user("a b")),
        Row(userID: " u", expected: .anonymous(.userIdOuterWhiteSpace)),
        Row(userID: "u\n", email: "a@b.io", expected: .anonymous(.userIdOuterWhiteSpace)),
        Row(userID: "u\u{a0}", expected: .anonymous(.userIdOuterWhiteSpace)),
        Row(userID: String(repeating: "u", count: 750), expected: user(String(repeating: "u", count: 750))),
        Row(userID: String(repeating: "é", count: 750), expected: user(String(repeating: "é", count: 750))),
        Row(userID: String(repeating: "u", count: 751), email: "a@b.io", expected: .anonymous(.userIdTooLong)),
        Row(userID: "a\u{0}b", expected: .anonymous(.userIdControlCharacter)),
        Row(userID: "null", expected: .anonymous(.userIdNamesNobody)),
        Row(userID: "UNDEFINED", email: "a@b.io", expected: .anonymous(.userIdNamesNobody)),
        Row(userID: "0000-0000", expected: .anonymous(.userIdNamesNobody)),
        Row(email: "a@b.io", expected: user(nil, "a@b.io")), Row(email: "A@B.io", expected: user(nil, "A@B.io")),
        Row(userID: "u", email: "a@b.io", expected: user("u", "a@b.io")),
        Row(userID: "u", email: "a@b", expected: .anonymous(.userEmailInvalid)),
        Row(email: " a@b.io", expected: .anonymous(.userEmailOuterWhiteSpace)),
        Row(email: "a@b.io ", expected: .anonymous(.userEmailOuterWhiteSpace)),
        Row(userID: "u", email: "rubbish", expected: user("u"), fullPrivacy: true),
        Row(userID: "u", email: "a@b.io", expected: user("u"), fullPrivacy: true),
        Row(email: "a@b.io", expected: .anonymous(.fullPrivacyWithoutUserId), fullPrivacy: true),
        Row(expected: .anonymous(.fullPrivacyWithoutUserId), fullPrivacy: true),
    ]

    @Test(arguments: rows) func identifiers(_ row: Row) {
        #expect(Claimant(userID: row.userID, email: row.email, fullPrivacy: row.fullPrivacy) == row.expected)
    }

    @Test(
        arguments: [
            ("my@email.com", true), ("a@b.io", true), ("a.b+c_d@sub.example.co", true), ("o'neil@x.org", true),
            ("é@x.io", true), ("a@bücher.example", true), ("a@1.2", true), ("a", false), ("", false), ("@", false),
            ("a@", false), ("@b.io", false), ("a@b", false), ("a@.io", false), ("a@b.", false), ("a@b..io", false),
            ("a@@b.io", false), ("a b@c.io", false), ("a@b c.io", false), ("a@-b.io", false), ("a@b-.io", false),
            ("a@b_c.io", false), ("<a@b.io>", false), ("a,b@c.io", false), ("\"a\"@b.io", false), ("a@b.io\n", false),
            ("a\u{0}@b.io", false), ("a@[127.0.0.1]", false), (String(repeating: "a", count: 65) + "@b.io", false),
            (String(repeating: "a", count: 64) + "@b.io", true),
            ("a@" + String(repeating: "b", count: 64) + ".io", false),
            ("a@" + String(repeating: "b.", count: 160) + "io", false),
        ]) func emails(_ text: String, _ isValid: Bool)
    {
        #expect(EmailAddress.isValid(text) == isValid)
    }

    private func name(_ name: String?, fullPrivacy: Bool = false) -> String? {
        guard case .user(let user) = Claimant(userID: "u", email: nil, name: name, fullPrivacy: fullPrivacy) else {
            return nil
        }
        return user.name
    }

    /// V4.
    @Test func names() {
        #expect(name(nil) == nil)
        #expect(name(" ") == nil)
        #expect(name("Captain Planet") == "Captain Planet")
        #expect(name("Captain\nPlanet\u{0}") == "CaptainPlanet")
        #expect(name("Captain", fullPrivacy: true) == nil)
        let long = String(repeating: "n", count: 300)
        #expect(name(long) == String(repeating: "n", count: 255))
        #expect(name(String(long.prefix(255))) == String(long.prefix(255)))
        // No character is torn apart: 7 code points do not fit into the one that is left.
        let family = "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}\u{200D}\u{1F466}"
        #expect(name(String(long.prefix(254)) + family) == String(long.prefix(254)))
    }
}
