// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import HTTPTypes
import Runtime

/// Lets browsers on other origins call (F41). Credentials that a browser adds by itself are not used,
/// so every origin may, unless the app names its own.
enum CORS {
    /// It shows no credential, so it is told nothing of an app, also where the path names one: from an origin that the app
    /// does not name, the request itself is refused.
    static var preflight: APIResponse {
        APIResponse(
            status: 204,
            headers: [
                .accessControlAllowOrigin: "*", .accessControlAllowMethods: "GET, POST",
                .accessControlAllowHeaders:
                    "authorization, content-encoding, content-type, date, idempotency-key, if-none-match, prefer, "
                    + "traceparent, tracestate, x-mp-key, x-mp-signature",
                .accessControlMaxAge: "86400",
            ])
    }

    /// - Parameter settings: of the app that the request is for, as far as it is known.
    static func allow(_ response: inout APIResponse, origin: String?, _ settings: GatewaySettings?) {
        name(origin, settings, in: &response)
        response.headers[.accessControlExposeHeaders] =
            "ETag, Location, Preference-Applied, RateLimit, RateLimit-Policy, Retry-After, X-MP-Max-Age, X-MP-Trace-Id, "
            + "X-Request-Id, X-mp-rate-limit-exceeded, X-mp-rate-limit-percentage-used"
    }

    private static func name(_ origin: String?, _ settings: GatewaySettings?, in response: inout APIResponse) {
        guard let settings, settings.origins != nil else {
            response.headers[.accessControlAllowOrigin] = "*"
            return
        }
        // Caches keep one answer for each origin.
        response.headers[.vary] = "Origin"
        if let origin, settings.admits(origin: origin) { response.headers[.accessControlAllowOrigin] = origin }
    }
}
