// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import HTTPTypes
import Hummingbird
import Logging
import Metrics
import NIOHTTP1

/// Answers every request of the API's port: static ones itself, the others through ``API``. Writes the access log.
struct GatewayResponder: HTTPResponder {
    typealias Context = BasicRequestContext

    let api: API
    let bodies: BodyReader
    let logger: Logger

    func respond(to request: Request, context: BasicRequestContext) async throws -> Response {
        let start = ContinuousClock.now
        let trace = TraceContext(parent: request.header("traceparent"), state: request.header("tracestate"))
        var note = AccessNote()
        let (route, response) = try await answer(request, trace, &note)
        let name = route?.template ?? "other"
        let duration = ContinuousClock.now - start
        logger.info(
            "request",
            metadata: note.metadata(
                method: Self.name(request.method), route: name, status: response.status, duration: duration,
                trace: trace))
        measure(name, response.status, duration)
        return Response(
            status: .init(code: response.status), headers: response.headers,
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: response.body)))
    }

    private func answer(
        _ request: Request, _ trace: TraceContext, _ note: inout AccessNote
    ) async throws -> (Route?, APIResponse) {
        let routes = Route.at(request.uri.path)
        if request.method == .options, routes.contains(where: \.isForBrowsers) { return (routes.first, CORS.preflight) }
        guard let route = routes.first(where: { $0.method == request.method.rawValue }) else {
            return (routes.first, await refused(request, routes))
        }
        var response: APIResponse
        switch route {
        case .openAPI:
            response = APIResponse(
                status: 200, headers: [.contentType: "application/json"], body: Array(OpenAPIDocument.text.utf8))
        default:
            response = try await answer(request, route, trace, &note)
            response.headers[.cacheControl] = "no-store"
        }
        if route.isForBrowsers { CORS.allow(&response) }
        return (route, response)
    }

    private func answer(
        _ request: Request, _ route: Route, _ trace: TraceContext, _ note: inout AccessNote
    ) async throws -> APIResponse {
        var response: APIResponse
        do {
            let body = try await bodies.read(request)
            if route == .events { return APIResponse(status: 202) }
            let apiRequest = APIRequest(
                method: request.method.rawValue, path: request.uri.path, query: request.uri.query,
                headers: request.headers, body: body)
            response = await api.respond(to: apiRequest, route: route, trace: trace, note: &note)
        } catch let failure as APIFailure {
            note.ref = CommandID.random()
            note.code = failure.code
            response = ErrorFormat.response(failure, surface: route.surface, ref: note.ref)
            // The rest of the body is not wanted.
            response.headers[.connection] = "close"
        }
        response.set("X-Request-Id", note.ref)
        if route.surface == .sync || route.surface == .alias { response.set("X-MP-Trace-Id", trace.id) }
        return response
    }

    /// No such path, or not with this method.
    private func refused(_ request: Request, _ routes: [Route]) async -> APIResponse {
        guard !routes.isEmpty else {
            let failure = APIFailure(404, "NO_SUCH_ENDPOINT", "There is no endpoint with this path.")
            return ErrorFormat.response(failure, surface: .own, ref: CommandID.random())
        }
        let failure = APIFailure(405, "METHOD_NOT_ALLOWED", "This endpoint has another method; see Allow.")
        var response = ErrorFormat.response(failure, surface: .own, ref: CommandID.random())
        response.headers[.allow] = routes.map(\.method).joined(separator: ", ")
        return response
    }

    private func measure(_ route: String, _ status: Int, _ duration: Duration) {
        Counter(label: "gateway_requests", dimensions: [("route", route), ("status", String(status))]).increment()
        let (seconds, attoseconds) = duration.components
        Metrics.Timer(label: "gateway_request_duration", dimensions: [("route", route)])
            .recordNanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }

    /// Methods are free text; what the log shows is not.
    private static func name(_ method: HTTPRequest.Method) -> String {
        let known: [HTTPRequest.Method] = [.get, .head, .post, .put, .delete, .options, .patch]
        return known.contains(method) ? method.rawValue : "other"
    }
}

extension Request {
    fileprivate func header(_ name: String) -> String? { HTTPField.Name(name).flatMap { headers[$0] } }
}
