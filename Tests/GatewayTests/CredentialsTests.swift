// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Foundation
import HTTPTypes
import Runtime
import Testing

@testable import Gateway

func testApp(
    _ id: String, keyOnly: Set<GatewaySettings.Operation> = [], origins: Set<String>? = nil,
    limits: GatewaySettings.Limits = .init(), _ keys: [APIKey]
) -> AppSettings {
    AppSettings(
        id: AppID(id), keys: Dictionary(uniqueKeysWithValues: keys.map { ($0.id, $0) }),
        gateway: GatewaySettings(keyOnly: keyOnly, origins: origins, limits: limits))
}

func testKey(
    _ id: String, _ secret: String = "example-api-secret", scopes: Set<Scope> = [.identitySync],
    expires: Timestamp? = nil, isRevoked: Bool = false
) -> APIKey {
    APIKey(
        id: KeyID(id), secret: SymmetricKey(data: Array(secret.utf8)), scopes: scopes, expires: expires,
        isRevoked: isRevoked)
}

func testRequest(
    _ path: String, query: String? = nil, _ headers: [String: String] = [:], body: String = ""
) -> APIRequest {
    var fields = HTTPFields()
    for (name, value) in headers {
        if let name = HTTPField.Name(name) { fields[name] = value }
    }
    return APIRequest(method: "POST", path: path, query: query, headers: fields, body: Array(body.utf8))
}

/// What a request line such as `POST /v1/login` asks for.
func testCall(_ line: String, _ request: APIRequest? = nil, _ door: Door = .api) -> Call? {
    let words = line.split(separator: " ").map(String.init)
    guard let route = Route.at(words[1], door).first(where: { $0.endpoint.method == words[0] }),
        case .command(let command) = route.endpoint.work
    else { return nil }
    return Call(request: request ?? testRequest(words[1]), route: route, command: command)
}

@Suite struct CredentialsTests {
    private let now = Timestamp(milliseconds: 1_800_000_000_000)
    private var credentials: Credentials {
        Credentials(
            apps: AppDirectory([
                testApp(
                    "open", keyOnly: [.identify, .login, .alias],
                    [testKey("open-key"), testKey("vouching-key", scopes: [.identitySync, .identityVouch])]),
                testApp(
                    "closed",
                    [
                        testKey("closed-key"), testKey("revoked", isRevoked: true),
                        testKey("old", expires: Timestamp(milliseconds: 1_700_000_000_000)),
                        testKey("now", expires: Timestamp(milliseconds: 1_800_000_000_000)),
                        testKey("soon", expires: Timestamp(milliseconds: 1_800_000_000_001)),
                    ]),
            ]), secrets: secrets, now: now)
    }
    private let secrets = DerivedSecrets(
        DeploymentKeys(internalKeys: [SymmetricKey(data: Array("an-internal-key-of-a-test".utf8))]))

    /// The whole check of an identity call, with its body.
    private func caller(
        _ request: APIRequest, _ operation: GatewaySettings.Operation = .login, pathKey: String? = nil
    ) throws(APIFailure) -> Caller {
        try credentials.confirm(try credentials.identity(request, operation, pathKey: pathKey), request)
    }

    private func status<Checked>(_ work: () throws(APIFailure) -> Checked) -> Int {
        do throws(APIFailure) {
            _ = try work()
            return 200
        } catch {
            return error.status
        }
    }

    /// The second known answer of docs/vendors.md.
    private let signed = [
        "x-mp-key": "closed-key", "Date": "Thu, 06 Nov 2025 19:37:01 GMT",
        "x-mp-signature": "5a448e0c6c72584ad3292db0fb20a2e48e62cade14a1fb9bf82adad3b9bd5be4",
    ]
    private let path = "/v1/-7000000000000000002/modify"
    private let body = #"{"identity_changes":[]}"#

    /// The example of the vendor's page.
    @Test func theVendorsExampleVerifies() throws {
        let body =
            #"{"client_sdk":{"platform":"android","sdk_vendor":"mparticle","sdk_version":"5.0.0"},"#
            + #""environment":"development","request_timestamp_ms":1499875715564,"#
            + #""request_id":"ad58a7c1-cf35-4be5-8c42-a09989f85cc1","#
            + #""known_identities":{"android_uuid":"f924f1e5707b34b7"}}"#
        let headers = [
            "x-mp-key": "closed-key", "Date": "20170712T224127Z",
            "x-mp-signature": "b795bc485a38e1aff3c4897be8120a7c87d27b359005e59b815db817268c9655",
        ]
        #expect(try caller(testRequest("/v1/identify", headers, body: body)).authID == "closed-key")
    }

    @Test func theKnownAnswerVerifies() throws {
        #expect(try caller(testRequest(path, signed, body: body)).authID == "closed-key")
        #expect(
            status { () throws(APIFailure) in
                try caller(testRequest("/identity\(path)", signed, body: body))
            } == 200, "the prefix is not signed")
        var upper = signed
        upper["x-mp-signature"] = signed["x-mp-signature"]?.uppercased()
        #expect(
            status { () throws(APIFailure) in
                try caller(testRequest(path, upper, body: body))
            } == 200)
    }

    @Test(arguments: [
        ("Date", "Thu, 06 Nov 2025 19:37:02 GMT"), ("x-mp-signature", ""), ("x-mp-signature", "5a44"),
        ("x-mp-signature", String(repeating: "z", count: 64)), ("x-mp-key", "open-key-2"), ("x-mp-key", "revoked"),
        ("x-mp-key", "old"),
    ])
    func oneHeaderOff(_ change: (name: String, value: String)) {
        var headers = signed
        headers[change.name] = change.value
        #expect(
            status { () throws(APIFailure) in
                try caller(testRequest(path, headers, body: body))
            } == 401)
    }

    @Test func anotherPathBodyOrMethod() {
        #expect(
            status { () throws(APIFailure) in
                try caller(testRequest("/v1/7/modify", signed, body: body))
            } == 401)
        #expect(
            status { () throws(APIFailure) in
                try caller(testRequest(path, signed, body: body + " "))
            } == 401)
        var request = testRequest(path, signed, body: body)
        request.method = "PUT"
        #expect(status { () throws(APIFailure) in try caller(request) } == 401)
    }

    @Test func keyOnlyIsASwitchOfTheApp() {
        #expect(
            status { () throws(APIFailure) in
                try caller(testRequest("/v1/login", ["x-mp-key": "open-key"]))
            } == 200)
        #expect(
            status { () throws(APIFailure) in
                try caller(testRequest("/v1/login", ["x-mp-key": "closed-key"]))
            } == 401)
        #expect(
            status { () throws(APIFailure) in
                try caller(testRequest("/v1/identity/open-key/alias"), .alias, pathKey: "open-key")
            } == 200)
        for (operation, expected) in [
            (GatewaySettings.Operation.identify, 200), (.alias, 200), (.logout, 401), (.modify, 401), (.search, 401),
        ] {
            #expect(
                status { () throws(APIFailure) in
                    try caller(testRequest("/v1/x", ["x-mp-key": "open-key"]), operation)
                } == expected, "\(operation)")
        }
        // Shown alone, it would name anybody.
        #expect(
            status { () throws(APIFailure) in
                try caller(testRequest("/v1/login", ["x-mp-key": "vouching-key"]))
            } == 401)
        // A wrong signature is not forgiven where none would have been needed.
        #expect(
            status { () throws(APIFailure) in
                try caller(
                    testRequest("/v1/login", ["x-mp-key": "open-key", "Date": "x", "x-mp-signature": "00"]))
            } == 401)
    }

    /// Who may use one key cannot speak for another one, or have its call counted as that one's.
    @Test func aRequestNamesOneKey() {
        let basic = "Basic " + Data("closed-key:example-api-secret".utf8).base64EncodedString()
        func status(_ headers: [String: String], pathKey: String? = nil) -> Int {
            self.status { () throws(APIFailure) in
                try caller(testRequest("/v1/identity/open-key/alias", headers), .alias, pathKey: pathKey)
            }
        }
        #expect(status(["Authorization": basic]) == 200)
        #expect(status(["Authorization": basic, "x-mp-key": "closed-key"]) == 200)
        #expect(status(["Authorization": basic, "x-mp-key": "open-key"]) == 401)
        #expect(status(["Authorization": basic], pathKey: "open-key") == 401)
        #expect(status(["x-mp-key": "open-key"], pathKey: "open-key") == 200)
        #expect(status(["x-mp-key": "closed-key"], pathKey: "open-key") == 401)
    }

    @Test(arguments: [
        ("Bearer closed-key.example-api-secret", 200), ("bearer closed-key.example-api-secret", 200),
        ("Bearer closed-key.example-api-secre", 401), ("Bearer closed-key.", 401), ("Bearer .", 401),
        ("Bearer closed-key", 401), ("Bearer", 401), ("", 401), ("Basic Y2xvc2VkLWtleTpleGFtcGxlLWFwaS1zZWNyZXQ=", 401),
        ("Bearer old.example-api-secret", 401), ("Bearer revoked.example-api-secret", 401),
        ("Bearer now.example-api-secret", 401), ("Bearer soon.example-api-secret", 200),
        ("Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln", 403),
    ])
    func bearer(_ row: (header: String, status: Int)) {
        #expect(
            status { () throws(APIFailure) in
                try credentials.bearer(testRequest("/users/auth-code", ["Authorization": row.header]))
            } == row.status)
    }

    @Test func onlyWhoHoldsAKeyLearnsThatItEnded() {
        func message(_ token: String) -> String {
            do throws(APIFailure) {
                _ = try credentials.bearer(testRequest("/", ["Authorization": "Bearer \(token)"]))
                return ""
            } catch {
                return error.message
            }
        }
        #expect(message("old.example-api-secret").contains("expired"))
        #expect(message("revoked.example-api-secret").contains("revoked"))
        #expect(message("old.wrong") == message("nobody.wrong"))
    }

    @Test func aUserTokenOpensDevicesCallsAndNoOthers() throws {
        let app = testApp("open", [])
        let key = UserToken.key(of: app, secrets: secrets)
        func request(_ lifetime: Int64, _ issued: Timestamp, signedWith key: SymmetricKey) -> APIRequest {
            let token = UserToken(
                app: "open", userID: "u", installID: "i", creation: "life-1", issued: issued, lifetime: lifetime)
            return testRequest("/", ["Authorization": "Bearer \(token.signed(with: key))"])
        }
        let good = request(60_000, now, signedWith: key)
        let caller = try credentials.confirm(credentials.device(good), good)
        #expect(caller.authType == "app_user" && caller.authID == "u" && caller.app.id == "open")
        #expect(caller.principal.scopes == [.sdk])
        #expect(status { () throws(APIFailure) in try credentials.bearer(good) } == 403)
        let expired = request(60_000, Timestamp(milliseconds: now.milliseconds - 60_000), signedWith: key)
        #expect(status { () throws(APIFailure) in try credentials.device(expired) } == 401)
        let forged = request(60_000, now, signedWith: SymmetricKey(data: Array("another-key-of-a-test".utf8)))
        #expect(status { () throws(APIFailure) in try credentials.device(forged) } == 401)
        var without = credentials
        without.secrets = nil
        #expect(status { () throws(APIFailure) in try without.device(good) } == 401)
    }

    @Test func anInstallTokenOpensDevicesCallsAndNoOthers() throws {
        let key = UserToken.key(of: testApp("open", []), secrets: secrets)
        func request(_ issued: Timestamp) -> APIRequest {
            let token = InstallToken(
                app: "open", installID: "i", creation: "life-1", issued: issued, lifetime: 60_000)
            return testRequest("/", ["Authorization": "Bearer \(token.signed(with: key))"])
        }
        let good = request(now)
        let caller = try credentials.confirm(credentials.device(good), good)
        #expect(caller.authType == "app_install" && caller.authID == "life-1" && caller.app.id == "open")
        #expect(caller.principal.scopes == [.sdk])
        #expect(status { () throws(APIFailure) in try credentials.bearer(good) } == 403)
        let expired = request(Timestamp(milliseconds: now.milliseconds - 60_000))
        #expect(status { () throws(APIFailure) in try credentials.device(expired) } == 401)
    }

    /// U75. Whoever comes back after a year gets new tokens for what is still the same install.
    @Test func anExpiredTokenNamesItsCreationForAWhile() throws {
        let app = testApp("open", [])
        let key = UserToken.key(of: app, secrets: secrets)
        let day: Int64 = 86_400_000
        func request(_ days: Int64, _ creation: String, isUser: Bool) -> APIRequest {
            let issued = Timestamp(milliseconds: now.milliseconds - days * day - 60_000)
            let user = UserToken(
                app: "open", userID: "u", installID: "i", creation: creation, issued: issued, lifetime: 60_000)
            let install = InstallToken(
                app: "open", installID: "i", creation: creation, issued: issued, lifetime: 60_000)
            let token = isUser ? user.signed(with: key) : install.signed(with: key)
            return testRequest("/", ["Authorization": "Bearer \(token)"])
        }
        for isUser in [true, false] {
            for days in [0, 399] as [Int64] {
                let old = request(days, "life-1", isUser: isUser)
                let caller = try credentials.confirm(credentials.device(old, inGrace: true), old)
                #expect(caller.authType == "app_install_expired" && caller.authID == "life-1")
                #expect(status { () throws(APIFailure) in try credentials.device(old) } == 401)
            }
            let tooOld = request(400, "life-1", isUser: isUser)
            #expect(status { () throws(APIFailure) in try credentials.device(tooOld, inGrace: true) } == 401)
            let present = request(-1, "life-1", isUser: isUser)
            #expect(
                try credentials.confirm(credentials.device(present, inGrace: true), present).authType
                    == (isUser ? "app_user" : "app_install"))
        }
    }

    /// Only what can be guessed counts as a guess: a token cannot, and a key's id is no secret.
    @Test func whatIsAGuess() {
        func isGuess(_ headers: [String: String]) -> Bool? {
            let request = testRequest("/v1/login", headers)
            do throws(APIFailure) {
                _ =
                    headers["x-mp-key"] == nil
                    ? try credentials.confirm(credentials.device(request), request) : try caller(request)
                return nil
            } catch {
                return error.isGuess
            }
        }
        #expect(isGuess(["Authorization": "Bearer closed-key.wrong"]) == true)
        #expect(isGuess(["Authorization": "Bearer nobody.wrong"]) == true)
        var wrong = signed
        wrong["Date"] = "x"
        #expect(isGuess(wrong) == true)
        #expect(isGuess(["Authorization": "Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln"]) == false)
        for key in ["closed-key", "nobody"] { #expect(isGuess(["x-mp-key": key]) == false) }
        #expect(isGuess(["Authorization": "Bearer old.example-api-secret"]) == false)
        #expect(isGuess([:]) == false)
    }

    @Test func theKeyThatARequestNames() throws {
        func named(_ line: String, _ headers: [String: String] = [:]) throws -> String? {
            Credentials.namedKey(testRequest("/", headers), try #require(testCall(line)).route)
        }
        #expect(try named("POST /v1/login", ["Authorization": "Basic Y2xvc2VkLWtleTp4"]) == "closed-key")
        #expect(try named("POST /users/auth-code", ["Authorization": "Bearer a.b"]) == "a")
        #expect(try named("POST /sdk/v1/users", ["Authorization": "Bearer eyJh.b.c"]) == nil)
        #expect(try named("POST /v1/7/modify", ["x-mp-key": "k"]) == "k")
        #expect(try named("POST /v1/identity/k/alias") == "k")
        #expect(try named("POST /v1/login", ["Authorization": "Basic %%"]) == nil)
    }
}
