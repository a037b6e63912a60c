// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import WireJSON

/// Our own words: those of the commands and results, and problems as RFC 9457 writes them.
enum OwnCalls {
    static let memberNames = [("data.", "")]

    /// The body's members that the command has.
    static func members(_ names: String...) -> @Sendable (RequestContent) -> JSONValue { members(names) }

    static func members(_ names: [String]) -> @Sendable (RequestContent) -> JSONValue {
        { content in .object(content.only(names)) }
    }

    /// The body's members, and no others: a member that nobody reads is a mistake of whoever wrote it by hand.
    static func exactly(_ names: String...) -> @Sendable (RequestContent) throws(APIFailure) -> JSONValue {
        { content throws(APIFailure) in
            if let other = content.body.members.first(where: { !names.contains($0.name) }) {
                throw .invalid("\(other.name.prefix(64)) is not a member of this request. Nothing was done.")
            }
            return .object(content.body)
        }
    }

    /// The same, about the install in the path.
    static func install(_ names: String...) -> @Sendable (RequestContent) -> JSONValue {
        { content in
            let members = content.only(names).map { ($0.name, $0.value) }
            return .object(JSONObject([("installId", .string(content.id))] + members))
        }
    }

    /// Where the install that the request is about is read.
    @Sendable static func install(_ content: RequestContent) -> String? {
        let id = content.id.isEmpty ? content.body["installId"]?.stringValue ?? "" : content.id
        return id.addingPercentEncoding(withAllowedCharacters: .urlSegment).map { "/sdk/v1/installs/\($0)" }
    }

    /// Where it is read how the erasure of a user goes on.
    @Sendable static func erasure(_ content: RequestContent) -> String? {
        let id = content.id.isEmpty ? content.body["userId"]?.stringValue ?? "" : content.id
        return id.addingPercentEncoding(withAllowedCharacters: .urlSegment).map { "/admin/v1/users/\($0)/erasure" }
    }

    @Sendable static func answer(_ outcome: Endpoint.Outcome) -> APIResponse {
        .json(outcome.isPending ? 202 : 200, .object(outcome.result))
    }

    /// The result, or of a dry run what it would have been and what would have been told.
    @Sendable static func answerOrTrial(_ outcome: Endpoint.Outcome) -> APIResponse {
        guard let tried = outcome.tried else { return answer(outcome) }
        var told: JSONObject = [
            "dryRun": true, "result": .object(outcome.result), "events": .array(tried.events.map(PeopleCalls.told)),
        ]
        told["message"] = tried.message.map { .string($0) }
        return .json(outcome.isPending ? 202 : 200, .object(told))
    }

    static func failure(_ failure: APIFailure, _ ref: CommandID) -> APIResponse {
        let title = Problems.title(failure.code)
        return .json(
            failure.status,
            [
                "type": .string(title == nil ? "about:blank" : Problems.type(failure.code)),
                "title": .string(title ?? "Error"), "status": .number(JSONNumber(failure.status)),
                "detail": .string(failure.message), "code": .string(failure.code), "ref": .string(ref.text),
            ], type: "application/problem+json")
    }
}

extension CharacterSet {
    /// What stands as it is in a part of a path (RFC 3986, `unreserved`).
    fileprivate static let urlSegment = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
}
