// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import HTTPTypes

/// Lets browsers on other origins call (facts/idsync.md 5.2). Credentials that a browser adds by itself are not used,
/// so every origin may.
enum CORS {
    static let preflight = APIResponse(
        status: 204,
        headers: [
            .accessControlAllowOrigin: "*", .accessControlAllowMethods: "GET, POST",
            .accessControlAllowHeaders:
                "authorization, content-type, date, idempotency-key, prefer, traceparent, tracestate, x-mp-key, x-mp-signature",
            .accessControlMaxAge: "86400",
        ])

    static func allow(_ response: inout APIResponse) {
        response.headers[.accessControlAllowOrigin] = "*"
        response.headers[.accessControlExposeHeaders] =
            "Preference-Applied, Retry-After, X-MP-Max-Age, X-MP-Trace-Id, X-Request-Id, X-mp-rate-limit-exceeded, "
            + "X-mp-rate-limit-percentage-used"
    }
}
