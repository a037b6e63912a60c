// SPDX-License-Identifier: Apache-2.0

import Contracts
import Logging
import Runtime

/// What the access log says about a request: no path with ids, no body, no credential.
struct AccessNote: Sendable {
    var ref = ""
    var app: String?
    var keyID: String?
    /// Why there was no result.
    var code: String?
    /// The client's address, where the log may have it.
    var client: String?
    /// Of the app that the request is for, as far as it is known. Not in the log.
    var settings: GatewaySettings?

    func metadata(
        method: String, route: String, status: Int, duration: Duration, trace: TraceContext
    ) -> Logger.Metadata {
        var metadata: Logger.Metadata = [
            "method": "\(method)", "route": "\(route)", "status": "\(status)",
            "ms": "\(duration.inMilliseconds)", "trace": "\(trace.id)",
        ]
        if !ref.isEmpty { metadata["ref"] = "\(ref)" }
        if let app { metadata["app"] = "\(app)" }
        if let keyID { metadata["key"] = "\(keyID)" }
        if let code { metadata["code"] = "\(code)" }
        if let client { metadata["client"] = "\(client)" }
        return metadata
    }
}
