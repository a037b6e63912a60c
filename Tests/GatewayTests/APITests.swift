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

    private struct Other: Error {}

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
            of: Credential(caller: caller, proof: .held), trace: TraceContext(parent: nil, state: nil), note: &note)
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
