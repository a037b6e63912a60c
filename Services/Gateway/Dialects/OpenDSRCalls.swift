// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import WireJSON

/// OpenDSR, in versions 2.0 and 3.0 and as the identity vendor has it (F62 to F64): how privacy tools ask for what data
/// subjects ask for.
enum OpenDSRCalls {
    static let memberNames = [
        ("data.requestId", "subject_request_id"), ("data.kind", "subject_request_type"),
        ("data.identities", "subject_identities"), ("data.groupId", "group_id"),
        ("data.submittedAt", "submitted_time"), ("data.", ""),
    ]
    static let version = "3.0"
    /// The vendor's extension, which other identities and MPIDs stand in.
    private static let vendor = "opendsr.mparticle.com"
    private static let own = "identitybus"
    private static let raw = "raw"

    // MARK: Requests

    @Sendable static func file(_ content: RequestContent) throws(APIFailure) -> JSONValue {
        let body = content.body
        for name in ["regulation", "subject_request_id", "subject_request_type", "submitted_time"]
        where body[name]?.stringValue?.isEmpty != false {
            throw .invalid("\(name) must be a text.")
        }
        if let urls = body["status_callback_urls"], urls != .null, urls.arrayValue?.isEmpty != true {
            throw .invalid("status_callback_urls is not supported: ask for the status.")
        }
        if let asked = body["api_version"], asked != .null, asked != "2.0", asked != "3.0" {
            throw .invalid("api_version must be 2.0 or 3.0.")
        }
        var named = Named()
        try named.add(body["subject_identities"], "subject_identities")
        let extensions = try object(body["extensions"], "extensions")
        let vendors = try object(extensions[vendor], "extensions.\(vendor)")
        try named.add(vendors["subject_identities"], "extensions.\(vendor).subject_identities")
        try named.add(vendors["identities"], "extensions.\(vendor).identities")
        for mpid in vendors["mpids"]?.arrayValue ?? [] { try named.add(mpid: mpid) }
        var data: JSONObject = [
            "requestId": body["subject_request_id"] ?? .null, "kind": body["subject_request_type"] ?? .null,
            "regulation": body["regulation"] ?? .null, "submittedAt": body["submitted_time"] ?? .null,
        ]
        try named.write(to: &data)
        let ours = try object(extensions[own], "extensions.\(own)")
        data["everyHolder"] = ours["every_holder"]
        data["groupId"] = body["group_id"]
        return .object(data)
    }

    /// Whom a request names.
    private struct Named {
        var identities: [(String, JSONValue)] = []
        var mpid: JSONValue?

        /// By type, as version 3.0 has them, or in a list, as version 2.0 does.
        mutating func add(_ value: JSONValue?, _ place: String) throws(APIFailure) {
            guard let value, value != .null else { return }
            if let list = value.arrayValue {
                for one in list {
                    try add(
                        one["identity_type"]?.stringValue, one["identity_value"], one["identity_format"] ?? .null, place
                    )
                }
                return
            }
            for member in try OpenDSRCalls.object(value, place).members {
                if member.name == "mpid" {
                    try add(mpid: member.value["value"] ?? member.value)
                } else {
                    try add(member.name, member.value["value"], member.value["encoding"] ?? .null, place)
                }
            }
        }

        mutating func add(mpid: JSONValue) throws(APIFailure) {
            guard self.mpid == nil || self.mpid == mpid else { throw .invalid("There is more than one MPID.") }
            self.mpid = mpid
        }

        private mutating func add(
            _ word: String?, _ value: JSONValue?, _ encoding: JSONValue, _ place: String
        ) throws(APIFailure) {
            guard let word, let value, value.stringValue != nil else {
                throw .invalid("\(place) must have texts as types and values.")
            }
            guard let type = OpenDSRCalls.type(word) else {
                throw .invalid("\(place): \(word.prefix(40)) is not an identity type; discovery lists them.")
            }
            guard encoding == .null || encoding.stringValue == OpenDSRCalls.raw else {
                throw .invalid("\(place): \(word) must be raw: a digest finds nobody.")
            }
            guard !identities.contains(where: { $0.0 == type.rawValue }) else {
                throw .invalid("\(place): \(word) is given twice.")
            }
            identities.append((type.rawValue, value))
        }

        func write(to data: inout JSONObject) throws(APIFailure) {
            guard mpid == nil || identities.isEmpty else {
                throw .invalid("An MPID is named alone, without other identities.")
            }
            if let mpid {
                data["mpid"] = mpid
            } else {
                guard !identities.isEmpty else { throw .invalid("subject_identities names nobody.") }
                data["identities"] = .object(JSONObject(identities))
            }
        }
    }

    private static func object(_ value: JSONValue?, _ place: String) throws(APIFailure) -> JSONObject {
        guard let value, value != .null else { return [:] }
        guard let object = value.objectValue else { throw .invalid("\(place) must be an object.") }
        return object
    }

    @Sendable static func group(_ content: RequestContent) throws(APIFailure) -> GetRequests {
        guard let group = content.query[.groupID] else { throw .invalid("Say which requests: group_id=…") }
        return GetRequests(groupId: group)
    }

    // MARK: Types

    /// The types of OpenDSR that have another name here.
    private static let words: [(word: String, type: IdentityType)] = [
        ("controller_customer_id", .customerID), ("android_advertising_id", .androidAAID),
        ("android_id", .androidUUID), ("fire_advertising_id", .fireAID), ("ios_advertising_id", .iosIDFA),
        ("ios_vendor_id", .iosIDFV), ("microsoft_advertising_id", .microsoftAID),
        ("roku_advertising_id", .rokuAID),
    ]

    /// The type of ours that a word means.
    static func type(_ word: String) -> IdentityType? {
        words.first { $0.word == word }?.type
            ?? IdentityType(rawValue: word).flatMap { type in words.contains { $0.type == type } ? nil : type }
    }

    static func word(_ type: IdentityType) -> String { words.first { $0.type == type }?.word ?? type.rawValue }

    // MARK: Answers

    /// What can be asked for, and by what.
    @Sendable static func discovery() -> APIResponse {
        .json(
            200,
            [
                "api_version": .string(version),
                "supported_identities": .array(
                    IdentityType.allCases.map(word).sorted().map {
                        ["identity_type": .string($0), "identity_format": .string(raw)]
                    }),
                "supported_subject_request_types": .array(
                    SubjectRequest.Kind.allCases.map { .string($0.rawValue) }),
                "extensions": .object(
                    JSONObject([(own, .object(["status_callback_urls": false, "processor_certificate": false]))])),
            ])
    }

    @Sendable static func filed(_ outcome: Endpoint.Outcome) -> APIResponse {
        let result = outcome.result
        return answer(
            201,
            [
                "controller_id": .string(outcome.asked.app.text),
                "expected_completion_time": result["expectedAt"] ?? .null,
                "received_time": result["receivedAt"] ?? .null,
                "encoded_request": .string(Data(outcome.asked.body).base64EncodedString()),
                "subject_request_id": result["requestId"] ?? .null,
            ], outcome)
    }

    @Sendable static func status(_ outcome: Endpoint.Outcome) -> APIResponse {
        answer(200, .object(status(of: outcome.result, outcome)), outcome)
    }

    @Sendable static func statuses(_ outcome: Endpoint.Outcome) -> APIResponse {
        let all = outcome.result["requests"]?.arrayValue ?? []
        return answer(200, .array(all.map { .object(status(of: $0.objectValue ?? [:], outcome)) }), outcome)
    }

    @Sendable static func cancelled(_ outcome: Endpoint.Outcome) -> APIResponse {
        answer(
            202,
            [
                "controller_id": .string(outcome.asked.app.text),
                "received_time": .string(outcome.asked.now.rfc3339),
                "subject_request_id": outcome.result["requestId"] ?? .null,
            ], outcome)
    }

    private static func status(of result: JSONObject, _ outcome: Endpoint.Outcome) -> JSONObject {
        let id = result["requestId"] ?? .null
        let status = result["status"]?.stringValue ?? ""
        var told: JSONObject = [
            "controller_id": .string(outcome.asked.app.text), "subject_request_id": id,
            "subject_request_type": result["kind"] ?? .null, "group_id": result["groupId"] ?? .null,
            "request_status": .string(status == "inProgress" ? "in_progress" : status),
            "expected_completion_time": result["expectedAt"] ?? .null,
            "received_time": result["receivedAt"] ?? .null, "api_version": .string(version),
        ]
        if status == "completed" {
            told["results_count"] = result["profileCount"] ?? .null
            if let until = result["resultsUntil"]?.stringValue.flatMap({ Timestamp(rfc3339: $0) }),
                outcome.asked.now < until
            {
                told["results_url"] = .string("\(outcome.asked.origin)/v3/requests/\(id.stringValue ?? "")/results")
            }
        }
        let more = ["reason", "heldByOthers", "certificates", "completedAt", "resultsUntil"].compactMap { name in
            result[name].map { (name, $0) }
        }
        if !more.isEmpty { told["extensions"] = .object(JSONObject([(own, .object(JSONObject(more)))])) }
        return told
    }

    private static func answer(_ status: Int, _ value: JSONValue, _ outcome: Endpoint.Outcome) -> APIResponse {
        var response = APIResponse.json(status, value)
        if let host = outcome.asked.host { response.set("X-OpenDSR-Processor-Domain", host) }
        return response
    }

    static func failure(_ failure: APIFailure, _ ref: CommandID) -> APIResponse {
        .json(
            failure.status,
            [
                "error": [
                    "code": .number(JSONNumber(failure.status)), "message": .string(failure.message),
                    "errors": [
                        [
                            "domain": .string(failure.status == 400 ? "Validation" : "Request"),
                            "reason": .string(failure.code), "message": .string(failure.message),
                        ]
                    ],
                    "ref": .string(ref.text),
                ]
            ])
    }

    // MARK: Results

    /// What other services hold of the people whose profiles these are.
    static let ofOthers = Endpoint.FollowUps { result in
        let users = (result["externalIds"]?.arrayValue ?? []).map {
            Endpoint.FollowUps.Question(CommandType(GetLinkedUser.self), ["externalId": $0])
        }
        return users
            + profiles(result).flatMap { profile -> [Endpoint.FollowUps.Question] in
                var questions: [Endpoint.FollowUps.Question] = []
                if let user = profile["userId"] {
                    questions.append(.init(CommandType(GetLinkedUser.self), ["userId": user]))
                }
                for device in profile["devices"]?.arrayValue ?? [] where device["isCurrent"] == true {
                    questions.append(.init(CommandType(GetSession.self), ["deviceId": device["deviceId"] ?? .null]))
                }
                return questions
            }
    } merge: { result, answers in
        var told = result
        let mpids = Set(profiles(result).compactMap { $0["mpid"]?.stringValue })
        // The one whom a profile names may have the external id, too.
        var users: [JSONValue] = []
        for user in answers where user["userId"] != nil && user["installs"] != nil {
            if !users.contains(where: { $0["userId"] == user["userId"] }) { users.append(.object(user)) }
        }
        told["users"] = .array(users)
        // Several people may use one device.
        told["sessions"] = .array(
            answers.filter { $0["mpid"]?.stringValue.map(mpids.contains) == true && $0["deviceId"] != nil }
                .map { .object($0) })
        return told
    }

    private static func profiles(_ result: JSONObject) -> [JSONObject] {
        (result["profiles"]?.arrayValue ?? []).compactMap(\.objectValue)
    }

    @Sendable static func results(_ outcome: Endpoint.Outcome) -> APIResponse {
        let result = outcome.result
        let own = profiles(result).map { profile in
            JSONObject(
                profile.members.filter { !["barriers", "barrierCount", "isErased"].contains($0.name) }
                    .map { ($0.name, $0.value) })
        }
        return answer(
            200,
            [
                "subject_request_id": result["requestId"] ?? .null, "subject_request_type": result["kind"] ?? .null,
                "controller_id": .string(outcome.asked.app.text), "exported_at": .string(outcome.asked.now.rfc3339),
                "profiles": .array(own.map { .object($0) }), "users": result["users"] ?? [],
                "sessions": result["sessions"] ?? [],
            ], outcome)
    }
}
