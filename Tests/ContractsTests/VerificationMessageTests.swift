// SPDX-License-Identifier: Apache-2.0

import Testing
import WireJSON

@testable import Contracts

@Suite struct VerificationMessageTests {
    @Test func catalog() {
        let table: [(String, Scope, JSONValue, String)] = [
            ("login", .sdk, ["deviceId": "d"], "d"),
            ("login-identity", .sdk, ["deviceId": "d", "identityToken": "t"], "d"),
            ("logout", .sdk, ["deviceId": "d"], "d"),
            ("check", .verificationCheck, ["userId": "u", "userEmail": "e", "userAuthToken": "t"], "u"),
            ("usage", .admin, [:], "usage"),
            ("get-session", .verificationCheck, ["deviceId": "d"], "d"),
            ("review-session", .internal, ["deviceId": "d"], "d"),
            ("forget", .internal, ["mpids": ["-7"], "userIds": [], "emails": []], "-7"),
            ("expire-session", .internal, ["deviceId": "d", "lastSeen": "2026-01-01T00:00:00.000Z"], "d"),
            ("facts", .support, ["id": "x"], "x"),
        ]
        let types = commandTypes.filter { CommandType.service(of: $0.name) == "verification" }
        #expect(types.map(\.name) == table.map { "identity.verification.\($0.0).v1" })
        for (type, row) in zip(types, table) {
            #expect(type.scope == row.1)
            #expect(type.orScope == (row.0 == "get-session" ? .support : nil))
            #expect(type.partitionSubject(of: row.2) == row.3)
            #expect(CommandType.fullName("verification.\(row.0)") == type.name)
        }
    }

    /// An e-mail alone is what the check is about.
    @Test func subjectOfACheck() {
        #expect(VerificationCheck(userEmail: "a@b.c", userAuthToken: "t").partitionSubject == "a@b.c")
    }

    @Test func deviceIdsAreChecked() {
        for id in ["", String(repeating: "d", count: 256), "a\nb"] {
            #expect(throws: Rejection.self) { try VerificationLogin(deviceId: DeviceID(id)).validate() }
            #expect(throws: Rejection.self) {
                try VerificationLoginIdentity(deviceId: DeviceID(id), identityToken: "").validate()
            }
            #expect(throws: Rejection.self) { try VerificationLogout(deviceId: DeviceID(id)).validate() }
            #expect(throws: Rejection.self) { try GetSession(deviceId: DeviceID(id)).validate() }
            #expect(throws: Rejection.self) { try ReviewSession(deviceId: DeviceID(id)).validate() }
        }
        #expect(throws: Never.self) { try VerificationLogin(deviceId: "d").validate() }
    }

    @Test func aCheckNeedsAnIdentifier() {
        #expect(throws: Rejection.self) { try VerificationCheck(userAuthToken: "t").validate() }
        #expect(throws: Rejection.self) { try VerificationCheck(userId: "", userAuthToken: "t").validate() }
        #expect(throws: Never.self) { try VerificationCheck(userEmail: "a@b.c", userAuthToken: "t").validate() }
    }

    /// Numbers are not taken for text (F50); null is the same as absent.
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
