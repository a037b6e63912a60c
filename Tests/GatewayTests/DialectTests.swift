// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import HTTPTypes
import Runtime
import Testing
import WireJSON

@testable import Gateway

@Suite struct DialectTests {
    private func object(_ text: String) throws -> JSONObject {
        try #require(JSONValue(parsing: Array(text.utf8)).objectValue)
    }

    @Test(arguments: [
        (#"{"previous_mpid":"-7"}"#, "-7"), (#"{"previous_mpid":9007199254740993}"#, "9007199254740993"),
        (#"{"previous_mpid":-9223372036854775808}"#, "-9223372036854775808"), (#"{"previous_mpid":null}"#, nil),
        (#"{"previous_mpid":0}"#, nil), (#"{"previous_mpid":""}"#, nil), ("{}", nil),
    ])
    func mpids(_ row: (body: String, expected: String?)) throws {
        let data = try IdentityCalls.person(RequestContent(id: "", body: object(row.body)))
        #expect(data["previousMPID"]?.stringValue == row.expected)
        #expect((data["previousMPID"] == nil) == (row.expected == nil))
    }

    @Test func absentMembersAreNotNull() throws {
        let body = try object(#"{"context":null,"environment":null,"request_timestamp_ms":"x"}"#)
        let data = try IdentityCalls.person(RequestContent(id: "", body: body))
        #expect(data.objectValue?.map(\.name) == ["deviceId", "knownIdentities"])
    }

    @Test(arguments: [
        (#"{"device_application_stamp":"d","ios_idfv":"i"}"#, "d"), (#"{"ios_idfv":"i","email":"e"}"#, "ios_idfv:i"),
        (#"{"device_application_stamp":null,"push_token":"p"}"#, "push_token:p"),
        // A stamp that reads like another device's id names no other device.
        (#"{"device_application_stamp":"ios_idfv:i"}"#, "device_application_stamp:ios_idfv:i"),
        (
            #"{"device_application_stamp":"device_application_stamp:ios_idfv:i"}"#,
            "device_application_stamp:device_application_stamp:ios_idfv:i"
        ), (#"{"device_application_stamp":"request:x"}"#, "device_application_stamp:request:x"),
        (#"{"device_application_stamp":"app:x"}"#, "app:x"), (#"{"device_application_stamp":"ios_idfv"}"#, "ios_idfv"),
        (#"{"ios_idfa":"00000000-0000-0000-0000-000000000000","push_token":"p"}"#, "push_token:p"),
    ])
    func devices(_ row: (identities: String, device: String)) throws {
        #expect(IdentityCalls.deviceID(try object(row.identities)) == row.device)
    }

    @Test func aDeviceIDAlwaysFits() throws {
        for type in ["device_application_stamp", "ios_idfv", "email"] {
            let long = JSONObject([(type, .string(String(repeating: "é", count: 700)))])
            #expect((1...255).contains(IdentityCalls.deviceID(long).utf8.count))
        }
        #expect(IdentityCalls.deviceID([:]).hasPrefix("request:"))
    }

    @Test func ownWordsBecomeTheirs() {
        #expect(Dialect.linking.translated("data.externalId is blocked.") == "external_id is blocked.")
        #expect(Dialect.own.translated("data.device.kind: wrong") == "device.kind: wrong")
        #expect(Dialect.identity.translated("data.knownIdentities.x: wrong") == "known_identities.x: wrong")
    }

    @Test(arguments: [Dialect.identity, .alias])
    func noBodyWithoutAccess(_ dialect: Dialect) {
        for status in [401, 403] {
            let response = dialect.response(APIFailure(status, "X", "secret"), ref: "r")
            #expect(response.status == status && response.body.isEmpty)
        }
    }

    @Test func eachProblemHasItsType() throws {
        func problem(_ code: String) throws -> JSONObject {
            let response = Dialect.own.response(APIFailure(400, code, "what is wrong here"), ref: "r")
            return try #require(JSONValue(parsing: response.body).objectValue)
        }
        let known = try problem("NO_USER")
        #expect(known["type"] == "/openapi.json#/components/x-problems/NO_USER")
        #expect(known["title"] == "There is no user on this install." && known["detail"] == "what is wrong here")
        #expect(try problem("REPLY_TIMEOUT")["type"] == "/openapi.json#/components/x-problems/REPLY_TIMEOUT")
        #expect(try problem("OF_TOMORROW")["type"] == "about:blank")
    }

    @Test func aLimitThatWasReachedIsTold() throws {
        let quota = RequestLimits.Quota(limit: .address, rate: .init(perSecond: 50, burst: 210), seconds: 3)
        for dialect in [Dialect.linking, .own, .identity, .alias] {
            let headers = dialect.response(.throttled(quota), ref: "r").headers
            #expect(headers[.retryAfter] == "3")
            #expect(headers[try #require(HTTPField.Name("RateLimit-Policy"))] == #""address";q=210;w=5"#)
            #expect(headers[try #require(HTTPField.Name("RateLimit"))] == #""address";r=0;t=3"#)
        }
    }

    @Test func everyErrorIsJSON() throws {
        for dialect in [Dialect.linking, .own, .identity, .alias] {
            for status in [400, 404, 409, 413, 429, 500, 503, 504] {
                let failure = APIFailure(status, "CODE", "a \"message\"", retryAfter: 7)
                let response = dialect.response(failure, ref: "r")
                let body = try #require(JSONValue(parsing: response.body).objectValue)
                #expect(!body.isEmpty)
                #expect(response.headers[.retryAfter] == "7")
            }
        }
    }
}
