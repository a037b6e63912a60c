// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import HTTPTypes
import Runtime
import Testing
import WireJSON

@testable import Gateway

/// From a request whose sender is known to its answer.
@Suite struct APITests {
    private struct Failing: CommandBus {
        var apps: AppDirectory { AppDirectory([]) }
        var load: Double { 0 }
        let error: any Error
        func ask(_ command: OutgoingCommand, acceptsPending: Bool) async throws -> Answer { throw error }
    }

    private struct Answering: CommandBus {
        var apps: AppDirectory { AppDirectory([]) }
        var load: Double { 0 }
        let answer: Answer
        func ask(_ command: OutgoingCommand, acceptsPending: Bool) async throws -> Answer { answer }
    }

    private struct Other: Error {}

    private func response(
        _ answer: Answer, _ line: String, _ path: String, body: String = "", headers: [String: String] = [:]
    ) async throws -> APIResponse {
        let api = API(
            bus: Answering(answer: answer), secrets: nil, limits: RequestLimits(), replyTimeout: .seconds(1),
            now: { .now })
        let caller = Caller(app: AppSettings(id: "demo"), principal: Principal(kind: .user("u"), scopes: [.sdk]))
        var note = AccessNote()
        let call = try #require(testCall(line, testRequest(path, headers, body: body)))
        return await api.respond(
            to: call, of: .held(caller), trace: TraceContext(parent: nil, state: nil),
            note: &note)
    }

    private func reply(_ result: JSONValue, _ status: ReplyStatus = .succeeded) -> Answer {
        .reply(CommandReply(commandID: "c", app: "demo", digest: "d", status: status, result: result))
    }

    @Test func whatTakesLongSaysWhereToAsk() async throws {
        let pending = reply(["awaiting": "linker"], .pending)
        let created = try await response(
            pending, "POST /sdk/v1/users", "/sdk/v1/users", body: #"{"installId":"an install","linking":"linker"}"#)
        #expect(created.status == 202 && created.headers[.location] == "/sdk/v1/installs/an%20install")
        #expect(created.headers[.retryAfter] == "1")
        let linked = try await response(
            pending, "POST /sdk/v1/installs/i/link", "/sdk/v1/installs/i/link", body: #"{"linking":"linker"}"#)
        #expect(linked.status == 202 && linked.headers[.location] == "/sdk/v1/installs/i")
        let tried = try await response(
            pending, "POST /sdk/v1/users", "/sdk/v1/users", body: #"{"installId":"i","linking":"linker"}"#,
            headers: ["Prefer": "dry-run"])
        #expect(tried.status == 202 && tried.headers[.location] == nil && tried.headers[.retryAfter] == nil)
        let done = try await response(
            reply(["userId": "u"]), "POST /sdk/v1/users", "/sdk/v1/users", body: #"{"installId":"i"}"#)
        #expect(done.status == 200 && done.headers[.location] == nil && done.headers[.retryAfter] == nil)
    }

    /// Tokens are new each time, and what is told by a tag is not.
    @Test func whatIsReadHasATag() async throws {
        func read(_ result: JSONValue, knowing tag: String? = nil) async throws -> APIResponse {
            var headers: [String: String] = [:]
            headers["If-None-Match"] = tag
            return try await response(
                reply(result), "GET /sdk/v1/installs/i", "/sdk/v1/installs/i", headers: headers)
        }
        let first = try await read(["userId": "u", "token": ["tokenId": "a"]])
        let tag = try #require(first.headers[.eTag])
        #expect(first.status == 200 && tag.hasPrefix("W/\""))
        #expect(try await read(["token": ["tokenId": "b"], "userId": "u"]).headers[.eTag] == tag)
        #expect(try await read(["userId": "v"]).headers[.eTag] != tag)
        for known in [tag, "\"x\", \(tag)", "*", String(tag.dropFirst(2))] {
            let same = try await read(["userId": "u", "token": ["tokenId": "c"]], knowing: known)
            #expect(same.status == 304 && same.body.isEmpty && same.headers[.eTag] == tag, "\(known)")
        }
        #expect(try await read(["userId": "v"], knowing: tag).status == 200)
        let written = try await response(
            reply(["userId": "u"]), "POST /sdk/v1/installs/i/reset", "/sdk/v1/installs/i/reset")
        #expect(written.status == 200 && written.headers[.eTag] == nil)
    }

    private func answer(
        _ error: any Error = Other(), key: String? = nil
    ) async throws -> (status: Int, message: String?) {
        let api = API(
            bus: Failing(error: error), secrets: nil, limits: RequestLimits(), replyTimeout: .seconds(1), now: { .now })
        let caller = Caller(app: AppSettings(id: "demo"), principal: Principal(kind: .apiKey("k"), scopes: [.userLink]))
        var request = testRequest("/users/auth-code", body: #"{"external_id":"ada"}"#)
        if let key { request.headers[try #require(HTTPField.Name("Idempotency-Key"))] = key }
        var note = AccessNote()
        let response = await api.respond(
            to: try #require(testCall("POST /users/auth-code", request)),
            of: .held(caller), trace: TraceContext(parent: nil, state: nil), note: &note)
        return (response.status, try JSONValue(parsing: response.body)["message"]?.stringValue)
    }

    @Test func onlyWhatIsTooLargeIsToldSo() async throws {
        #expect(try await answer(CommandTooLarge()).status == 413)
        #expect(try await answer(UnknownCommand(type: "x")).status == 500)
        #expect(try await answer().status == 500)
    }

    @Test(arguments: [
        ("a", true), ("a key with spaces", true), ("~", true), (String(repeating: "k", count: 255), true),
        (String(repeating: "k", count: 256), false), ("", false), ("a\tb", false), ("\u{e9}", false),
    ])
    func idempotencyKeys(_ row: (key: String, isTaken: Bool)) async throws {
        let (status, message) = try await answer(key: row.key)
        #expect(status == (row.isTaken ? 500 : 400))
        if !row.isTaken { #expect(message == "Idempotency-Key must be 1 to 255 printable ASCII characters.") }
    }
}
