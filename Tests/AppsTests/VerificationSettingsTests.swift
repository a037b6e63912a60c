// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Foundation
import Testing

@testable import Apps

@Suite struct VerificationSettingsTests {
    private struct NoFile: Error {}

    private func parse(_ section: String, files: [String: String] = [:]) throws -> VerificationSettings {
        let apps = try AppsFile.parse("apps: [{id: demo, verification: \(section)}]") { path in
            guard let content = files[path] else { throw NoFile() }
            return content
        }
        return try #require(apps["demo"]).verification
    }

    @Test func whatIsNotSaid() throws {
        for settings in [try parse("{}"), try parse("{mode: off}"), try parse("{mode: \"off\"}")] {
            #expect(settings.mode == .off)
            #expect(settings.signedFields == .vendor)
            #expect(settings.keys.isEmpty)
            #expect(settings.identityTokenSecrets.isEmpty)
            #expect(settings.sessionLifetime == nil)
            #expect(!settings.fullPrivacy)
            #expect(!settings.clearAnonymousUserOnLogin)
        }
    }

    @Test func readsEverything() throws {
        let settings = try parse(
            """
            {mode: enforce, signedFields: delimited, fullPrivacy: true, clearAnonymousUserOnLogin: true, sessionSeconds: 86400,
             identityTokenSecretFile: jwt, keys: [
               {id: k1, secret: test_secret_key_0123456789, created: 2026-01-31, retireAt: 2026-02-28T12:00:00+01:00},
               {id: k2, secretFile: second}]}
            """, files: ["jwt": "identity-token-secret\n", "second": "second_secret\n"])
        #expect(settings.mode == .enforce)
        #expect(settings.signedFields == .delimited)
        #expect(settings.fullPrivacy)
        #expect(settings.clearAnonymousUserOnLogin)
        #expect(settings.identityTokenSecrets.map(\.secret) == [SymmetricKey(data: Data("identity-token-secret".utf8))])
        #expect(settings.identityTokenSecrets.map(\.shownID) == [nil])
        #expect(settings.sessionLifetime == 86_400_000)
        #expect(settings.keys.map(\.id) == ["k1", "k2"])
        #expect(settings.keys[0].secret == SymmetricKey(data: Data("test_secret_key_0123456789".utf8)))
        #expect(settings.keys[0].created == Timestamp(rfc3339: "2026-01-31T00:00:00Z"))
        #expect(settings.keys[0].retireAt == Timestamp(rfc3339: "2026-02-28T11:00:00Z"))
        #expect(settings.keys[1].secret == SymmetricKey(data: Data("second_secret".utf8)))
    }

    @Test func severalIdentityTokenSecrets() throws {
        let settings = try parse(
            """
            {mode: enforce, signedFields: userId, identityTokenSecrets: [
              {id: j1, secret: 0123456789, retireAt: 2026-02-28}, {id: j2, secretFile: second}]}
            """, files: ["second": "second_secret\n"])
        #expect(settings.identityTokenSecrets.map(\.shownID) == ["j1", "j2"])
        #expect(settings.identityTokenSecrets[0].retireAt == Timestamp(rfc3339: "2026-02-28T00:00:00Z"))
        #expect(settings.identityTokenSecrets[1].secret == SymmetricKey(data: Data("second_secret".utf8)))
    }

    @Test func aKeyLivesUntilItRetires() throws {
        let settings = try parse(
            "{keys: [{id: k1, secret: 0123456789, retireAt: 2026-02-28T12:00:00Z}, {id: k2, secret: abcdefgh}]}")
        let end = try #require(Timestamp(rfc3339: "2026-02-28T12:00:00Z"))
        let before = Timestamp(milliseconds: end.milliseconds - 1)
        #expect(settings.liveKeys(at: before).map(\.id) == ["k1", "k2"])
        #expect(settings.liveKeys(at: end).map(\.id) == ["k2"])
    }

    @Test(
        arguments: [
            ("{mode: on}", ["off, report, enforce"]), ("{signedFields: name}", ["vendor, userId, email, delimited"]),
            ("{mode: enforce}", ["enforce", "keys"]), ("{mode: report, keys: []}", ["report", "keys"]),
            ("{modus: off}", ["modus"]), ("{keys: [{secret: 0123456789}]}", ["id"]),
            ("{keys: [{id: k1}]}", ["key k1", "secret"]), ("{keys: [{id: '', secret: 0123456789}]}", ["1 to 255"]),
            ("{keys: [{id: k1, secret: short}]}", ["key k1", "8 bytes"]),
            ("{keys: [{id: k1, secret: 0123456789, scope: x}]}", ["scope"]),
            ("{keys: [{id: k1, secret: 0123456789, created: soon}]}", ["key k1", "created"]),
            ("{keys: [{id: k1, secret: 0123456789, retireAt: 31.12.}]}", ["key k1", "retireAt"]),
            ("{keys: [{id: k1, secret: 0123456789}, {id: k1, secret: abcdefgh}]}", ["key k1", "twice"]),
            ("{keys: [{id: k1, secret: 0123456789}, {id: k2, secret: 0123456789}]}", ["key k2", "key k1"]),
            ("{keys: [{id: k1, secretFile: missing}]}", ["key k1", "secretFile"]),
            ("{identityTokenSecret: short}", ["identityTokenSecret", "8 bytes"]),
            ("{identityTokenSecret: a12345678, identityTokenSecretFile: b}", ["identityTokenSecret", "either"]),
            ("{identityTokenSecrets: [{id: j1, secret: 0123456789}, {id: j1, secret: abcdefgh}]}", ["j1", "twice"]),
            ("{identityTokenSecrets: [{id: j1, secret: 0123456789}, {id: j2, secret: 0123456789}]}", ["j2", "j1"]),
            ("{identityTokenSecrets: [{secret: 0123456789}]}", ["id"]),
            (
                "{identityTokenSecrets: [{id: j1, secret: 0123456789}], identityTokenSecret: abcdefgh}",
                ["identityTokenSecrets", "either"]
            ),
            (
                "{mode: enforce, keys: [{id: k1, secret: 0123456789}]}",
                ["enforce", "signedFields", "delimited", "userId", "email", "vendor"]
            ),
            ("{mode: report, identityTokenSecret: 0123456789}", ["report", "signedFields"]),
            ("{sessionSeconds: 0}", ["sessionSeconds", "from 1"]), ("{sessionSeconds: a day}", ["sessionSeconds"]),
            ("{fullPrivacy: true, signedFields: email}", ["fullPrivacy", "email"]),
            ("{fullPrivacy: maybe}", ["fullPrivacy"]),
            ("enforce", ["verification"]),
        ] as [(String, [String])]) func mistakes(_ section: String, _ names: [String])
    {
        let problem = #expect(throws: AppsFile.Problem.self) { try parse(section) }
        for name in names { #expect(problem?.description.contains(name) == true, "\(problem?.description ?? "")") }
        #expect(problem?.description.contains("0123456789") != true)
        #expect(problem?.description.contains("\n") != true)
    }

    /// Secrets do not show when settings are printed.
    @Test func secretsAreNotPrinted() throws {
        let settings = try parse("{keys: [{id: k1, secret: very-secret-text}], identityTokenSecret: very-secret-jwt}")
        #expect(!String(reflecting: settings).contains("very-secret"))
        #expect(settings.keys[0].description == "verification key k1")
    }
}
