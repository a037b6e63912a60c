// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Foundation
import Testing
import WireJSON

@testable import Gateway

/// The table of endpoints, and docs/openapi.json, which tells the same to others.
@Suite struct EndpointTests {
    /// `POST /v1/login`, and the id in the path.
    private func found(_ path: String, _ door: Door = .api) -> [String] {
        Route.at(path, door).map { "\($0.endpoint.method) \($0.endpoint.path.text) \($0.id)" }
    }

    @Test(arguments: [
        ("/v2/users/a/link", "POST /v2/users/{install_id}/link a"),
        // A byte order mark is a letter of the id, as any other.
        ("/v2/users/%EF%BB%BFa/link", "POST /v2/users/{install_id}/link \u{FEFF}a"),
        ("/v2/users/a%2Fb%20c/link", "POST /v2/users/{install_id}/link a/b c"),
        ("/users/auth-code", "POST /users/auth-code "),
        ("/users/5a18fc4b0962209e0000000d", "DELETE /users/{user_id} 5a18fc4b0962209e0000000d"),
        ("/sdk/v1/users", "POST /sdk/v1/users "), ("/sdk/v1/installs/a", "GET /sdk/v1/installs/{install_id} a"),
        ("/sdk/v1/installs/a/link", "POST /sdk/v1/installs/{install_id}/link a"),
        ("/sdk/v1/installs/a/confirm-link", "POST /sdk/v1/installs/{install_id}/confirm-link a"),
        ("/sdk/v1/installs/a/reset", "POST /sdk/v1/installs/{install_id}/reset a"),
        ("/v1/identify", "POST /v1/identify "), ("/identity/v1/login", "POST /v1/login "),
        ("/v1/-7/modify", "POST /v1/{mpid}/modify -7"), ("/v1/identity/modify", "POST /v1/{mpid}/modify identity"),
        ("/webevents/v1/identity/k/Alias", "POST /v1/identity/{api_key}/alias k"),
        ("/v1/identity/k/alias", "POST /v1/identity/{api_key}/alias k"),
        ("/v3/JS/k/events", "POST /v3/JS/{api_key}/events k"),
        ("/v1/JS/a%2Fb/events", "POST /v3/JS/{api_key}/events a/b"),
        ("/webevents/v1/JS/k/Forwarding", "POST /v3/JS/{api_key}/events k"),
        ("/v1/verification/login-identity", "POST /v1/verification/login-identity "),
        ("/v1/verification/sessions/a%2Fb", "GET /v1/verification/sessions/{device_id} a/b"),
        ("/v3/discovery", "GET /v3/discovery "), ("/v2/discovery", "GET /v3/discovery "),
        ("/v2/requests/a/results", "GET /v3/requests/{request_id}/results a"),
        ("/v1/profiles/-7", "DELETE /v1/profiles/{mpid} -7"),
        ("/v1/profiles/-7/erasure", "GET /v1/profiles/{mpid}/erasure -7"),
        ("/openapi.json", "GET /openapi.json "),
    ])
    func paths(_ row: (path: String, found: String)) {
        #expect(found(row.path) == [row.found])
    }

    @Test(arguments: [
        "", "/", "//", "/v1", "/v1/", "/v1/identify/", "//v1/identify", "/V1/identify", "/v1/Identify", "/v1/other",
        "/users", "/users/", "/users/a%2Fb", "/users/a/b", "/v2/users//link", "/v2/users/a/unlink",
        "/v2/users/%zz/link", "/v2/users/%ff/link", "/v2/users/%4/link", "/v2/users/a%/link", "/v2/users/%+4/link",
        "/v1/identity/k/ALIAS", "/identity/identity/v1/login", "/identity",
        "/webevents/", "/sdk/v1/installs", "/sdk/v2/users", "v1/identify", "/openapi.json/x",
        "/v1/verification/modify", "/v4/JS/k/events", "/v1/JS/k/other",
    ])
    func noEndpoint(_ path: String) {
        #expect(found(path).isEmpty)
    }

    /// An ingress that publishes the vendor's paths for a domain publishes the vendor's calls, and no others.
    @Test(arguments: ["identity", "webevents", "nativeevents"])
    func aPrefixOpensTheVendorsCallsOnly(_ prefix: String) {
        for path in ["/v1/identify", "/v1/-7/modify", "/v1/identity/k/alias", "/v3/JS/k/events"] {
            #expect(found("/\(prefix)\(path)") == found(path) && !found(path).isEmpty)
        }
        for path in [
            "/v2/users/a/link", "/users/auth-code", "/users/a", "/sdk/v1/users", "/sdk/v1/installs/a",
            "/v1/verification/login", "/openapi.json",
        ] {
            #expect(found("/\(prefix)\(path)").isEmpty && !found(path).isEmpty)
        }
    }

    /// Rules of a proxy about paths look at the text that was sent: each endpoint has one.
    @Test(arguments: [
        "/%75sers/auth-code", "/users/auth%2Dcode", "/users%2Fauth-code", "/%76%31/login", "/v1/%6cogin",
        "/v2/%75sers/a/link", "/v2/users/a/lin%6b", "/sdk/v1/%69nstalls/a", "/v1/verification/logi%6e",
        "/%69dentity/v1/login", "/v1/identity/k/%61lias", "/v3/JS/k/%65vents", "/openapi%2Ejson", "/v1/7/modif%79",
    ])
    func whatIsNoIDIsNotEncoded(_ path: String) {
        #expect(found(path).isEmpty)
    }

    @Test func thePrefixOfADomainIsNotSigned() {
        #expect(Route.signedPath("/identity/v1/login") == "/v1/login")
        #expect(Route.signedPath("/v1/identity/k/alias") == "/v1/identity/k/alias")
        #expect(Route.signedPath("/identityx/v1/login") == "/identityx/v1/login")
        #expect(Route.signedPath("") == "")
    }

    /// They carry secrets that have no place in a browser.
    @Test(arguments: [
        "/v2/users/a/link", "/users/auth-code", "/users/a", "/v1/verification/check", "/v1/verification/sessions/a",
    ])
    func backendsCallsAreNotForBrowsers(_ path: String) {
        #expect(Route.at(path).map(\.endpoint.isForBrowsers) == [false])
    }

    // MARK: The document

    private func parsed(_ bytes: [UInt8]) throws -> JSONObject {
        let limits = JSONLimits(maxDepth: 64, maxBytes: 1_000_000)
        return try #require(JSONValue(parsing: bytes, limits: limits).objectValue)
    }

    private func committed(_ door: Door) throws -> JSONObject {
        let repository = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let name = door == .api ? "openapi" : "openapi-admin"
        return try parsed(Array(try Data(contentsOf: repository.appending(path: "docs/\(name).json"))))
    }

    /// Its operations by method and path.
    private func operations(_ door: Door) throws -> [String: JSONObject] {
        var operations: [String: JSONObject] = [:]
        for path in try #require(committed(door)["paths"]?.objectValue) {
            for method in path.value.objectValue ?? [:] {
                operations["\(method.name.uppercased()) \(path.name)"] = method.value.objectValue
            }
        }
        return operations
    }

    /// Those that ask another service, by what the services' pages say: what waits for the same is counted
    /// together.
    @Test func servicesThatHaveTheirPartInTheAnswer() {
        let others = [
            "DELETE /v1/profiles/{mpid}": "link user verification",
            "GET /v3/requests/{request_id}/results": "link verification",
            "DELETE /users/{user_id}": "sync user verification", "POST /sdk/v1/users": "link",
            "POST /admin/v1/link/erase-user": "sync user verification",
            "POST /sdk/v1/installs/{install_id}/link": "link",
            "POST /sdk/v1/installs/{install_id}/confirm-link": "link",
            "POST /sdk/v1/installs/{install_id}/reset": "link", "POST /v1/verification/login": "sync",
            "POST /v1/verification/login-identity": "sync", "POST /v1/verification/logout": "sync",
        ]
        for endpoint in Endpoint.all + Endpoint.admin {
            guard case .command(let command) = endpoint.work else { continue }
            let line = "\(endpoint.method) \(endpoint.path.text)"
            #expect(command.others.sorted().joined(separator: " ") == others[line] ?? "", "\(line)")
        }
    }

    private func operation(_ endpoint: Endpoint, _ door: Door) throws -> JSONObject {
        try #require(operations(door)["\(endpoint.method) \(endpoint.path.text)"])
    }

    /// scripts/generate writes the one from the other.
    @Test func theServedDocumentIsTheCommittedOne() throws {
        #expect(try parsed(Array(OpenAPIDocument.text.utf8)) == committed(.api))
        #expect(try parsed(Array(OpenAPIDocument.adminText.utf8)) == committed(.admin))
    }

    @Test(arguments: Door.allCases) func eachOperationIsOneEndpoint(_ door: Door) throws {
        #expect(
            door.endpoints.map { "\($0.method) \($0.path.text)" }.sorted() == (try operations(door).keys.sorted()))
    }

    @Test(arguments: Door.allCases) func theDocumentTellsEachTypeOfProblem(_ door: Door) throws {
        let told = try #require(committed(door)["components"]?["x-problems"]?.objectValue)
        let codes = ReasonCode.allCases.map(\.rawValue) + Problems.own.keys
        #expect(told.map(\.name).sorted() == codes.sorted())
        for code in codes { #expect(told[code]?.stringValue == Problems.title(code), "\(code)") }
    }

    @Test(arguments: Door.allCases) func theDocumentNamesTheIDInThePath(_ door: Door) throws {
        for endpoint in door.endpoints {
            let parameters = try operation(endpoint, door)["parameters"]?.arrayValue ?? []
            let names = parameters.filter { $0["in"] == "path" }.map { $0["name"]?.stringValue }
            #expect(names == endpoint.path.idNames, "\(endpoint.path.text)")
        }
    }

    /// A link is about the linker's turn: nothing is decided behind its end, also where the answer can be asked for again.
    @Test func onlyALinkEndsWithTheLinkersTurn() {
        let app = AppSettings(id: "demo", sdk: SDKSettings(linkerTimeout: 42_000))
        for endpoint in Endpoint.all + Endpoint.admin {
            guard case .command(let command) = endpoint.work else { continue }
            let isLink = endpoint.path.text == "/v2/users/{install_id}/link"
            #expect(command.lifetime(app) == (isLink ? .seconds(42) : nil), "\(endpoint.path.text)")
        }
    }

    @Test(arguments: Door.allCases) func theDocumentSaysWhoMayCall(_ door: Door) throws {
        for endpoint in door.endpoints {
            let expected: JSONValue =
                switch endpoint.callers {
                case .backend, .app, .device: [["bearerAPIKey": []]]
                case .privacy: [["bearerAPIKey": []], ["basic": []]]
                case .install, .expiredInstall: [["userToken": []], ["installToken": []]]
                case .identity where endpoint.path.idName == "api_key":
                    [["basic": []], ["signature": [], "date": []], [:]]
                case .identity: [["basic": []], ["apiKey": [], "signature": [], "date": []], ["apiKey": []]]
                case .page: [[:]]
                case .anybody: []
                }
            #expect(try operation(endpoint, door)["security"] == expected, "\(endpoint.path.text)")
        }
    }

    /// What the command gets of a body is what the document says there is, where the two have the same words. Of what is
    /// sent by hand it gets the rest too, and refuses it; of an erasure, which apps' backends send as well, the gateway
    /// refuses it.
    @Test(arguments: Door.allCases) func theDocumentNamesTheMembersThatGoOn(_ door: Door) throws {
        for endpoint in door.endpoints where endpoint.dialect == .own && !endpoint.path.text.hasPrefix("/userprofile/")
        {
            guard case .command(let command) = endpoint.work else { continue }
            let content = try operation(endpoint, door)["requestBody"]?["content"]?["application/json"]
            let named = try content?["schema"].map { try members($0, door) } ?? []
            let isErasure = endpoint.path.text == "/admin/v1/link/erase-user"
            let body = JSONObject((named.sorted() + (isErasure ? [] : ["somethingElse"])).map { ($0, .string("x")) })
            let isByMPID = endpoint.path.idName == "mpid"
            let id = isByMPID ? "7" : "i"
            let data = try #require(command.read(RequestContent(id: id, body: body)).objectValue)
            let ofPath = data.filter { $0.value.stringValue == id }.count
            #expect(ofPath == (endpoint.path.idName == nil ? 0 : 1))
            let isByHand = command.parameters?.contains(.dryRun) == true
            let rest: Set<String> = isByHand && door == .admin && !isErasure ? ["somethingElse"] : []
            #expect(Set(data.filter { $0.value == "x" }.map(\.name)) == named.union(rest), "\(endpoint.path.text)")
        }
    }

    @Test func anErasureByHandHasNoOtherMembers() {
        let read = OwnCalls.exactly("userId", "author", "reason")
        #expect(throws: APIFailure.self) { try read(RequestContent(id: "", body: ["userId": "u", "resaon": "x"])) }
    }

    private func members(_ schema: JSONValue, _ door: Door) throws -> Set<String> {
        if let reference = schema["$ref"]?.stringValue, let name = reference.split(separator: "/").last {
            return try members(try #require(committed(door)["components"]?["schemas"]?[String(name)]), door)
        }
        let own = schema["properties"]?.objectValue?.map(\.name) ?? []
        let others = ["oneOf", "anyOf", "allOf"].flatMap { schema[$0]?.arrayValue ?? [] }
        return try others.reduce(into: Set(own)) { $0.formUnion(try members($1, door)) }
    }
}
