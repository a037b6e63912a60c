// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Synchronization
import Testing
import WireJSON

@testable import Gateway

/// Requests of data subjects, in the words of OpenDSR (docs/gateway.md "Data subjects").
@Suite struct OpenDSRTests {
    private final class Bus: CommandBus {
        let apps = AppDirectory([])
        let load = 0.0
        let asked = Mutex<[OutgoingCommand]>([])
        private let results: [String: JSONValue]

        /// - Parameter results: by type; of what is not there nobody knows anything.
        init(_ results: [String: JSONValue]) { self.results = results }

        func ask(_ command: OutgoingCommand, acceptsPending: Bool) async throws -> Answer {
            asked.withLock { $0.append(command) }
            guard let result = results[command.type.name] else {
                var reply = CommandReply(commandID: "c", app: "demo", digest: "d", status: .rejected, result: nil)
                reply.reason = ReasonCode.notFoundError.rawValue
                return .reply(reply)
            }
            return .reply(CommandReply(commandID: "c", app: "demo", digest: "d", status: .succeeded, result: result))
        }
    }

    private static let id = "a7551968-d5d6-44b2-9831-815ac9017798"
    private static let now = Timestamp(milliseconds: 1_795_000_000_000)

    private func ask(
        _ line: String, body: String = "", _ results: [String: JSONValue] = [:], query: String? = nil,
        headers: [String: String] = [:]
    ) async throws -> (response: APIResponse, commands: [OutgoingCommand]) {
        let bus = Bus(results)
        let api = API(
            bus: bus, secrets: nil, limits: RequestLimits(), replyTimeout: .seconds(1), now: { Self.now })
        let caller = Caller(
            app: AppSettings(id: "demo"),
            principal: Principal(kind: .apiKey("k"), scopes: [.support, .userDelete]))
        var note = AccessNote()
        var request = testRequest("", query: query, headers, body: body)
        request.host = "dsr.example"
        let call = try #require(testCall(line, request))
        let response = await api.respond(
            to: call, of: .held(caller), trace: TraceContext(parent: nil, state: nil), note: &note)
        return (response, bus.asked.withLock { $0 })
    }

    private func body(_ response: APIResponse) throws -> JSONValue { try JSONValue(parsing: response.body) }

    private func request(_ more: String) -> String {
        #"{"regulation":"gdpr","subject_request_id":"\#(Self.id)","subject_request_type":"erasure","#
            + #""submitted_time":"2026-10-02T15:00:00Z",\#(more)}"#
    }

    // MARK: Types

    /// F63: each type of ours has one word, and each word one type.
    @Test func everyTypeHasOneWord() {
        let words = IdentityType.allCases.map(OpenDSRCalls.word)
        #expect(Set(words).count == words.count)
        for type in IdentityType.allCases {
            #expect(OpenDSRCalls.type(OpenDSRCalls.word(type)) == type)
            if OpenDSRCalls.word(type) != type.rawValue { #expect(OpenDSRCalls.type(type.rawValue) == nil) }
        }
        let standard = [
            "controller_customer_id", "android_advertising_id", "android_id", "email", "fire_advertising_id",
            "ios_advertising_id", "ios_vendor_id", "microsoft_advertising_id", "microsoft_publisher_id",
            "roku_publisher_id", "roku_advertising_id",
        ]
        for word in standard { #expect(OpenDSRCalls.type(word) != nil, "\(word)") }
    }

    // MARK: Requests

    /// F62, F63.
    @Test(arguments: [
        (
            #""subject_identities":{"controller_customer_id":{"value":"anna","encoding":"raw"}}"#,
            #"{"identities":{"customerid":"anna"}}"#
        ),
        (
            #""subject_identities":[{"identity_type":"ios_vendor_id","identity_value":"v","identity_format":"raw"}]"#,
            #"{"identities":{"ios_idfv":"v"}}"#
        ),
        (
            #""extensions":{"opendsr.mparticle.com":{"subject_identities":{"other":{"value":"o","encoding":"raw"}}}}"#,
            #"{"identities":{"other":"o"}}"#
        ),
        (#""extensions":{"opendsr.mparticle.com":{"mpids":[-7]}}"#, #"{"mpid":-7}"#),
        (
            #""extensions":{"opendsr.mparticle.com":{"subject_identities":{"mpid":{"value":"-7","encoding":"raw"}}}}"#,
            #"{"mpid":"-7"}"#
        ),
        (
            #""subject_identities":{"email":{"value":"a@x"}},"extensions":{"identitybus":{"every_holder":true},"x":{}}"#,
            #"{"identities":{"email":"a@x"},"everyHolder":true}"#
        ),
    ])
    func whatIsAskedFor(_ more: String, _ expected: String) async throws {
        let result: JSONValue = [
            "requestId": .string(Self.id), "receivedAt": "2026-11-01T00:00:00.000Z",
            "expectedAt": "2026-11-04T01:00:00.000Z",
        ]
        let text = request(more + #","group_id":"g""#)
        let (response, commands) = try await ask("POST /v3/requests", body: text, [FileRequest.type: result])
        #expect(response.status == 201, "\(String(decoding: response.body, as: UTF8.self))")
        let told = try body(response)
        #expect(told["controller_id"] == "demo" && told["subject_request_id"]?.stringValue == Self.id)
        #expect(told["expected_completion_time"] == "2026-11-04T01:00:00.000Z")
        let data = try #require(commands.first?.data.objectValue)
        var whole = try #require(JSONValue(parsing: Array(expected.utf8)).objectValue)
        whole["requestId"] = .string(Self.id)
        whole["kind"] = "erasure"
        whole["regulation"] = "gdpr"
        whole["submittedAt"] = "2026-10-02T15:00:00Z"
        whole["groupId"] = "g"
        #expect(JSONValue.object(data).canonicalBytes() == JSONValue.object(whole).canonicalBytes())
        #expect(CommandType(FileRequest.self).problem(of: .object(data)) == nil)
    }

    @Test(arguments: [
        #""subject_identities":{}"#, #""subject_identities":{"customerid":{"value":"x","encoding":"raw"}}"#,
        #""subject_identities":{"email":{"value":"x","encoding":"sha256"}}"#,
        #""subject_identities":{"email":{"value":7}}"#, #""subject_identities":7"#, #""extensions":7"#,
        #""subject_identities":{"email":{"value":"x"}},"status_callback_urls":["https://x.example"]"#,
        #""subject_identities":{"email":{"value":"x"}},"api_version":"1.0""#,
        #""subject_identities":{"email":{"value":"x"}},"extensions":{"opendsr.mparticle.com":{"mpids":[7]}}"#,
        #""extensions":{"opendsr.mparticle.com":{"mpids":[7,8]}}"#,
        #""subject_identities":[{"identity_type":"email","identity_value":"x"},{"identity_type":"email","identity_value":"y"}]"#,
    ])
    func whatIsRefused(_ more: String) async throws {
        let (response, commands) = try await ask("POST /v3/requests", body: request(more))
        #expect(response.status == 400 && commands.isEmpty)
        let error = try #require(body(response)["error"])
        #expect(error["code"] == 400 && error["errors"]?.arrayValue?.first?["reason"] == "INVALID_REQUEST")
    }

    // MARK: Answers

    @Test func theStatusOfARequest() async throws {
        let result: JSONValue = [
            "requestId": .string(Self.id), "kind": "access", "status": "completed", "groupId": "g",
            "receivedAt": "2026-11-01T00:00:00.000Z", "startsAt": "2026-11-01T00:00:00.000Z",
            "expectedAt": "2026-11-01T00:00:00.000Z", "profileCount": 1, "heldByOthers": 0,
            "resultsUntil": .string(Timestamp(milliseconds: Self.now.milliseconds + 1).rfc3339),
        ]
        let (response, _) = try await ask(
            "GET /v3/requests/\(Self.id)", [GetRequest.type: result], headers: ["X-Forwarded-Proto": "https"])
        let told = try body(response)
        #expect(response.status == 200 && told["request_status"] == "completed" && told["results_count"] == 1)
        #expect(told["results_url"]?.stringValue == "https://dsr.example/v3/requests/\(Self.id)/results")
        #expect(told["group_id"] == "g" && told["api_version"] == "3.0")
    }

    @Test func anErasureThatIsNotCertain() async throws {
        let result: JSONValue = [
            "requestId": .string(Self.id), "kind": "erasure", "status": "inProgress",
            "reason": "AMBIGUOUS_IDENTITY", "receivedAt": "2026-11-01T00:00:00.000Z",
            "startsAt": "2026-11-01T00:00:00.000Z", "expectedAt": "2026-11-01T00:00:00.000Z", "profileCount": 0,
            "heldByOthers": 3,
        ]
        let (response, _) = try await ask(
            "GET /v3/requests", [GetRequests.type: ["groupId": "g", "requests": [result]]], query: "group_id=g")
        let told = try #require(body(response).arrayValue?.first)
        #expect(told["request_status"] == "in_progress" && told["results_url"] == nil)
        let ours = told["extensions"]?["identitybus"]
        #expect(ours?["reason"] == "AMBIGUOUS_IDENTITY" && ours?["heldByOthers"] == 3)
    }

    @Test func aGroupMustBeNamed() async throws {
        let (response, _) = try await ask("GET /v3/requests")
        #expect(response.status == 400)
    }

    @Test func whatIsCancelled() async throws {
        let (response, _) = try await ask(
            "DELETE /v3/requests/\(Self.id)", [CancelRequest.type: ["requestId": .string(Self.id)]])
        let told = try body(response)
        #expect(response.status == 202 && told["received_time"]?.stringValue == Self.now.rfc3339)
    }

    /// Of devices that several people use only the person's own sessions are told.
    @Test func theResultsComeFromThreeServices() async throws {
        let device: JSONValue = ["deviceId": "d", "isCurrent": true]
        let profile: JSONValue = [
            "mpid": "7", "userId": "u", "devices": [device], "barriers": [], "barrierCount": 0, "isErased": false,
        ]
        for (mpid, count) in [("7", 1), ("8", 0)] {
            let (response, commands) = try await ask(
                "GET /v3/requests/\(Self.id)/results",
                [
                    GetRequestResults.type: [
                        "requestId": .string(Self.id), "kind": "access", "profiles": [profile],
                    ], GetLinkedUser.type: ["userId": "u", "installs": []],
                    GetSession.type: ["deviceId": "d", "mpid": .string(mpid)],
                ])
            let told = try body(response)
            #expect(response.status == 200 && commands.map(\.type.name).count == 3)
            #expect(told["users"]?.arrayValue?.count == 1 && told["sessions"]?.arrayValue?.count == count)
            let own = told["profiles"]?.arrayValue?.first?.objectValue
            #expect(own?["barriers"] == nil && own?["mpid"] == "7")
        }
    }

    @Test func whoIsGoneIsLeftOut() async throws {
        let profile: JSONValue = ["mpid": "7", "userId": "u", "devices": []]
        let (response, _) = try await ask(
            "GET /v3/requests/\(Self.id)/results",
            [GetRequestResults.type: ["requestId": .string(Self.id), "kind": "access", "profiles": [profile]]])
        #expect(try response.status == 200 && body(response)["users"]?.arrayValue?.isEmpty == true)
    }
}
