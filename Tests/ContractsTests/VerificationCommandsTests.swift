// SPDX-License-Identifier: Apache-2.0

import Testing
import WireJSON

@testable import Contracts

@Suite struct VerificationCommandsTests {
    @Test func catalog() {
        let table: [(String, Scope, JSONValue, String)] = [
            ("login", .sdk, ["deviceId": "d"], "d"),
            ("login-identity", .sdk, ["deviceId": "d", "identityToken": "t"], "d"),
            ("logout", .sdk, ["deviceId": "d"], "d"),
            ("check", .verificationCheck, ["userId": "u", "userEmail": "e", "userAuthToken": "t"], "u"),
            ("usage", .admin, [:], "usage"),
            ("forget", .internal, ["mpids": ["-7"], "userIds": [], "emails": []], "-7"),
            ("get-session", .verificationCheck, ["deviceId": "d"], "d"),
            ("review-session", .internal, ["deviceId": "d"], "d"),
        ]
        let entries = CommandCatalog.entries.filter { CommandCatalog.service(of: $0.type) == "verification" }
        #expect(entries.map(\.type) == table.map { "identity.verification.\($0.0).v1" })
        for (entry, row) in zip(entries, table) {
            #expect(entry.scope == row.1)
            #expect(CommandCatalog.partitionSubject(type: entry.type, data: row.2) == row.3)
            #expect(CommandCatalog.fullType("verification.\(row.0)") == entry.type)
        }
    }

    /// An e-mail alone is what the check is about.
    @Test func subjectOfACheck() {
        #expect(VerificationCheck(userEmail: "a@b.c", userAuthToken: "t").partitionSubject == "a@b.c")
    }

    @Test func deviceIdsAreChecked() {
        for id in ["", String(repeating: "d", count: 256), "a\nb"] {
            #expect(throws: Rejection.self) { try VerificationLogin(deviceId: id).validate() }
            #expect(throws: Rejection.self) {
                try VerificationLoginIdentity(deviceId: id, identityToken: "").validate()
            }
            #expect(throws: Rejection.self) { try VerificationLogout(deviceId: id).validate() }
            #expect(throws: Rejection.self) { try GetSession(deviceId: id).validate() }
            #expect(throws: Rejection.self) { try ReviewSession(deviceId: id).validate() }
        }
        #expect(throws: Never.self) { try VerificationLogin(deviceId: "d").validate() }
    }

    @Test func aCheckNeedsAnIdentifier() {
        #expect(throws: Rejection.self) { try VerificationCheck(userAuthToken: "t").validate() }
        #expect(throws: Rejection.self) { try VerificationCheck(userId: "", userAuthToken: "t").validate() }
        #expect(throws: Never.self) { try VerificationCheck(userEmail: "a@b.c", userAuthToken: "t").validate() }
    }

    /// Numbers are not taken for text (facts B1.1); null is the same as absent.
    @Test func membersAreText() throws {
        let null: JSONValue = ["deviceId": "d", "userId": nil, "userEmail": nil]
        #expect(try WireJSONDecoder().decode(VerificationLogin.self, from: null) == VerificationLogin(deviceId: "d"))
        for data: JSONValue in [
            ["deviceId": "d", "userId": 123], ["deviceId": "d", "userEmail": ["a"]],
            ["deviceId": "d", "userAuthToken": true], ["deviceId": 1], ["userId": "u"],
        ] {
            #expect(throws: (any Error).self) { try WireJSONDecoder().decode(VerificationLogin.self, from: data) }
        }
    }
}
