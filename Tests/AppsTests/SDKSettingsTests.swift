// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Testing
import WireJSON

@testable import Apps

/// The section `sdk` of the apps file.
@Suite struct SDKSettingsTests {
    private func parse(_ sdk: String, files: [String: String] = [:]) throws -> SDKSettings {
        struct NoFile: Error {}
        let apps = try AppsFile.parse("apps: [{id: demo, sdk: \(sdk)}]") { path in
            guard let content = files[path] else { throw NoFile() }
            return content
        }
        return try #require(apps["demo"]).sdk
    }

    @Test func defaults() throws {
        let settings = try parse("{}")
        #expect(settings.appSecret == nil)
        #expect(settings.tokenSecret == nil)
        #expect(settings.authCodeLifetime == 600_000)
        #expect(settings.maxOutstandingCodes == 10)
        #expect(settings.linkerTimeout == 600_000)
        #expect(settings.tokenLifetime == 7 * 86_400_000)
        #expect(settings.configuration == [:])
        #expect(!settings.keysOpenInstalls)
        #expect(try parse("{keysOpenInstalls: true}").keysOpenInstalls)
    }

    @Test func everything() throws {
        let settings = try parse(
            """
            {appSecret: demo-app-secret, tokenSecretFile: token, authCodeLifetimeSeconds: 60, maxOutstandingCodes: 3,
             linkerTimeoutSeconds: 30, tokenLifetimeSeconds: 3600,
             configuration: {on: true, off: false, n: 10, d: 1.5, minus: -1, text: "10", word: yes please, quoted: 'true',
             none: null, empty: , list: [1, [a], {b: c}], version: 1.2.3}}
            """, files: ["token": String(repeating: "t", count: 32)])
        #expect(settings.appSecret?.matches("demo-app-secret") == true)
        #expect(settings.tokenSecret?.key.bitCount == 256)
        #expect(settings.authCodeLifetime == 60_000)
        #expect(settings.maxOutstandingCodes == 3)
        #expect(settings.linkerTimeout == 30_000)
        #expect(settings.tokenLifetime == 3_600_000)
        let expected: JSONValue = [
            "on": true, "off": false, "n": 10, "d": 1.5, "minus": -1, "text": "10", "word": "yes please",
            "quoted": "true", "none": nil, "empty": nil, "list": [1, ["a"], ["b": "c"]], "version": "1.2.3",
        ]
        #expect(settings.configuration == expected)
    }

    @Test(arguments: [
        ("{appsecret: hunter2hunter2}", "appsecret"), ("{appSecret: hunter2}", "app demo, sdk, appSecret"),
        ("{appSecret: hunter2hunter2, appSecretFile: x}", "appSecret"), ("{appSecretFile: missing}", "appSecretFile"),
        ("{tokenSecret: hunter2hunter2}", "32 bytes"), ("{authCodeLifetimeSeconds: 0}", "authCodeLifetimeSeconds"),
        ("{authCodeLifetimeSeconds: 86401}", "authCodeLifetimeSeconds"),
        ("{linkerTimeoutSeconds: -1}", "linkerTimeout"),
        ("{linkerTimeoutSeconds: soon}", "linkerTimeoutSeconds"), ("{tokenLifetimeSeconds: 0}", "tokenLifetimeSeconds"),
        ("{maxOutstandingCodes: 0}", "maxOutstandingCodes"), ("{maxOutstandingCodes: 1001}", "maxOutstandingCodes"),
        ("{configuration: [1]}", "configuration"), ("{configuration: text}", "configuration"), ("off", "sdk"),
    ]) func everyMistakeIsOneClearLine(_ text: String, _ name: String) throws {
        let problem = try #require(throws: AppsFile.Problem.self) { try parse(text) }
        #expect(problem.description.contains(name), "\(problem)")
        #expect(!problem.description.contains("\n") && !problem.description.contains("hunter2"), "\(problem)")
    }

    @Test(arguments: ["", "demo-app-secre", "demo-app-secret ", "Demo-app-secret", "demo-app-secret\0"])
    func anotherAppSecretDoesNotMatch(_ text: String) throws {
        let secret = AppSecret("demo-app-secret")
        #expect(!secret.matches(text))
        #expect(secret.matches("demo-app-secret"))
        #expect("\(secret) \(TokenSecret("hunter2"))" == "an app secret a token secret")
    }
}
