// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Gateway
@testable import Observability

@Suite struct RequestMetricsTests {
    @Test func aRequestIsNamedByItsRouteAndNeverByItsPath() throws {
        let registry = PrometheusRegistry()
        let metrics = RequestMetrics(scheme: "https", factory: registry)
        let route = try #require(Route.at("/v2/users/hush-install/link", .api, and: []).first)
        metrics.answered("POST", route: route, 200, took: .milliseconds(20))
        metrics.answered("POST", route: route, 504, took: .seconds(8))
        metrics.answered("other", route: nil, 404, took: .zero)
        let text = registry.exposition()
        let lines = text.split(separator: "\n").filter { $0.hasPrefix("http_") && $0.contains("_count{") }
        func line(_ start: String, _ status: Int, _ route: String) -> Substring {
            "http_server_request_duration_seconds_count{\(start)http_response_status_code=\"\(status)\",\(route)url_scheme=\"https\"} 1"
        }
        let method = "http_request_method=\"POST\","
        let path = "http_route=\"/v2/users/{install_id}/link\","
        #expect(lines.count == 3)
        #expect(lines.contains(line(method, 200, path)))
        #expect(lines.contains(line("error_type=\"504\",\(method)", 504, path)))
        #expect(lines.contains(line("http_request_method=\"_OTHER\",", 404, "")))
        #expect(!text.contains("hush"))
    }
}
