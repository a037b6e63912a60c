// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Runtime
import Testing

@Suite struct GatewaySettingsTests {
    private func read(_ section: String) throws -> GatewaySettings? {
        let apps = try AppsFile.parse("apps: [{id: a\(section)}]", readSecret: { _ in "" })
        return apps["a"]?.gateway
    }

    @Test func offUnlessTheAppSaysOtherwise() throws {
        #expect(try read("") == GatewaySettings())
        #expect(try read(", gateway: {}") == GatewaySettings())
        #expect(GatewaySettings().acceptsKeyOnly == false)
        #expect(
            try read(", gateway: {keyOnly: true, maxAgeSeconds: 86400}")
                == GatewaySettings(acceptsKeyOnly: true, maxAgeSeconds: 86400))
    }

    @Test(arguments: [
        ("{keyonly: true}", "keyonly"), ("{maxAgeSeconds: -1}", "maxAgeSeconds"),
        ("{maxAgeSeconds: 604801}", "maxAgeSeconds"), ("{maxAgeSeconds: soon}", "maxAgeSeconds"),
        ("{keyOnly: 1}", "keyOnly"),
    ])
    func mistakesAreNamed(_ row: (section: String, named: String)) {
        let problem = #expect(throws: AppsFile.Problem.self) { try read(", gateway: \(row.section)") }
        #expect(problem?.description.contains(row.named) == true, "\(problem?.description ?? "")")
    }

    @Test func aKeyLeadsToItsApp() throws {
        let apps = try AppsFile.parse(
            "apps: [{id: a, keys: [{id: k, secret: secret-of-k, scopes: [sdk]}]}, {id: b}]", readSecret: { _ in "" })
        #expect(apps.key("k")?.app.id == "a" && apps.key("k")?.key.id == "k")
        #expect(apps.key("a") == nil && apps.key("") == nil)
    }
}
