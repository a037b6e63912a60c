// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import HTTPTypes
import Hummingbird
import Logging
import Metrics
import NIOCore
import NIOHTTP1
import Observability
import Runtime
import Synchronization

/// The context of one request: who is at the other end.
struct GatewayContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel
    let peer: IPAddress?

    init(source: ApplicationRequestContextSource) {
        coreContext = .init(source: source)
        channel = source.channel
        peer = source.channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
    }
}

/// Answers every request of one of the gateway's ports: static ones itself, the others through ``API``. Writes the access
/// log.
struct GatewayResponder: HTTPResponder {
    typealias Context = GatewayContext

    let door: Door
    let api: API
    let bodies: BodyReader
    let clients: Clients
    let health: BusHealth
    /// What the admin port shows; `nil` where there is no console.
    let console: ConsoleFiles?
    /// Whether the access log names clients' addresses.
    let logsClients: Bool
    /// `nil` when nobody is told of spans.
    let tracer: OTLPTracer?
    /// `nil` where nobody asks for metrics of OpenTelemetry's names.
    let metrics: RequestMetrics?
    let logger: Logger
    private let proxyWarning = Once()

    init(
        door: Door, api: API, bodies: BodyReader, clients: Clients, health: BusHealth, console: ConsoleFiles? = nil,
        logsClients: Bool, tracer: OTLPTracer? = nil, metrics: RequestMetrics? = nil, logger: Logger
    ) {
        self.metrics = metrics
        self.tracer = tracer
        self.console = console
        self.door = door
        self.api = api
        self.bodies = bodies
        self.clients = clients
        self.health = health
        self.logsClients = logsClients
        self.logger = logger
    }

    func respond(to request: Request, context: GatewayContext) async throws -> Response {
        let start = ContinuousClock.now
        var trace = TraceContext(parent: request.header("traceparent"), state: request.header("tracestate"))
        let span = tracer.map { RequestSpan(request.header("traceparent"), $0) }
        if let span { trace = TraceContext(span.context, state: trace.state) }
        var note = AccessNote()
        let client = client(request, context)
        if logsClients { note.client = client.address?.text }
        let (route, response) = try await answer(request, context, client, trace, &note)
        let name = route?.endpoint.path.text ?? "other"
        let duration = ContinuousClock.now - start
        logger.log(
            level: response.status == 504 ? .warning : .info, "request",
            metadata: note.metadata(
                method: Self.name(request.method), route: name, status: response.status, duration: duration,
                trace: trace))
        measure(name, response.status, duration)
        metrics?.answered(Self.name(request.method), route: route, response.status, took: duration)
        span?.end(Self.name(request.method), route: route, response.status, scheme: api.scheme, note)
        var headers = response.headers
        // Whoever keeps a connection opens the next one elsewhere, and loses none when the port closes.
        if health.isEnding { headers[.connection] = "close" }
        let answer = Response(
            status: .init(code: response.status), headers: headers,
            body: ResponseBody(byteBuffer: body(of: response, route)))
        // Whatever the answer is: a client would read the body of one to HEAD as the next answer.
        return request.method == .head ? answer.createHeadResponse() : answer
    }

    /// The document is one buffer, which is not copied.
    private func body(of response: APIResponse, _ route: Route?) -> ByteBuffer {
        if response.status == 200, case .document? = route?.endpoint.work { return OpenAPIDocument.of(door).buffer }
        return ByteBuffer(bytes: response.body)
    }

    private func client(_ request: Request, _ context: GatewayContext) -> Client {
        let forwarded = HTTPField.Name("X-Forwarded-For").map { request.headers[values: $0] } ?? []
        if clients.isUnnamedProxy(peer: context.peer, forwarded: forwarded), proxyWarning.isFirst() {
            logger.warning(
                """
                requests come through a proxy that GATEWAY_TRUSTED_PROXIES does not name: limits for each client address \
                are not applied, and the log shows the proxy's address
                """,
                metadata: ["event": "proxy.unnamed", "proxy": "\(context.peer?.text ?? "")"])
        }
        return clients.client(peer: context.peer, forwarded: forwarded)
    }

    private func answer(
        _ request: Request, _ context: GatewayContext, _ client: Client, _ trace: TraceContext,
        _ note: inout AccessNote
    ) async throws -> (Route?, APIResponse) {
        // People type the slash behind it.
        let path = console != nil && request.uri.path == "/console/" ? "/console" : request.uri.path
        let routes = Route.at(path, door, and: console == nil ? [] : Endpoint.console)
        let origin = request.headers[.origin]
        if request.method == .options, let response = options(request, routes) {
            return (routes.first, response)
        }
        // HEAD is GET whose body is left away (RFC 9110, 9.3.2).
        let method = request.method == .head ? HTTPRequest.Method.get : request.method
        guard let route = routes.first(where: { $0.endpoint.method == method.rawValue }) else {
            return (routes.first, await refused(request, routes))
        }
        var response: APIResponse
        if case .fixed(let answer) = route.endpoint.work {
            response = answer()
        } else if case .document = route.endpoint.work {
            response = OpenAPIDocument.of(door).response(knownAs: request.headers[.ifNoneMatch])
        } else if case .console = route.endpoint.work {
            guard let file = console?.response(route.id) else { return (nil, await refused(request, [])) }
            response = file
        } else {
            response = try await answer(request, context, route, client, trace, &note)
            response.headers[.cacheControl] = "no-store"
        }
        if route.endpoint.isForBrowsers { CORS.allow(&response, origin: origin, note.settings) }
        return (route, response)
    }

    /// What can be done with a path, or with the server (`*`); browsers are told the rest that they ask for.
    private func options(_ request: Request, _ routes: [Route]) -> APIResponse? {
        if routes.contains(where: \.endpoint.isForBrowsers) {
            var response = CORS.preflight
            response.headers[.allow] = Self.allowed(routes)
            return response
        }
        if !routes.isEmpty { return APIResponse(status: 204, headers: [.allow: Self.allowed(routes)]) }
        let everyMethod = Self.methods(Set(door.endpoints.map(\.method)).sorted())
        return request.uri.path == "*" ? APIResponse(status: 204, headers: [.allow: everyMethod]) : nil
    }

    private static func allowed(_ routes: [Route]) -> String { methods(routes.map(\.endpoint.method)) }

    private static func methods(_ methods: [String]) -> String {
        (methods.flatMap { $0 == "GET" ? ["GET", "HEAD"] : [$0] } + ["OPTIONS"]).joined(separator: ", ")
    }

    private func answer(
        _ request: Request, _ context: GatewayContext, _ route: Route, _ client: Client, _ trace: TraceContext,
        _ note: inout AccessNote
    ) async throws -> APIResponse {
        var apiRequest = APIRequest(
            method: request.method.rawValue, path: request.uri.path, query: request.uri.query,
            headers: request.headers, client: client)
        apiRequest.host = request.head.authority ?? request.header("Host")
        var response: APIResponse
        do {
            if case .reading(let reading) = route.endpoint.work {
                let caller = try api.admit(apiRequest, route, reading, &note)
                try bodies.check(request)
                note.ref = CommandID.random()
                response = try await api.read(reading, caller, apiRequest.query)
                response.set("X-Request-Id", note.ref.text)
                return response
            }
            guard case .command(let command) = route.endpoint.work else {
                // The server passes over the body by itself, whoever sends it.
                try api.limits.takeAddress(client)
                try bodies.check(request)
                return APIResponse(status: 202)
            }
            // A stranger's body is not read.
            var call = Call(request: apiRequest, route: route, command: command)
            let credential = try api.admit(call, &note)
            try bodies.check(request)
            if request.headers[.expect] != nil { context.channel.askForBody() }
            call.request.body = try await bodies.read(request)
            response = await api.respond(to: call, of: credential, trace: trace, note: &note)
        } catch let failure as APIFailure {
            note.ref = CommandID.random()
            note.code = failure.code
            response = route.endpoint.dialect.response(failure, ref: note.ref)
            // The rest of the body is not wanted.
            if BodyReader.isExpected(request) { response.headers[.connection] = "close" }
        }
        response.set("X-Request-Id", note.ref.text)
        if route.endpoint.dialect.isIdentityVendors { response.set("X-MP-Trace-Id", trace.id) }
        return response
    }

    /// No such path, or not with this method.
    private func refused(_ request: Request, _ routes: [Route]) async -> APIResponse {
        guard !routes.isEmpty else {
            let failure = APIFailure(404, "NO_SUCH_ENDPOINT", "There is no endpoint with this path.")
            return Dialect.own.response(failure, ref: CommandID.random())
        }
        let failure = APIFailure(405, "METHOD_NOT_ALLOWED", "This endpoint does not support this method; see Allow.")
        var response = Dialect.own.response(failure, ref: CommandID.random())
        response.headers[.allow] = Self.allowed(routes)
        return response
    }

    private func measure(_ route: String, _ status: Int, _ duration: Duration) {
        Counter(label: "gateway_requests", dimensions: [("route", route), ("status", String(status))]).increment()
        Metrics.Timer(label: "gateway_request_duration", dimensions: [("route", route)])
            .recordNanoseconds(duration.inNanoseconds)
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

/// Says "yes" once.
private final class Once: Sendable {
    private let isUsed = Atomic(false)

    func isFirst() -> Bool { isUsed.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged }
}

/// What the access log says about a request: no path with ids, no body, no credential.
struct AccessNote: Sendable {
    var ref: CommandID = ""
    var app: AppID?
    var keyID: KeyID?
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
            "event": "request", "method": "\(method)", "route": "\(route)", "status": .stringConvertible(status),
            "ms": .stringConvertible(duration.inMilliseconds), "trace": "\(trace.id)",
        ]
        if !ref.text.isEmpty { metadata["ref"] = "\(ref)" }
        if let app { metadata["app"] = "\(app)" }
        if let keyID { metadata["key"] = "\(keyID)" }
        if let code { metadata["code"] = "\(code)" }
        if let client { metadata["client"] = "\(client)" }
        return metadata
    }
}
