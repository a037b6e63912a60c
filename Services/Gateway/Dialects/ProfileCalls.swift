// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import WireJSON

/// The identity vendor's words about profiles (F45, F46). What it keeps and we do not is empty.
enum ProfileCalls {
    /// What may be asked for, and what stands there when we have none of it.
    private static let others: [(name: String, none: JSONValue)] = [
        ("user_attributes", [:]), ("audience_memberships", []), ("attribution", .null), ("partner_identities", []),
    ]
    private static let user = "user_identities"
    private static let device = "device_identities"

    static func mpid(_ text: String) throws(APIFailure) -> MPID {
        guard let mpid = MPID(text) else {
            throw .invalid("The MPID in the path must be a signed 64-bit integer other than 0.")
        }
        return mpid
    }

    @Sendable static func erase(_ content: RequestContent) throws(APIFailure) -> EraseProfile {
        EraseProfile(mpid: try mpid(content.id))
    }

    @Sendable static func readErasure(_ content: RequestContent) throws(APIFailure) -> GetProfileErasure {
        GetProfileErasure(mpid: try mpid(content.id))
    }

    /// Where the certificate is.
    @Sendable static func erasure(_ content: RequestContent) -> String? { "/v1/profiles/\(content.id)/erasure" }

    /// - Throws: `INVALID_REQUEST` when it does not say what the answer shall have.
    static func check(_ query: Query) throws(APIFailure) {
        let known = [device, user] + others.map(\.name)
        let fields = fields(query)
        guard !fields.isEmpty, fields.allSatisfy(known.contains) else {
            throw .invalid("fields must be some of \(known.joined(separator: ", ")), with commas between them.")
        }
    }

    private static func fields(_ query: Query) -> [String] {
        (query[.fields] ?? "").split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
    }

    /// The profile with this identity.
    @Sendable static func named(_ content: RequestContent) throws(APIFailure) -> JSONValue {
        try check(content.query)
        guard let identity = content.body["identity"]?.objectValue else {
            throw .invalid("identity must be an object.")
        }
        guard let type = identity["type"]?.stringValue else { throw .invalid("identity.type must be a string.") }
        let ours = IdentityType.allCases.first { word($0) == type }?.rawValue ?? type
        return ["identity": ["type": .string(ours), "value": identity["value"] ?? .null]]
    }

    @Sendable static func profile(_ outcome: Endpoint.Outcome) -> APIResponse {
        let result = outcome.result
        var told: JSONObject = [
            "mpid": number(result["mpid"]), "created_timestamp_ms": milliseconds(result["firstSeen"]),
            "last_stored_timestamp_ms": milliseconds(result["lastSeen"]),
            "is_opted_out": result["isRestricted"] ?? false, "limit_ad_tracking": .null,
        ]
        let fields = fields(outcome.query)
        let identities = result["identities"]?.objectValue ?? [:]
        if fields.contains(device) { told[device] = list(identities) { $0.isDevice } }
        if fields.contains(user) { told[user] = list(identities) { !$0.isDevice } }
        for other in others where fields.contains(other.name) { told[other.name] = other.none }
        return .json(200, .object(told))
    }

    private static func list(_ identities: JSONObject, _ isMeant: (IdentityType) -> Bool) -> JSONValue {
        .array(
            identities.flatMap { member -> [JSONValue] in
                guard let type = IdentityType(rawValue: member.name), isMeant(type) else { return [] }
                return (member.value.arrayValue ?? []).map { value in
                    ["type": .string(word(type)), "encoding": "none", "value": value]
                }
            })
    }

    private static func number(_ mpid: JSONValue?) -> JSONValue {
        (mpid?.stringValue).flatMap { Int64($0) }.map { .number(JSONNumber($0)) } ?? .null
    }

    private static func milliseconds(_ time: JSONValue?) -> JSONValue {
        (time?.stringValue).flatMap { Timestamp(rfc3339: $0) }.map { .number(JSONNumber($0.milliseconds)) } ?? .null
    }

    /// A type as this API writes it (F46).
    static func word(_ type: IdentityType) -> String {
        switch type.rawValue {
        case "customerid": "customer_id"
        case "facebookcustomaudienceid": "facebook_custom_audience_id"
        case "android_aaid": "google_advertising_id"
        case "android_uuid": "android_id"
        case let name where name.hasPrefix("other") && name != "other": "other_id_\(name.dropFirst(5))"
        case let name: name
        }
    }
}
