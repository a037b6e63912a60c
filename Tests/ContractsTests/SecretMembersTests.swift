// SPDX-License-Identifier: Apache-2.0

import Testing
import WireJSON

@testable import Contracts

@Suite struct SecretMembersTests {
    private let open: JSONValue = [
        "a": [["tokenId": "t", "expiryDate": "e"], "tokenId"], "authCode": .null, "appSecret": ["x": 1],
    ]

    @Test func secretsAreReplacedWhereverTheyLie() {
        #expect(
            SecretMembers.replaced(in: open, by: "-") == [
                "a": [["tokenId": "-", "expiryDate": "e"], "tokenId"], "authCode": .null, "appSecret": "-",
            ])
        #expect(
            SecretMembers.replaced(in: open, by: nil) == [
                "a": [["expiryDate": "e"], "tokenId"], "authCode": .null,
            ])
    }

    /// Who adds a confidential result names its secrets too: dry runs and `identitybus watch` leave out these.
    @Test func everyConfidentialResultHasOne() throws {
        let token = UserTokenResult(tokenId: "secret", expiryDate: .now)
        let results: [any CommandResult] = [
            AuthCodeResult(authenticationCode: "secret", expiresAt: .now),
            UserResult(
                userId: "u", installId: "i", isLinked: true, isRemoteEnabled: true, token: token, configuration: [:],
                installToken: token),
            PendingUser(installId: "i", awaiting: .linker, installToken: token),
        ]
        for result in results {
            #expect(type(of: result).isConfidential)
            let written = try JSONValue(parsing: WireJSONEncoder().encode(result))
            let text = String(decoding: SecretMembers.replaced(in: written, by: nil).serialized(), as: UTF8.self)
            #expect(!text.contains("secret"))
        }
    }

    @Test func digestsDoNotDependOnHowDataIsWritten() throws {
        let one = try JSONValue(parsing: Array(#"{"a":1,"b":"\u00e9"}"#.utf8))
        let two = try JSONValue(parsing: Array("{ \"b\" : \"\u{E9}\", \"a\" : 1 }".utf8))
        let digest = CommandDigest.text(type: "t", data: one)
        #expect(digest == CommandDigest.text(type: "t", data: two) && digest.count == 64)
        #expect(digest != CommandDigest.text(type: "u", data: one))
        #expect(digest != CommandDigest.text(type: "t", data: ["a": 1, "b": "e"]))
    }
}
