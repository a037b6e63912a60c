// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import Testing

@testable import Apps

/// Secrets of the apps file among themselves: one for each purpose, long enough, and none that everybody knows.
@Suite struct SecretUseTests {
    private func parse(_ text: String, _ weakSecrets: WeakSecrets = .warn) throws -> AppDirectory {
        try AppsFile.parse(text, weakSecrets: weakSecrets) { _ in "the-same-secret-hunter2" }
    }

    private static let same = "the-same-secret-hunter2"

    /// The places that share a secret, as the line names them.
    static let shared: [(String, [String])] = [
        (
            "apps: [{id: a, verification: {keys: [{id: k1, secret: \(same)}], identityTokenSecret: \(same)}}]",
            ["app a, verification, identityTokenSecret", "app a, verification, key k1"]
        ),
        (
            "apps: [{id: a, verification: {keys: [{id: k1, secretFile: x}], identityTokenSecrets: [{id: j1, secretFile: y}]}}]",
            ["app a, verification, identityTokenSecrets j1", "app a, verification, key k1"]
        ),
        (
            "apps: [{id: a, keys: [{id: b, secret: \(same), scopes: []}], verification: {keys: [{id: k1, secret: \(same)}]}}]",
            ["app a, verification, key k1", "app a, key b"]
        ),
        (
            "apps: [{id: a, sdk: {appSecret: \(same)}, verification: {keys: [{id: k1, secret: \(same)}]}}]",
            ["app a, verification, key k1", "app a, sdk, appSecret"]
        ),
        (
            "apps: [{id: a, sdk: {tokenSecret: \(same)-\(same)}, verification: {identityTokenSecret: \(same)-\(same)}}]",
            ["app a, verification, identityTokenSecret", "app a, sdk, tokenSecret"]
        ),
        (
            "apps: [{id: a, sdk: {appSecret: \(same)}, keys: [{id: b, secret: \(same), scopes: []}]}]",
            ["app a, sdk, appSecret", "app a, key b"]
        ),
        // Across apps.
        (
            "apps: [{id: a, keys: [{id: b, secret: \(same), scopes: []}]}, {id: c, sdk: {appSecret: \(same)}}]",
            ["app c, sdk, appSecret", "app a, key b"]
        ),
        (
            "apps: [{id: a, verification: {keys: [{id: k1, secret: \(same)}]}}, {id: c, verification: {keys: [{id: k9, secret: \(same)}]}}]",
            ["app c, verification, key k9", "app a, verification, key k1"]
        ),
        (
            "apps: [{id: a, verification: {identityTokenSecret: \(same)}}, {id: c, verification: {identityTokenSecret: \(same)}}]",
            ["app c, verification, identityTokenSecret", "app a, verification, identityTokenSecret"]
        ),
    ]

    /// V21, V58.
    @Test(arguments: shared) func noSecretHasTwoPurposes(_ text: String, _ places: [String]) throws {
        let problem = try #require(throws: AppsFile.Problem.self) { try parse(text) }
        for place in places { #expect(problem.description.contains(place), "\(problem)") }
        #expect(!problem.description.contains("hunter2") && !problem.description.contains("\n"))
    }

    /// The same purpose in two places is the operator's business where no token could count twice.
    @Test func theSamePurpose() throws {
        let text = """
            apps:
              - { id: a, sdk: { appSecret: \(Self.same) }, keys: [{ id: b, secret: another-hunter2, scopes: [] }] }
              - { id: c, sdk: { appSecret: \(Self.same) }, keys: [{ id: d, secret: another-hunter2, scopes: [] }] }
            """
        #expect(throws: Never.self) { try parse(text) }
    }

    private static let long = String(repeating: "s", count: 32)
    private static let weak = """
        apps:
          - id: a
            keys: [{ id: b, secret: 31-bytes-hunter2-hunter2-hunter, scopes: [] }, { id: c, secret: \(long)c, scopes: [] }]
            sdk: { appSecret: short-hunter2 }
            verification:
              keys: [{ id: k1, secret: short-hunter2-key }, { id: k2, secret: \(long)2 }]
              identityTokenSecret: short-hunter2-jwt
        """

    @Test func shortSecretsAreWarnedAbout() throws {
        let warnings = try parse(Self.weak).warnings
        #expect(warnings.count == 3, "\(warnings)")
        for (warning, place) in zip(
            warnings, ["app a, key b", "app a, verification, key k1", "app a, verification, identityTokenSecret"])
        {
            #expect(warning.hasPrefix("\(place): ") && warning.contains("32"), "\(warning)")
            #expect(!warning.contains("hunter2") && !warning.contains("\n"))
        }
    }

    @Test func shortSecretsAreRefused() throws {
        let problem = try #require(throws: AppsFile.Problem.self) { try parse(Self.weak, .refuse) }
        #expect(problem.description.contains("app a, key b"))
        #expect(problem.description.contains("IDENTITYBUS_WEAK_SECRETS"))
        #expect(!problem.description.contains("hunter2"))
        let good = "apps: [{id: a, keys: [{id: b, secret: \(Self.long), scopes: []}], sdk: {appSecret: short-secret}}]"
        #expect(try parse(good, .refuse).warnings.isEmpty)
    }

    // MARK: The demo apps

    private static func demo() throws -> String {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        return try String(
            contentsOf: folder.deletingLastPathComponent().appending(path: "config/apps.yaml"), encoding: .utf8)
    }

    /// The demo apps may have what is published for them; who reads the log is told so in one line.
    @Test func theDemoAppsAreTaken() throws {
        let apps = try parse(try Self.demo(), .refuse)
        #expect(apps.warnings.count == 1)
        for id in ["demo", "support", "linked", "isolated", "best", "other"] { #expect(apps.warnings[0].contains(id)) }
    }

    /// Under another app's name the secrets of the demo file are refused, every one of them.
    @Test func theirSecretsAreNobodyElses() throws {
        let demo = try Self.demo()
        var text = demo
        for id in ["demo", "support", "linked", "isolated", "best", "other"] {
            text.replace("  - id: \(id)\n", with: "  - id: shop-\(id)\n")
        }
        let problem = try #require(throws: AppsFile.Problem.self) { try parse(text, .refuse) }
        #expect(problem.description.contains("app shop-demo, key demo-backend"), "\(problem)")
        let secrets = demo.split(separator: "\n").filter { line in
            ["secret:", "appSecret:", "identityTokenSecret:"].contains(
                String(line.trimmingPrefix { $0 == " " }.prefix { $0 != " " }))
        }
        let warnings = try parse(text).warnings
        #expect(secrets.count > 10)
        #expect(warnings.count == secrets.count, "\(warnings)")
    }
}
