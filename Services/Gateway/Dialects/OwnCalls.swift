// SPDX-License-Identifier: Apache-2.0

import Contracts
import WireJSON

/// Our own words: those of the commands and results, and problems as RFC 9457 writes them.
enum OwnCalls {
    static let memberNames = [("data.", "")]

    /// The body's members that the command has.
    static func members(_ names: String...) -> @Sendable (RequestContent) -> JSONValue {
        { content in .object(content.only(names)) }
    }

    /// The same, about the install in the path.
    static func install(_ names: String...) -> @Sendable (RequestContent) -> JSONValue {
        { content in
            let members = content.only(names).map { ($0.name, $0.value) }
            return .object(JSONObject([("installId", .string(content.id))] + members))
        }
    }

    @Sendable static func answer(_ outcome: Endpoint.Outcome) -> APIResponse {
        .json(outcome.isPending ? 202 : 200, .object(outcome.result))
    }

    /// With the type `about:blank` the title is the status in words.
    private static let titles = [
        400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
        409: "Conflict", 410: "Gone", 413: "Content Too Large", 415: "Unsupported Media Type",
        429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable",
        504: "Gateway Timeout",
    ]

    static func failure(_ failure: APIFailure, _ ref: CommandID) -> APIResponse {
        .json(
            failure.status,
            [
                "type": "about:blank", "title": .string(titles[failure.status] ?? "Error"),
                "status": .number(JSONNumber(failure.status)), "detail": .string(failure.message),
                "code": .string(failure.code), "ref": .string(ref.text),
            ], type: "application/problem+json")
    }
}
