// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Gateway

@Suite struct RouteTests {
    @Test(arguments: [
        ("/v2/users/a/link", Route.link(installID: "a")), ("/v2/users/a%2Fb%20c/link", .link(installID: "a/b c")),
        ("/users/auth-code", .authCode),
        ("/users/5a18fc4b0962209e0000000d", .eraseUser(userID: "5a18fc4b0962209e0000000d")),
        ("/sdk/v1/users", .createUser),
        ("/sdk/v1/installs/a", .readInstall(installID: "a")), ("/sdk/v1/installs/a/link", .linkInstall(installID: "a")),
        ("/sdk/v1/installs/a/confirm-link", .confirmLink(installID: "a")),
        ("/sdk/v1/installs/a/reset", .resetInstall(installID: "a")), ("/v1/identify", .sync(.identify)),
        ("/identity/v1/login", .sync(.login)), ("/v1/-7/modify", .modify(mpid: "-7")),
        ("/webevents/v1/identity/k/Alias", .alias(apiKey: "k")), ("/v1/identity/k/alias", .alias(apiKey: "k")),
        ("/v3/JS/k/events", .events(apiKey: "k")),
        ("/webevents/v1/JS/k/Forwarding", .events(apiKey: "k")),
        ("/v1/verification/login-identity", .verification(.loginIdentity)),
        ("/v1/verification/sessions/a%2Fb", .verificationSession(deviceID: "a/b")), ("/openapi.json", .openAPI),
    ])
    func paths(_ row: (path: String, route: Route)) {
        #expect(Route.at(row.path) == [row.route])
    }

    @Test(arguments: [
        "", "/", "//", "/v1", "/v1/", "/v1/identify/", "//v1/identify", "/V1/identify", "/v1/Identify", "/v1/other",
        "/users", "/users/", "/users/a%2Fb", "/users/a/b", "/v2/users//link", "/v2/users/a/unlink",
        "/v2/users/%zz/link", "/v2/users/%ff/link", "/v1/identity/k/ALIAS", "/identity/identity/v1/login", "/identity",
        "/webevents/", "/sdk/v1/installs", "/sdk/v2/users", "v1/identify", "/openapi.json/x",
    ])
    func noEndpoint(_ path: String) {
        #expect(Route.at(path).isEmpty)
    }

    /// An ingress that publishes the vendor's paths for a domain publishes the vendor's calls, and no others.
    @Test(arguments: ["identity", "webevents", "nativeevents"])
    func aPrefixOpensTheVendorsCallsOnly(_ prefix: String) {
        for path in ["/v1/identify", "/v1/-7/modify", "/v1/identity/k/alias", "/v3/JS/k/events"] {
            #expect(Route.at("/\(prefix)\(path)") == Route.at(path) && !Route.at(path).isEmpty)
        }
        for path in [
            "/v2/users/a/link", "/users/auth-code", "/users/a", "/sdk/v1/users", "/sdk/v1/installs/a",
            "/v1/verification/login", "/openapi.json",
        ] {
            #expect(Route.at("/\(prefix)\(path)").isEmpty && !Route.at(path).isEmpty)
        }
    }

    /// Rules of a proxy about paths look at the text that was sent: each endpoint has one.
    @Test(arguments: [
        "/%75sers/auth-code", "/users/auth%2Dcode", "/users%2Fauth-code", "/%76%31/login", "/v1/%6cogin",
        "/v2/%75sers/a/link", "/v2/users/a/lin%6b", "/sdk/v1/%69nstalls/a", "/v1/verification/logi%6e",
        "/%69dentity/v1/login", "/v1/identity/k/%61lias", "/v3/JS/k/%65vents", "/openapi%2Ejson", "/v1/7/modif%79",
    ])
    func whatIsNoIDIsNotEncoded(_ path: String) {
        #expect(Route.at(path).isEmpty)
    }

    /// They carry secrets that have no place in a browser.
    @Test(arguments: [
        Route.link(installID: "a"), .authCode, .eraseUser(userID: "a"), .verification(.check),
        .verificationSession(deviceID: "a"),
    ])
    func backendsCallsAreNotForBrowsers(_ route: Route) {
        #expect(!route.isForBrowsers)
    }

    @Test func thePrefixOfADomainIsNotSigned() {
        #expect(Route.signedPath("/identity/v1/login") == "/v1/login")
        #expect(Route.signedPath("/v1/identity/k/alias") == "/v1/identity/k/alias")
        #expect(Route.signedPath("/identityx/v1/login") == "/identityx/v1/login")
        #expect(Route.signedPath("") == "")
    }
}
