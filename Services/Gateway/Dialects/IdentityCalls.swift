// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Foundation
import Runtime
import WireJSON

/// The identity vendor's words (F20 to F29). Tolerant where its clients differ.
enum IdentityCalls {
    static let memberNames = [
        ("data.knownIdentities", "known_identities"), ("data.previousMPID", "previous_mpid"),
        ("data.changes", "identity_changes"), ("identityType", "identity_type"), ("newValue", "new_value"),
        ("data.sourceMPID", "data.source_mpid"), ("data.destinationMPID", "data.destination_mpid"),
        ("data.startUnixtimeMs", "data.start_unixtime_ms"), ("data.endUnixtimeMs", "data.end_unixtime_ms"),
        ("data.environment", "environment"), ("data.deviceId", "device_application_stamp"),
        ("data.deviceApplicationStamp", "data.device_application_stamp"),
    ]

    // MARK: Requests

    /// Identify, login, logout and search.
    @Sendable static func person(_ content: RequestContent) throws(APIFailure) -> JSONValue {
        let body = content.body
        let identities = try knownIdentities(body)
        var data: JSONObject = [
            "deviceId": .string(deviceID(identities)), "knownIdentities": .object(identities),
        ]
        data["previousMPID"] = try mpid(body, "previous_mpid").map { .string(String($0)) }
        if let environment = body["environment"], environment != .null { data["environment"] = environment }
        data["requestId"] =
            ["request_id", "requestId", "source_request_id"].lazy
            .compactMap { plain(body[$0], 1...255) }.first
        if let time = body["request_timestamp_ms"], time.int64Value != nil { data["requestTimestampMs"] = time }
        // Clients send back odd ones, such as the text "null"; none is a reason to refuse.
        data["context"] = plain(body["context"], 0...4096)
        return .object(data)
    }

    /// A logout names its device by identities; the vendor refuses one without any (S3).
    @Sendable static func leaving(_ content: RequestContent) throws(APIFailure) -> JSONValue {
        guard try knownIdentities(content.body).members.contains(where: { $0.value != .null }) else {
            throw APIFailure(Rejection(.lookupError))
        }
        return try person(content)
    }

    /// The vendor's word for a dry run. Of the wrong form it is not passed over: the request would be carried out.
    static func isReadOnly(_ body: JSONObject) throws(APIFailure) -> Bool {
        switch body["read_only"] {
        case .none, .null?: return false
        case .bool(let flag)?: return flag
        default: throw .invalid("read_only must be true or false.")
        }
    }

    /// A text of so many bytes that does nothing to a terminal; `nil` for anything else.
    private static func plain(_ value: JSONValue?, _ size: ClosedRange<Int>) -> JSONValue? {
        guard let text = value?.stringValue, size.contains(text.utf8.count),
            !text.hasControlCharacter
        else { return nil }
        return value
    }

    @Sendable static func modify(_ content: RequestContent) throws(APIFailure) -> JSONValue {
        guard let mpid = Int64(content.id), mpid != 0 else {
            throw .invalid("The MPID in the path must be a signed 64-bit integer other than 0.")
        }
        guard case .array(let list)? = content.body["identity_changes"] else {
            throw .invalid("identity_changes must be a list.")
        }
        var changes: [JSONValue] = []
        for (index, element) in list.enumerated() {
            guard let members = element.objectValue, let type = members["identity_type"] else {
                throw .invalid("identity_changes[\(index)] must be an object with identity_type.")
            }
            var change: JSONObject = ["identityType": type]
            change["oldValue"] = members["old_value"]
            change["newValue"] = members["new_value"]
            changes.append(.object(change))
        }
        return ["mpid": .string(String(mpid)), "changes": .array(changes)]
    }

    @Sendable static func alias(_ content: RequestContent) throws(APIFailure) -> JSONValue {
        if let named = content.body["api_key"], named != .null, named != .string(content.id) {
            throw .invalid("api_key must be the API key in the path.")
        }
        guard let request = content.body["data"]?.objectValue else { throw .invalid("data must be an object.") }
        guard let source = try mpid(request, "source_mpid") else { throw .invalid("data.source_mpid is missing.") }
        guard let destination = try mpid(request, "destination_mpid") else {
            throw .invalid("data.destination_mpid is missing.")
        }
        var data: JSONObject = [
            "sourceMPID": .string(String(source)), "destinationMPID": .string(String(destination)),
        ]
        for (theirs, ours) in [
            ("start_unixtime_ms", "startUnixtimeMs"), ("end_unixtime_ms", "endUnixtimeMs"), ("scope", "scope"),
            ("device_application_stamp", "deviceApplicationStamp"),
        ] {
            if let value = request[theirs], value != .null { data[ours] = value }
        }
        return .object(data)
    }

    private static func knownIdentities(_ body: JSONObject) throws(APIFailure) -> JSONObject {
        switch body["known_identities"] {
        case .object(let identities)?: return identities
        case .none, .null?: return [:]
        default: throw .invalid("known_identities must be an object.")
        }
    }

    /// A string or a number, by client; never through a floating-point number. Empty, `null` and 0 count as absent.
    private static func mpid(_ body: JSONObject, _ name: String) throws(APIFailure) -> Int64? {
        let value: Int64?
        switch body[name] {
        case .none, .null?, "": return nil
        case .string(let text)?: value = Int64(text)
        case .number(let number)?: value = number.int64
        default: value = nil
        }
        guard let value else { throw .invalid("\(name) must be a signed 64-bit integer.") }
        return value == 0 ? nil : value
    }

    /// The identity types that name a device, the best first.
    private static let deviceTypes = [
        "device_application_stamp", "ios_idfv", "android_uuid", "amp_id", "roku_aid", "roku_publisher_id",
        "microsoft_publisher_id", "microsoft_aid", "fire_aid", "android_aaid", "ios_idfa", "push_token",
    ]

    /// What the current user is kept for. A request that names no device, as backends send them, is a device of its
    /// own for each set of identities, so that it never moves a real device.
    static func deviceID(_ identities: JSONObject) -> String {
        for type in deviceTypes {
            // A value that names nobody would make one device of all that send it.
            guard let value = identities[type]?.stringValue, !NobodyValues.standard.contains(value) else { continue }
            let id = type == stampType && !looksLikeAnother(value) ? value : "\(type):\(value)"
            return id.utf8.count <= 255 ? id : "\(type):\(digest(.string(value)))"
        }
        return "request:\(digest(.object(identities)))"
    }

    private static let stampType = "device_application_stamp"

    /// Whether a stamp reads like the id of a device that has none: it names the stamp all the same.
    private static func looksLikeAnother(_ stamp: String) -> Bool {
        let word = stamp.prefix { $0 != ":" }
        return word.endIndex != stamp.endIndex && (word == "request" || deviceTypes.contains(String(word)))
    }

    private static func digest(_ value: JSONValue) -> String {
        SHA256.hash(data: value.canonicalBytes()).prefix(16).hex
    }

    // MARK: Responses

    @Sendable static func user(_ outcome: Endpoint.Outcome) -> APIResponse {
        let result = outcome.result
        return .json(
            200,
            [
                "context": result["context"] ?? .null, "mpid": text(result["mpid"]),
                "matched_identities": result["matchedIdentities"] ?? [:],
                "is_ephemeral": result["isEphemeral"] ?? false, "is_logged_in": result["isLoggedIn"] ?? false,
            ])
    }

    /// The same where SDKs ask every time they start, unless the app lets them keep the answer for a while (F42).
    @Sendable static func cachedUser(_ outcome: Endpoint.Outcome) -> APIResponse {
        var response = user(outcome)
        if let age = outcome.settings.maxAgeSeconds { response.set("X-MP-Max-Age", String(age)) }
        return response
    }

    /// Never empty: clients take an empty answer for a failure, and read whether the user is logged in.
    @Sendable static func modified(_ outcome: Endpoint.Outcome) -> APIResponse {
        let changes = (outcome.result["changeResults"]?.arrayValue ?? []).map { change -> JSONValue in
            let members = change.objectValue ?? [:]
            return [
                "identity_type": members["identityType"] ?? .null, "modified_mpid": text(members["modifiedMPID"]),
            ]
        }
        return .json(
            200,
            [
                "mpid": text(outcome.result["mpid"]), "is_logged_in": outcome.result["isLoggedIn"] ?? false,
                "change_results": .array(changes),
            ])
    }

    /// MPIDs are always strings on the wire.
    private static func text(_ value: JSONValue?) -> JSONValue {
        if case .number(let number)? = value { return .string(number.lexeme) }
        return value ?? .null
    }

    // MARK: Failures

    static func failure(_ failure: APIFailure, _ ref: CommandID, isAlias: Bool) -> APIResponse {
        // The vendor answers these two without a body (F27); origins are ours.
        let hasBody = failure.status != 401 && (failure.status != 403 || failure == .originNotAllowed)
        var response =
            hasBody
            ? APIResponse.json(failure.status, errors(failure, ref, isAlias: isAlias))
            : APIResponse(status: failure.status)
        // Services limit devices and login identities; the message names the one.
        if failure.status == 429 { response.set("X-mp-rate-limit-exceeded", failure.limit == .key ? "app" : "user") }
        return response
    }

    /// Both spellings: browsers read `Errors`, Android reads `errors`. Alias is read flat as well (F27).
    private static func errors(_ failure: APIFailure, _ ref: CommandID, isAlias: Bool) -> JSONValue {
        let code = JSONValue.string(code(failure.code, isAlias: isAlias))
        let message = JSONValue.string(failure.message)
        let list: JSONValue = [["code": code, "message": message]]
        var object: JSONObject = [
            "Errors": list, "errors": list, "ErrorCode": code, "StatusCode": .number(JSONNumber(failure.status)),
            "RequestId": .string(ref.text),
        ]
        if isAlias {
            object["code"] = code
            object["message"] = message
        }
        return .object(object)
    }

    /// The vendor has no word of its own for a request of the wrong form but these.
    private static func code(_ code: String, isAlias: Bool) -> String {
        guard code == "INVALID_REQUEST" else { return code }
        return isAlias ? "ALIAS_ERROR" : "VALIDATION_ERROR"
    }
}
