// SPDX-License-Identifier: Apache-2.0

import Contracts

/// The types of problems (RFC 9457): one for each code, told in `components.x-problems` of openapi.json, which the
/// gateway serves; a test compares the two.
enum Problems {
    /// The gateway's own codes. Those of services are ``ReasonCode``.
    static let own = [
        "ORIGIN_NOT_ALLOWED": "Pages of this origin cannot call.",
        "NO_SUCH_ENDPOINT": "There is no endpoint with this path.",
        "METHOD_NOT_ALLOWED": "This endpoint does not support this method.",
        "METHOD_NOT_IMPLEMENTED": "There is no such method.",
        "EXPECTATION_FAILED": "The request expects what this gateway does not do.",
        "REQUEST_TOO_LARGE": "The request is larger than this gateway accepts.",
        "UNSUPPORTED_ENCODING": "The body has an encoding that this gateway does not read.",
        "TOO_MANY_REQUESTS_IN_FLIGHT": "Too many requests are waiting for an answer.",
        "SERVICE_UNAVAILABLE": "The gateway cannot use its message bus at the moment.",
        "REPLY_TIMEOUT": "No answer came in time.",
    ]

    /// What the type is about, the same for every problem of the type; `nil` for codes of later services.
    static func title(_ code: String) -> String? { own[code] ?? ReasonCode(rawValue: code)?.defaultMessage }

    /// The URI of the type, relative to the gateway's address.
    static func type(_ code: String) -> String { "/openapi.json#/components/x-problems/\(code)" }
}
