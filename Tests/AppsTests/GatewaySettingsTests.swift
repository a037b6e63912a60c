// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Testing

@Suite struct GatewaySettingsTests {
    private func read(_ section: String) throws -> GatewaySettings? {
        let apps = try AppsFile.parse("apps: [{id: a\(section)}]", readSecret: { _ in "" })
        return apps["a"]?.gateway
    }

    @Test func offUnlessTheAppSaysOtherwise() throws {
        #expect(try read("") == GatewaySettings())
        #expect(try read(", gateway: {}") == GatewaySettings())
        #expect(GatewaySettings().keyOnly.isEmpty && GatewaySettings().origins == nil)
        #expect(
            try read(", gateway: {keyOnly: true, maxAgeSeconds: 86400}")
                == GatewaySettings(keyOnly: [.identify, .login, .logout], maxAgeSeconds: 86400))
    }

    @Test func aKeyAloneMayDoWhatIsNamed() throws {
        #expect(try read(", gateway: {keyOnly: false}")?.keyOnly == [])
        #expect(try read(", gateway: {keyOnly: []}")?.keyOnly == [])
        #expect(try read(", gateway: {keyOnly: [search, login]}")?.keyOnly == [.search, .login])
        #expect(
            try read(", gateway: {keyOnly: [identify, login, logout, modify, search, alias]}")?.keyOnly
                == Set(GatewaySettings.Operation.allCases))
    }

    @Test func originsAreThoseOfBrowsers() throws {
        let settings = try #require(
            try read(", gateway: {origins: ['https://Shop.example', 'http://localhost:8080']}"))
        for origin in ["https://shop.example", "HTTPS://SHOP.EXAMPLE", "http://localhost:8080"] {
            #expect(settings.admits(origin: origin))
        }
        for origin in [
            "https://shop.example.evil", "http://shop.example", "https://shop.example:8443", "null", "",
            "https://evil.shop.example", "http://localhost",
        ] {
            #expect(!settings.admits(origin: origin), "\(origin)")
        }
        #expect(settings.admits(origin: nil), "no browser")
        #expect(GatewaySettings().admits(origin: "https://anywhere.example"))
    }

    @Test func limits() throws {
        let limits = try read(
            ", gateway: {limits: {keyPerSecond: 7, keyBurst: 8, addressPerSecond: 9, addressBurst: 10}}")?.limits
        #expect(
            limits
                == GatewaySettings.Limits(
                    key: .init(perSecond: 7, burst: 8), address: .init(perSecond: 9, burst: 10)))
        #expect(GatewaySettings.Limits().key.perSecond >= 2000, "what one backend may need")
    }

    @Test(arguments: [
        ("{keyonly: true}", "keyonly"), ("{maxAgeSeconds: -1}", "maxAgeSeconds"),
        ("{maxAgeSeconds: 604801}", "maxAgeSeconds"), ("{maxAgeSeconds: soon}", "maxAgeSeconds"),
        ("{keyOnly: 1}", "keyOnly"), ("{keyOnly: [identify, everything]}", "everything"), ("{keyOnly: all}", "keyOnly"),
        ("{origins: []}", "origins"), ("{origins: [shop.example]}", "shop.example"),
        ("{origins: ['https://shop.example/']}", "https://shop.example/"), ("{origins: ['https://*.example']}", "*"),
        ("{origins: ['*']}", "origins"), ("{origins: 'https://shop.example'}", "origins"),
        ("{limits: {keyPerSecond: 0}}", "keyPerSecond"), ("{limits: {addressBurst: 1000001}}", "addressBurst"),
        ("{limits: {perSecond: 1}}", "perSecond"),
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
