// SPDX-License-Identifier: Apache-2.0

import Contracts
import Metrics
import Observability

/// The time of requests under the name of OpenTelemetry's semantic conventions (docs/operations.md "Under OpenTelemetry's
/// names"). As in a span, no path stands in it.
struct RequestMetrics: Sendable {
    let scheme: String
    var factory: any MetricsFactory = MetricsSystem.factory

    /// - Parameter method: of those that are known, else `other`.
    func answered(_ method: String, route: Route?, _ status: Int, took: Duration) {
        Metrics.Timer(
            label: SemanticNames.requestDuration,
            dimensions: [
                (SemanticNames.httpMethod, SemanticNames.method(method)),
                (SemanticNames.httpRoute, route?.endpoint.path.text ?? ""), (SemanticNames.scheme, scheme),
                (SemanticNames.httpStatus, String(status)),
                (SemanticNames.errorType, status >= 500 ? String(status) : ""),
            ], factory: factory
        ).recordNanoseconds(took.inNanoseconds)
    }
}

extension SemanticNames {
    /// - Parameter method: as the log has it: of those that are known, else `other`.
    static func method(_ method: String) -> String { method == "other" ? otherMethod : method }
}
