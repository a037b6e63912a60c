// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Testing

@testable import Apps

@Suite struct AppsFileTests {
    private struct NoFile: Error {}

    private func parse(_ text: String, files: [String: String] = [:]) throws -> AppDirectory {
        try AppsFile.parse(text) { path in
            guard let content = files[path] else { throw NoFile() }
            return content
        }
    }

    @Test func anAppMayHaveItsOwnReplyTopic() throws {
        let apps = try parse(
            """
            apps:
              - { id: demo, replies: identity.replies.demo }
              - { id: other }
            """)
        #expect(apps["demo"]?.replies == "identity.replies.demo" && apps["other"]?.replies == nil)
        #expect(apps.replyTopics == ["identity.replies.demo": "demo"])
        for name in [
            "identity.replies.v1", "identity.replies.gateway.v1", "identity.replies.tomorrow.v1", "identity.replies.",
            "demo", "identity.link.commands.v1", "",
        ] {
            #expect(throws: AppsFile.Problem.self, "\(name)") {
                try parse("apps: [{ id: demo, replies: \"\(name)\" }]")
            }
        }
        let problem = #expect(throws: AppsFile.Problem.self) {
            try parse("apps: [{ id: a, replies: identity.replies.x }, { id: b, replies: identity.replies.x }]")
        }
        #expect(problem?.description.contains("apps a and b") == true)
    }

    @Test func anAppMayHaveCommandsTopicsOfItsOwn() throws {
        let apps = try parse(
            "apps: [{ id: b, ownCommandsTopics: true }, { id: a_1-x, ownCommandsTopics: true }, { id: c }]")
        #expect(apps.ownersOfCommandsTopics == ["a_1-x", "b"])
        #expect(apps["b"]?.ownCommandsTopics == true && apps["c"]?.ownCommandsTopics == false)
        #expect(try parse("apps: [{ id: my.shop, ownCommandsTopics: false }]").ownersOfCommandsTopics == [])
    }

    static let badOwners = [
        ("{ id: my.shop, ownCommandsTopics: true }", "app my.shop, ownCommandsTopics: the id stands in the names"),
        ("{ id: Käse, ownCommandsTopics: true }", "app Käse, ownCommandsTopics: the id stands in the names"),
        ("{ id: a, ownCommandsTopics: perhaps }", "apps[0].ownCommandsTopics: has a value of another kind"),
        (
            (0...16).map { "{ id: a\($0), ownCommandsTopics: true }" }.joined(separator: ", "),
            "has 17 apps with ownCommandsTopics; there may be 16"
        ),
    ]

    @Test(arguments: badOwners) func whoCannotHaveCommandsTopics(_ apps: String, _ expected: String) throws {
        let problem = #expect(throws: AppsFile.Problem.self) { try parse("apps: [\(apps)]") }
        #expect(problem?.description.hasPrefix(expected) == true, "\(problem?.description ?? "")")
    }

    /// Less than a day would let somebody else have an external id before every service has heard that it was changed.
    @Test(arguments: [1, 3650]) func anExternalIDIsHeldForADayAtLeast(_ days: Int64) throws {
        let apps = try parse("apps: [{id: demo, linking: {holdDays: \(days)}}]")
        #expect(apps["demo"]?.linking.hold == days * 86_400_000)
    }

    @Test func readsAGoodFile() throws {
        let apps = try parse(
            """
            apps:
              - id: demo
                name: The demo
                keys:
                  - id: demo-backend
                    secret: demo-secret-demo-backend
                    scopes: [user.link, USER_DELETE]
                  - { id: demo-expired, secret: "0123456789", scopes: [user.link], expires: 2020-01-01 }
                  - { id: demo-later, secret: 0123456789, scopes: [sdk], expires: 2030-01-31T12:00:00+01:00, revoked: true }
                  - { id: demo-file, secretFile: secrets/demo, scopes: [] }
                linking: { enabled: false, blockedExternalIds: [nobody], clockToleranceSeconds: 30, holdDays: 7 }
                sdk: { configuration: { anything: [1, 2] } }
                sync: {}
                verification: { mode: off }
              - id: other
            """, files: ["secrets/demo": "from-the-file\r\n\n"])
        #expect(apps.ids == ["demo", "other"])
        let demo = try #require(apps["demo"])
        #expect(demo.keys.count == 4)
        #expect(demo.keys["demo-backend"]?.scopes == [.userLink, .userDelete])
        #expect(demo.keys["demo-backend"]?.secret == SymmetricKey(data: Array("demo-secret-demo-backend".utf8)))
        #expect(demo.keys["demo-expired"]?.expires == Timestamp(rfc3339: "2020-01-01T00:00:00Z"))
        #expect(demo.keys["demo-later"]?.expires == Timestamp(rfc3339: "2030-01-31T11:00:00Z"))
        #expect(demo.keys["demo-later"]?.isRevoked == true)
        #expect(demo.keys["demo-backend"]?.isRevoked == false)
        #expect(demo.keys["demo-file"]?.secret.bitCount == "from-the-file".utf8.count * 8)
        #expect(!demo.linking.isEnabled)
        #expect(demo.linking.nobody == NobodyValues(["nobody"]))
        #expect(demo.sync.nobody == demo.linking.nobody && demo.verification.nobody == demo.linking.nobody)
        let other = try #require(apps["other"])
        #expect(other.linking.isEnabled)
        #expect(other.linking.nobody == .standard)
        #expect(apps.ownsKey("demo-file"))
        #expect(!apps.ownsKey("nobody"))
        #expect(apps["nobody"] == nil)
    }

    struct Mistake: Sendable, CustomTestStringConvertible {
        var text: String
        /// What the one line must name.
        var names: [String]
        var testDescription: String { names.joined(separator: ", ") }
        init(_ names: String..., text: String) {
            self.names = names
            self.text = text
        }
        /// A mistake in the only key of app `demo`.
        static func key(_ key: String, _ names: String...) -> Mistake {
            var mistake = Mistake(text: "apps: [{id: demo, keys: [\(key)]}]")
            mistake.names = names
            return mistake
        }
    }

    static let mistakes: [Mistake] = [
        Mistake("the file", text: ""), Mistake("apps", text: "{}"), Mistake("no apps", text: "apps: []"),
        Mistake("line 3", text: "apps:\n  - id: [hunter2hunter2\n"), Mistake("apps", text: "apps: demo"),
        Mistake("id", text: "apps: [{name: x}]"), Mistake("id", text: "apps: [{id: ''}]"),
        Mistake("slash", text: "apps: [{id: a/b}]"), Mistake("demo", "twice", text: "apps: [{id: demo}, {id: demo}]"),
        Mistake("apps[0]", "keyz", text: "apps: [{id: demo, keyz: []}]"),
        Mistake("apps[0].linking", "enable", text: "apps: [{id: demo, linking: {enable: true}}]"),
        Mistake("apps[0].linking.enabled", text: "apps: [{id: demo, linking: {enabled: maybe}}]"),
        Mistake("holdDays", "3650", text: "apps: [{id: demo, linking: {holdDays: 0}}]"),
        Mistake("holdDays", "3650", text: "apps: [{id: demo, linking: {holdDays: 3651}}]"),
        Mistake("appz", text: "apps: [{id: demo}]\nappz: []"),
        Mistake(
            "key id k", "demo", "other",
            text: "apps: [{id: demo, keys: [{id: k, secret: hunter2hunter2, scopes: []}]}, "
                + "{id: other, keys: [{id: k, secret: hunter2hunter2, scopes: []}]}]"),
        .key("{secret: hunter2hunter2, scopes: []}", "apps[0].keys[0]", "id"),
        .key("{id: k, secret: hunter2hunter2}", "apps[0].keys[0]", "scopes"),
        .key("{id: k, scopes: []}", "app demo, key k", "secretFile"),
        .key("{id: k, secret: hunter2hunter2, secretFile: x, scopes: []}", "app demo, key k", "secretFile"),
        .key("{id: k, secret: hunter2, scopes: []}", "app demo, key k", "8 bytes"),
        .key("{id: k, secretFile: missing, scopes: []}", "app demo, key k", "secretFile"),
        .key("{id: k, secret: hunter2hunter2, scopes: [user.read]}", "app demo, key k", "user.read", "user.link"),
        .key("{id: k, secret: hunter2hunter2, scopes: [internal]}", "app demo, key k", "internal"),
        .key("{id: k, secret: hunter2hunter2, scopes: user.link}", "apps[0].keys[0].scopes"),
        .key("{id: k, secret: hunter2hunter2, scopes: [], expires: soon}", "app demo, key k", "expires"),
        .key("{id: k, secret: hunter2hunter2, scopes: [], expires: 2023-02-29}", "app demo, key k", "expires"),
        .key("{id: k, secret: hunter2hunter2, scopes: [], revoked: perhaps}", "apps[0].keys[0].revoked"),
        .key("{id: k, secret: hunter2hunter2, scopes: [], colour: red}", "apps[0].keys[0]", "colour"),
        .key("{id: internal, secret: hunter2hunter2, scopes: []}", "app demo, key internal"),
        .key("{id: events, secret: hunter2hunter2, scopes: []}", "app demo, key events", "deployment's own"),
        .key("{id: gateway, secret: hunter2hunter2, scopes: []}", "app demo, key gateway", "deployment's own"),
        .key("{id: 'a;b', secret: hunter2hunter2, scopes: []}", "app demo, key a;b", "semicolon"),
        .key("{id: a.b, secret: hunter2hunter2, scopes: []}", "app demo, key a.b", "dot"),
        .key("{id: '', secret: hunter2hunter2, scopes: []}", "app demo", "empty"),
    ]

    @Test(arguments: mistakes) func everyMistakeIsOneClearLine(_ mistake: Mistake) throws {
        let problem = try #require(throws: AppsFile.Problem.self) { try parse(mistake.text) }
        for name in mistake.names { #expect(problem.description.contains(name), "\(problem)") }
        #expect(!problem.description.contains("\n"), "\(problem)")
        #expect(!problem.description.contains("hunter2"), "\(problem)")
        #expect(throws: AppsFile.Problem.self) {
            try AppsFile.parse(mistake.text, reading: .gateway) { _ in throw NoFile() }
        }
    }

    /// What the gateway does not keep, it reads all the same.
    @Test(arguments: [
        "verification: {mode: report, signedFields: userId}",
        "verification: {keys: [{id: v, secret: short}]}",
        "verification: {keys: [{id: v, secret: demo-verification-1-of-all}]}",
        "verification: {keys: [{id: v, secret: 0123456789abcdef0123456789abcdef}], identityTokenSecret: 0123456789abcdef0123456789abcdef}",
        "verification: {mode: report, signedFields: userId, keys: [{id: v, secret: 0123456789abcdef0123456789abcdef}]}, "
            + "sync: {strategy: bestMatch}",
    ]) func theGatewayRefusesWhatServicesRefuse(_ members: String) {
        let text = "apps: [{id: shop, \(members)}]"
        for extent in [AppsFile.Extent.everything, .gateway] {
            #expect(throws: AppsFile.Problem.self) {
                try AppsFile.parse(text, reading: extent, weakSecrets: .refuse) { _ in throw NoFile() }
            }
        }
    }

    /// What is wrong, where, and what to do; of the text no more than one character.
    @Test(arguments: [
        ("apps:\n\t- id: shop", "line 2, column 1: a tab", "spaces"),
        ("apps:\n  - id: @hunter2", "line 2, column 9: no value may begin with @", "quotes"),
        ("apps:\n  - id: hunter2: b", "line 2, column 16: a colon", "quotes"),
        ("apps:\n  - id: a\n   name: hunter2", "line 3", "column"),
        ("apps: [{id: hunter2", "line 1", "has no end"),
        ("apps: [{id: \"hunter2", "line 1", "has no end"),
        ("apps: [a, hunter2\nb: c", "line 2", "; "),
        ("apps: *hunter2", "line 1, column 7: an alias of nothing", "&"),
        ("apps: []\n---\nhunter2", "line 2, column 1: a second document", "---"),
        ("apps: \"\\q hunter2\"", "line 1", "single quotes"),
        ("apps:\n  - id: \u{1}hunter2", "line 2, column 9: the character U+0001", "Write it without"),
        ("apps: \u{0}", "line 1, column 7: the character U+0000", "Write it without"),
        ("{hunter2: [}", "line 1, column 12", ";"),
        ("%hunter2", "line 1", ";"),
        (String(repeating: "[", count: 5000), "nested too deeply", "brackets"),
        ("hunter2", "is no mapping at its top", "begin it with apps:"),
        ("- id: hunter2", "is no mapping at its top", "begin it with apps:"),
        ("apps: {}\napps: hunter2", "has apps twice in one mapping, first in line 1, column 1", "keep one"),
        ("apps: hunter2", "apps: has a value of another kind", "a list is wanted"),
        ("apps: [hunter2]", "apps[0]: has a value of another kind", "a mapping with members is wanted"),
        ("apps: [{id: a, keys: {}}]", "apps[0].keys: has a value of another kind", "a list is wanted"),
        ("apps: [{id: [hunter2]}]", "apps[0].id: has a value of another kind", "one value is wanted"),
        ("apps: [{id: a, ownCommandsTopics: hunter2}]", "has a value of another kind", "true or false is wanted"),
        ("apps: [{id: a, linking: {holdDays: hunter2}}]", "has a value of another kind", "a whole number is wanted"),
    ]) func whatIsNoYAMLIsToldInWordsForPeople(_ text: String, _ what: String, _ advice: String) throws {
        let problem = try #require(throws: AppsFile.Problem.self) { try parse(text) }.description
        #expect(problem.contains(what) && problem.contains(advice), "\(problem)")
        #expect(!problem.contains("hunter2") && !problem.contains("token") && !problem.contains("\n"), "\(problem)")
    }

    /// Each alias holds ten of the one before.
    @Test func aliasesThatMultiplyAreRefused() throws {
        let lines = (1...9).map {
            "a\($0): &a\($0) [\(Array(repeating: "*a\($0 - 1)", count: 10).joined(separator: ", "))]"
        }
        let problem = try #require(throws: AppsFile.Problem.self) {
            try parse("a0: &a0 x\n" + lines.joined(separator: "\n") + "\napps: *a9")
        }
        #expect(problem.description.contains("aliases that hold aliases multiply"), "\(problem)")
    }

    /// A path that names nothing may be the secret.
    @Test func whatStandsInThePlaceOfAPathIsNotShown() throws {
        for path in [
            "hunter2hunter2", "/hunter2/hunter2", "postgresql://me:hunter2@db/x",
            String(repeating: "hunter2", count: 900),
        ] {
            let problem = try #require(throws: TextFile.Problem.self) { try TextFile.secret(path) }.description
            #expect(!problem.contains("hunter2"), "\(problem)")
            // No number either: that of the path's characters was taken for the secret's.
            #expect(!problem.contains("characters"), "\(problem)")
            #expect(
                problem.contains("is not there") && problem.contains("Give the path of a file"),
                "\(problem)")
        }
        let near = try #require(throws: TextFile.Problem.self) { try TextFile.secret("/tmp/hunter2/key") }.description
        #expect(near.hasPrefix("names a file that is not there, in /tmp: no such file or directory"), "\(near)")
        let folder = try #require(throws: TextFile.Problem.self) { try TextFile.secret("/tmp") }.description
        #expect(folder == "/tmp cannot be read: is a directory")
    }

    /// The gateway does not even open the secrets with which apps vouch for logins.
    @Test func theGatewayReadsOnlyWhatItNeeds() throws {
        let text = """
            apps:
              - id: demo
                keys: [{id: k, secret: hunter2hunter2, scopes: []}]
                gateway: {keyOnly: true}
                verification:
                  mode: enforce
                  signedFields: delimited
                  keys: [{id: v, secretFile: none}]
                  identityTokenSecretFile: none
            """
        struct Unreadable: Error {}
        #expect(throws: AppsFile.Problem.self) { try AppsFile.parse(text) { _ in throw Unreadable() } }
        let apps = try AppsFile.parse(text, reading: .gateway) { _ in throw Unreadable() }
        let app = try #require(apps["demo"])
        #expect(
            app.keys.count == 1 && app.gateway.keyOnly == [.identify, .login, .logout] && app.verification.keys.isEmpty)
    }

    @Test func secretsAreNotShown() throws {
        let apps = try parse("apps: [{id: demo, keys: [{id: k, secret: hunter2hunter2, scopes: []}]}]")
        let key = try #require(apps["demo"]?.keys["k"])
        #expect("\(key)" == "API key k")
        #expect(!"\(key)".contains("hunter2"))
    }

    // MARK: External ids that cannot be one person's

    @Test(arguments: [
        ("anna", true), ("a b", true), ("Null", false), ("NULL", false), ("(null)", false), ("None", false),
        ("00a", true), ("1", true), ("-2", true),
        ("--1", true), ("\u{1F44B}", true), ("nan", false), ("nil", false), ("<NULL>", false),
        ("", false), ("null", false), ("undefined", false), ("anonymous", false), ("guest", false), ("0", false),
        ("-1", false), ("[object Object]", false), ("NaN", false), ("-", false), ("0000", false), ("0-0-0", false),
        ("00000000-0000-0000-0000-000000000000", false), (" anna", false), ("anna ", false), ("anna\t", false),
        ("anna\n", false), ("\u{A0}anna", false), ("anna\u{3000}", false), ("\u{2028}anna", false), (" ", false),
    ]) func blockedExternalIDs(_ externalID: ExternalID, _ isGood: Bool) {
        let linking = AppSettings.Linking()
        if isGood {
            #expect(throws: Never.self) { try linking.check(externalID: externalID) }
        } else {
            let rejection = #expect(throws: Rejection.self) { try linking.check(externalID: externalID) }
            #expect(rejection?.reason == .invalidRequest)
        }
    }
}
