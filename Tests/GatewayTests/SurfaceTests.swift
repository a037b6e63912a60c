// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import Runtime
import Testing
import WireJSON

@testable import Gateway

@Suite struct SurfaceTests {
    private func object(_ text: String) throws -> JSONObject {
        try #require(JSONValue(parsing: Array(text.utf8)).objectValue)
    }

    @Test(arguments: [
        (#"{"previous_mpid":"-7"}"#, "-7"), (#"{"previous_mpid":9007199254740993}"#, "9007199254740993"),
        (#"{"previous_mpid":-9223372036854775808}"#, "-9223372036854775808"), (#"{"previous_mpid":null}"#, nil),
        (#"{"previous_mpid":0}"#, nil), (#"{"previous_mpid":""}"#, nil), ("{}", nil),
    ])
    func mpids(_ row: (body: String, expected: String?)) throws {
        let draft = try SyncSurface.command(.login, object(row.body))
        #expect(draft.data.objectValue?["previousMPID"]?.stringValue == row.expected)
        #expect((draft.data.objectValue?["previousMPID"] == nil) == (row.expected == nil))
    }

    @Test func absentMembersAreNotNull() throws {
        let draft = try SyncSurface.command(.identify, object(#"{"context":null,"environment":null}"#))
        #expect(draft.data.objectValue?.map(\.name) == ["deviceId", "knownIdentities"])
    }

    @Test(arguments: [
        (#"{"device_application_stamp":"d","ios_idfv":"i"}"#, "d"), (#"{"ios_idfv":"i","email":"e"}"#, "ios_idfv:i"),
        (#"{"device_application_stamp":null,"push_token":"p"}"#, "push_token:p"),
        (#"{"ios_idfa":"00000000-0000-0000-0000-000000000000","push_token":"p"}"#, "push_token:p"),
    ])
    func devices(_ row: (identities: String, device: String)) throws {
        #expect(SyncSurface.deviceID(try object(row.identities)) == row.device)
    }

    @Test func aDeviceIDAlwaysFits() throws {
        for type in ["device_application_stamp", "ios_idfv", "email"] {
            let long = JSONObject([(type, .string(String(repeating: "é", count: 700)))])
            #expect((1...255).contains(SyncSurface.deviceID(long).utf8.count))
        }
        #expect(SyncSurface.deviceID([:]).hasPrefix("request:"))
    }

    @Test func ownWordsBecomeTheirs() {
        #expect(Route.authCode.translated("data.externalId is blocked.") == "external_id is blocked.")
        #expect(Route.createUser.translated("data.device.kind: wrong") == "device.kind: wrong")
        #expect(
            Route.sync(.login).translated("data.knownIdentities.x: wrong") == "known_identities.x: wrong")
    }

    @Test(arguments: [Surface.sync, .alias])
    func noBodyWithoutAccess(_ surface: Surface) {
        for status in [401, 403] {
            let response = ErrorFormat.response(APIFailure(status, "X", "secret"), surface: surface, ref: "r")
            #expect(response.status == status && response.body.isEmpty)
        }
    }

    @Test func everyErrorIsJSON() throws {
        for surface in [Surface.linking, .own, .sync, .alias] {
            for status in [400, 404, 409, 413, 429, 500, 503, 504] {
                let failure = APIFailure(status, "CODE", "a \"message\"", retryAfter: 7)
                let response = ErrorFormat.response(failure, surface: surface, ref: "r")
                let body = try #require(JSONValue(parsing: response.body).objectValue)
                #expect(!body.isEmpty)
                #expect(response.headers[.retryAfter] == "7")
            }
        }
    }
}
