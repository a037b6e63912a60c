// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import HTTPTypes
import Runtime

/// Lets browsers on other origins call (F41). Credentials that a browser adds by itself are not used,
/// so every origin may, unless the app names its own.
enum CORS {
    /// - Parameter settings: of the app that the path names; `nil` when it names none. Then the request itself is refused.
    static func preflight(origin: String?, _ settings: GatewaySettings?) -> APIResponse {
        guard settings?.admits(origin: origin) != false else {
            var response = Dialect.own.response(.originNotAllowed, ref: CommandID.random())
            response.headers[.vary] = "Origin"
            return response
        }
        var response = APIResponse(
            status: 204,
            headers: [
                .accessControlAllowMethods: "GET, POST",
                .accessControlAllowHeaders:
                    "authorization, content-type, date, idempotency-key, prefer, traceparent, tracestate, x-mp-key, "
                    + "x-mp-signature",
                .accessControlMaxAge: "86400",
            ])
        name(origin, settings, in: &response)
        return response
    }

    /// - Parameter settings: of the app that the request is for, as far as it is known.
    static func allow(_ response: inout APIResponse, origin: String?, _ settings: GatewaySettings?) {
        name(origin, settings, in: &response)
        response.headers[.accessControlExposeHeaders] =
            "Preference-Applied, Retry-After, X-MP-Max-Age, X-MP-Trace-Id, X-Request-Id, X-mp-rate-limit-exceeded, "
            + "X-mp-rate-limit-percentage-used"
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
