// SPDX-License-Identifier: Apache-2.0

import Hummingbird

/// Answers the three paths of the health server, to GET and HEAD; everything else is 404. Holds no state.
struct HealthResponder: HTTPResponder {
    typealias Context = BasicRequestContext

    let health: @Sendable () -> HealthReport
    let metrics: @Sendable () -> String

    func respond(to request: Request, context: BasicRequestContext) async throws -> Response {
        guard request.method == .get || request.method == .head else { return Self.notFound }
        let response =
            switch request.uri.path {
            case "/livez": Self.probe(health().live)
            case "/readyz": Self.probe(health().ready)
            case "/metrics": Self.response(.ok, Array(metrics().utf8), type: PrometheusRegistry.contentType)
            default: Self.notFound
            }
        return request.method == .head ? response.createHeadResponse() : response
    }

    private static func probe(_ checks: [HealthCheck]) -> Response {
        let ok = checks.allSatisfy(\.ok)
        let body = ok ? Array("{\"status\":\"ok\"}".utf8) : unavailable(checks)
        return response(ok ? .ok : .serviceUnavailable, body, type: "application/json")
    }

    /// All checks are listed, not only the failed ones: what still works is half of a diagnosis.
    private static func unavailable(_ checks: [HealthCheck]) -> [UInt8] {
        var body = Array("{\"status\":\"unavailable\",\"checks\":[".utf8)
        for (index, check) in checks.enumerated() {
            if index > 0 { body.append(UInt8(ascii: ",")) }
            body += "{\"name\":".utf8
            JSONText.append(check.name, to: &body)
            body += ",\"ok\":\(check.ok)".utf8
            if let detail = check.detail {
                body += ",\"detail\":".utf8
                JSONText.append(detail, to: &body)
            }
            body.append(UInt8(ascii: "}"))
        }
        body += "]}".utf8
        return body
    }

    private static var notFound: Response {
        response(.notFound, Array("{\"status\":\"not found\"}".utf8), type: "application/json")
    }

    private static func response(_ status: HTTPResponse.Status, _ body: [UInt8], type: String) -> Response {
        // A cached answer of a probe is a wrong answer.
        let headers: HTTPFields = [.contentType: type, .cacheControl: "no-store"]
        return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
    }
}
