// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import HTTPTypes
import Runtime
import Synchronization
import Testing
import WireJSON

@testable import Gateway

/// The admin port: what is behind it, what its calls say, and how they are answered.
@Suite struct AdminTests {
    /// Keeps what it is asked, and answers all the same.
    private final class Bus: CommandBus {
        let apps = AppDirectory([])
        let load = 0.0
        let asked = Mutex<[OutgoingCommand]>([])
        private let reply: CommandReply

        init(_ reply: CommandReply) { self.reply = reply }

        func ask(_ command: OutgoingCommand, acceptsPending: Bool) async throws -> Answer {
            asked.withLock { $0.append(command) }
            return .reply(reply)
        }
    }

    private func ask(
        _ line: String, query: String? = nil, body: String = "", headers: [String: String] = [:],
        result: JSONValue = [:], events: [JSONValue] = []
    ) async throws -> (response: APIResponse, command: OutgoingCommand?) {
        var reply = CommandReply(commandID: "c", app: "demo", digest: "d", status: .succeeded, result: result)
        reply.events = events
        let bus = Bus(reply)
        let api = API(bus: bus, secrets: nil, limits: RequestLimits(), replyTimeout: .seconds(1), now: { .now })
        let caller = Caller(
            app: AppSettings(id: "demo"), principal: Principal(kind: .apiKey("demo-support"), scopes: [.support]))
        var note = AccessNote()
        let request = testRequest("", query: query, headers, body: body)
        let call = try #require(testCall(line, request, .admin))
        let response = await api.respond(
            to: call, of: .held(caller), trace: TraceContext(parent: nil, state: nil), note: &note)
        return (response, bus.asked.withLock { $0.last })
    }

    private func body(_ response: APIResponse) throws -> JSONValue { try JSONValue(parsing: response.body) }

    /// Nothing but the document has a place on both.
    @Test func noCallIsOnBothPorts() {
        for endpoint in Endpoint.admin where endpoint.path.text != "/openapi.json" {
            #expect(Route.at(endpoint.path.text, .admin).contains { $0.endpoint.method == endpoint.method })
            #expect(Route.at(endpoint.path.text, .api).isEmpty, "\(endpoint.path.text)")
        }
        for endpoint in Endpoint.all where endpoint.path.text != "/openapi.json" {
            #expect(Route.at(endpoint.path.text, .admin).isEmpty, "\(endpoint.path.text)")
        }
    }

    /// Only a key with its secret opens it, and no web page gets leave to call.
    @Test func onlyKeysAreLetIn() {
        for endpoint in Endpoint.admin where endpoint.path.text != "/openapi.json" {
            #expect(endpoint.callers == .backend && !endpoint.isForBrowsers)
            guard case .command(let command) = endpoint.work else { continue }
            let scopes = [command.type.scope, command.type.orScope]
            #expect(!Set(scopes).isDisjoint(with: [.support, .admin, .userDelete]), "\(command.type.name)")
        }
    }

    @Test(arguments: [
        ("/admin/v1/users/5a18", "GET /admin/v1/users/{user_id} 5a18"),
        ("/admin/v1/users/resolve", "POST /admin/v1/users/resolve "),
        ("/admin/v1/facts/device%3A1", "GET /admin/v1/facts/{id} device:1"),
        ("/admin/v1/facts/resolve", "POST /admin/v1/facts/resolve "),
        ("/admin/v1/profiles/-7", "GET /admin/v1/profiles/{mpid} -7"),
        ("/admin/v1/link/make-active", "POST /admin/v1/link/make-active "),
        ("/admin/v1/link/erase-user", "POST /admin/v1/link/erase-user "),
        ("/admin/v1/users/5a18/erasure", "GET /admin/v1/users/{user_id}/erasure 5a18"),
        ("/userprofile/v1/1/2/3/-7", "GET /userprofile/v1/{org_id}/{account_id}/{workspace_id}/{mpid} -7"),
        ("/userprofile/v1/resolve/1/2/3", "POST /userprofile/v1/resolve/{org_id}/{account_id}/{workspace_id} 3"),
        ("/admin/v1/users", nil), ("/admin/v1/link/other", nil), ("/identity/admin/v1/users/5a18", nil),
    ])
    func paths(_ row: (path: String, found: String?)) {
        let found = Route.at(row.path, .admin).map { "\($0.endpoint.method) \($0.endpoint.path.text) \($0.id)" }
        #expect(found == (row.found.map { [$0] } ?? []))
    }

    /// Each call, the command that it becomes, and its data.
    @Test(arguments: [
        ("GET /admin/v1/users/5a18", "", "link.get-user", #"{"userId":"5a18"}"#),
        ("POST /admin/v1/users/resolve", #"{"externalId":"ada","x":1}"#, "link.get-user", #"{"externalId":"ada"}"#),
        ("GET /admin/v1/profiles/-7", "", "sync.get-profile", #"{"mpid":"-7"}"#),
        (
            "POST /admin/v1/profiles/resolve", #"{"identity":{"type":"email","value":"a@b.io"}}"#, "sync.get-profile",
            #"{"identity":{"type":"email","value":"a@b.io"}}"#
        ),
        ("GET /admin/v1/sessions/a%2Fb", "", "verification.get-session", #"{"deviceId":"a/b"}"#),
        (
            // The service refuses what it does not read: here, a dry run that was meant.
            "POST /admin/v1/link/unlink-user", #"{"userId":"u","author":"kim","reason":"r","dryRun":1}"#,
            "link.unlink-user", #"{"author":"kim","dryRun":1,"reason":"r","userId":"u"}"#
        ),
    ])
    func commands(_ row: (line: String, body: String, type: String, data: String)) async throws {
        let (response, command) = try await ask(row.line, body: row.body)
        #expect(response.status == 200 && command?.type.name == "identity.\(row.type).v1")
        #expect(command.map { String(decoding: $0.data.canonicalBytes(), as: UTF8.self) } == row.data)
        #expect(command?.caller.authType == "api_key" && command?.caller.authID == "demo-support")
    }

    /// A dry run says what would be told; nothing that could be a dry run misspelt is carried out.
    @Test func aRepairIsTriedFirst() async throws {
        let line = "POST /admin/v1/link/make-active"
        let given = #"{"installId":"i","author":"kim","reason":"r"}"#
        let event: JSONValue = ["type": "identity.link.install-status-changed.v1", "data": [:]]
        for (query, headers) in [("dryRun=true", [:]), (nil, ["Prefer": "dry-run"])] as [(String?, [String: String])] {
            let (response, command) = try await ask(
                line, query: query, body: given, headers: headers, result: ["installId": "i"], events: [event])
            #expect(command?.isDryRun == true && response.status == 200)
            var told = try #require(event.objectValue)
            told["words"] = "install ? is ?, without a user, because ?"
            #expect(try body(response) == ["dryRun": true, "result": ["installId": "i"], "events": [.object(told)]])
        }
        let (done, command) = try await ask(line, query: "dryRun=false", body: given, result: ["installId": "i"])
        #expect(command?.isDryRun == false)
        #expect(try body(done) == ["installId": "i"])
        for query in [
            "dryrun=true", "dryRun", "dryRun=", "dryRun=yes", "dryRun=true&dryRun=false", "after=x", "%64ryRun=true",
        ] {
            let (response, command) = try await ask(line, query: query, body: given)
            #expect(response.status == 400 && command == nil, "\(query)")
        }
    }

    @Test func aPageIsAskedFor() async throws {
        let (_, user) = try await ask("GET /admin/v1/users/u", query: "after=a-_b%41")
        #expect(user?.data["after"] == "a-_bA")
        let (_, profile) = try await ask("POST /admin/v1/profiles/resolve", body: #"{"mpid":"7","after":"x"}"#)
        #expect(profile?.data == ["mpid": "7", "after": "x"])
        #expect(try await ask("GET /admin/v1/profiles/0").response.status == 400)
    }

    // MARK: Facts

    /// Answers as the services do that are named; the others say nothing.
    private final class Services: CommandBus {
        let apps = AppDirectory([])
        let load = 0.0
        let asked = Mutex<[OutgoingCommand]>([])
        private let pages: [String: String?]

        /// - Parameter pages: what each service that answers says is next.
        init(_ pages: [String: String?]) { self.pages = pages }

        func ask(_ command: OutgoingCommand, acceptsPending: Bool) async throws -> Answer {
            asked.withLock { $0.append(command) }
            let service = FactsCalls.service(command.type)
            guard let page = pages[service] else { return .timedOut }
            var result: JSONObject = ["id": "i", "state": [["kind": .string(service)]], "facts": []]
            result["next"] = page.map { .string($0) }
            return .reply(
                CommandReply(
                    commandID: command.id, app: "demo", digest: "d", status: .succeeded, result: .object(result)))
        }
    }

    private func facts(
        _ line: String, query: String? = nil, body: String = "", _ pages: [String: String?]
    ) async throws -> (response: APIResponse, asked: [String: OutgoingCommand]) {
        let bus = Services(pages)
        let api = API(bus: bus, secrets: nil, limits: RequestLimits(), replyTimeout: .seconds(1), now: { .now })
        let caller = Caller(
            app: AppSettings(id: "demo"), principal: Principal(kind: .apiKey("demo-support"), scopes: [.support]))
        var note = AccessNote()
        let request = testRequest("", query: query, ["Idempotency-Key": "k"], body: body)
        let response = await api.respond(
            to: try #require(testCall(line, request, .admin)), of: .held(caller),
            trace: TraceContext(parent: nil, state: nil), note: &note)
        let asked = bus.asked.withLock { $0 }
        #expect(Set(asked.map(\.id)).count <= 1 && asked.allSatisfy { !$0.id.isDerived })
        return (response, Dictionary(uniqueKeysWithValues: asked.map { (FactsCalls.service($0.type), $0) }))
    }

    /// Each service is asked for the id, and one answer says what all know, and where it goes on.
    @Test func allServicesAreAskedAtOnce() async throws {
        let pages: [String: String?] = ["link": "bmV4dA==", "user": nil, "sync": "a+b/", "verification": nil]
        let (response, asked) = try await facts("GET /admin/v1/facts/a%2Fb", query: "source=shop", pages)
        #expect(response.status == 200 && asked.count == 4)
        for command in asked.values { #expect(command.data == ["id": "a/b", "source": "shop"]) }
        let told = try body(response)
        #expect(told["services"]?["user"] == ["state": [["kind": "user"]], "facts": []])
        #expect(told["id"] == "a/b" && told["silent"] == nil && told["next"] == "link:bmV4dA==,sync:a+b/")
        let (next, more) = try await facts(
            "POST /admin/v1/facts/resolve", body: #"{"id":"a/b","after":"link:bmV4dA==,sync:a+b/","x":1}"#, pages)
        #expect(next.status == 200 && Set(more.keys) == ["link", "sync"])
        #expect(more["sync"]?.data == ["id": "a/b", "page": "a+b/"])
    }

    /// What the others know is worth having.
    @Test func aServiceThatIsSilentIsNamed() async throws {
        let (response, _) = try await facts("GET /admin/v1/facts/i", ["link": nil, "sync": nil])
        let told = try body(response)
        #expect(response.status == 200 && told["silent"] == ["user", "verification"])
        #expect(told["services"]?.objectValue?.map(\.name) == ["link", "sync"])
        #expect(try await facts("GET /admin/v1/facts/i", [:]).response.status == 504)
    }

    @Test(arguments: ["link", "link:a,link:b", "mail:a", ",", "link:", "a:b:c"])
    func whatNoAnswerSaidIsNoPage(_ after: String) async throws {
        let (response, asked) = try await facts("GET /admin/v1/facts/i", query: "after=\(after)", ["link": nil])
        #expect(response.status == 400 && asked.isEmpty)
        let (body, _) = try await facts("POST /admin/v1/facts/resolve", body: #"{"id":"i","after":7}"#, ["link": nil])
        #expect(body.status == 400)
    }

    // MARK: The identity vendor's calls (F45, F46)

    private static let told: JSONValue = [
        "mpid": "-8532907531268105187", "firstSeen": "2027-01-15T08:00:00.000Z", "lastSeen": "2027-01-15T08:00:01.000Z",
        "identities": [
            "customerid": ["ada"], "other2": ["x", "y"], "android_aaid": ["z"], "device_application_stamp": ["d"],
        ],
    ]

    @Test func aProfileInTheVendorsForm() async throws {
        let (response, command) = try await ask(
            "GET /userprofile/v1/1/2/3/-8532907531268105187",
            query: "fields=user_identities,device_identities,audience_memberships", result: Self.told)
        #expect(command?.data == ["mpid": "-8532907531268105187"])
        #expect(
            String(decoding: response.body, as: UTF8.self).contains(#""mpid":-8532907531268105187,"#)
                && response.status == 200)
        let profile = try body(response)
        #expect(profile["created_timestamp_ms"]?.int64Value == 1_800_000_000_000)
        #expect(profile["last_stored_timestamp_ms"]?.int64Value == 1_800_000_001_000)
        #expect(profile["is_opted_out"] == false && profile["audience_memberships"] == [])
        #expect(profile["user_attributes"] == nil)
        func one(_ type: String, _ value: String) -> JSONValue {
            ["type": .string(type), "encoding": "none", "value": .string(value)]
        }
        #expect(
            profile["user_identities"]
                == .array([
                    one("customer_id", "ada"), one("other_id_2", "x"), one("other_id_2", "y"),
                ]))
        #expect(
            profile["device_identities"]
                == .array([
                    one("google_advertising_id", "z"), one("device_application_stamp", "d"),
                ]))
    }

    @Test(arguments: [("customer_id", "customerid"), ("customerid", "customerid"), ("other_id_10", "other10")])
    func aProfileIsResolvedByTheVendorsWords(_ row: (theirs: String, ours: String)) async throws {
        let (response, command) = try await ask(
            "POST /userprofile/v1/resolve/1/2/3", query: "fields=user_identities",
            body: #"{"environment_type":"production","identity":{"type":"\#(row.theirs)","value":"ada"}}"#,
            result: Self.told)
        #expect(response.status == 200)
        #expect(command?.data == ["identity": ["type": .string(row.ours), "value": "ada"]])
    }

    @Test(arguments: [nil, "", "fields=", "fields=mpid", "fields=user_identities,,x", "other=1"])
    func theVendorWantsToKnowWhatIsMeant(_ query: String?) async throws {
        let (response, command) = try await ask("GET /userprofile/v1/1/2/3/7", query: query)
        #expect(response.status == 400 && command == nil)
    }
}
