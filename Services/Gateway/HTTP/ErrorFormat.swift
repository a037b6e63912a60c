// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import WireJSON

/// Writes a failure the way the clients of each surface read it.
enum ErrorFormat {
    /// - Parameter ref: names the request for support: the command's id when there is a command.
    static func response(_ failure: APIFailure, surface: Surface, ref: String) -> APIResponse {
        var response: APIResponse
        switch surface {
        case .linking: response = json(failure.status, linking(failure, ref))
        case .own: response = json(failure.status, problem(failure, ref), type: "application/problem+json")
        case .sync, .alias:
            // The vendor answers these two without a body; origins are ours.
            response =
                failure.status == 401 || failure.status == 403 && failure != .originNotAllowed
                ? APIResponse(status: failure.status)
                : json(failure.status, sync(failure, ref, isAlias: surface == .alias))
        }
        if let seconds = failure.retryAfter { response.headers[.retryAfter] = String(seconds) }
        // Services limit devices and login identities; the message names the one.
        if failure.status == 429, surface == .sync || surface == .alias {
            response.set("X-mp-rate-limit-exceeded", failure.limit == .key ? "app" : "user")
        }
        if failure.status == 401 {
            response.headers[.wwwAuthenticate] =
                surface == .sync || surface == .alias ? #"Basic realm="identitybus""# : "Bearer"
        }
        return response
    }

    static func json(_ status: Int, _ value: JSONValue, type: String = "application/json; charset=utf-8") -> APIResponse
    {
        APIResponse(status: status, headers: [.contentType: type], body: value.serialized())
    }

    /// facts/linking-and-verification.md A2.1.
    private static func linking(_ failure: APIFailure, _ ref: String) -> JSONValue {
        ["message": .string(failure.message), "errorCode": .string(failure.code), "ref": .string(ref)]
    }

    /// With the type `about:blank` the title is the status in words (RFC 9457).
    private static let titles = [
        400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
        409: "Conflict", 410: "Gone", 413: "Content Too Large", 415: "Unsupported Media Type",
        429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable",
        504: "Gateway Timeout",
    ]

    /// RFC 9457.
    private static func problem(_ failure: APIFailure, _ ref: String) -> JSONValue {
        [
            "type": "about:blank", "title": .string(titles[failure.status] ?? "Error"),
            "status": .number(JSONNumber(failure.status)), "detail": .string(failure.message),
            "code": .string(failure.code), "ref": .string(ref),
        ]
    }

    /// Both spellings: browsers read `Errors`, Android reads `errors` (facts/idsync.md 1.5). Alias is read flat as well.
    private static func sync(_ failure: APIFailure, _ ref: String, isAlias: Bool) -> JSONValue {
        let code = JSONValue.string(syncCode(failure.code, isAlias: isAlias))
        let message = JSONValue.string(failure.message)
        let list: JSONValue = [["code": code, "message": message]]
        var object: JSONObject = [
            "Errors": list, "errors": list, "ErrorCode": code, "StatusCode": .number(JSONNumber(failure.status)),
            "RequestId": .string(ref),
        ]
        if isAlias {
            object["code"] = code
            object["message"] = message
        }
        return .object(object)
    }

    /// The vendor has no word of its own for a request of the wrong form but these.
    private static func syncCode(_ code: String, isAlias: Bool) -> String {
        guard code == "INVALID_REQUEST" else { return code }
        return isAlias ? "ALIAS_ERROR" : "VALIDATION_ERROR"
    }
}
