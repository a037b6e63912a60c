// SPDX-License-Identifier: Apache-2.0

public import Contracts
import Hummingbird
import HummingbirdCore
public import Logging
import NIOCore
import NIOPosix
public import ServiceLifecycle

/// What a service knows about itself at one moment.
public struct HealthReport: Sendable, Equatable {
    /// Checks whose failure only a restart can mend. Keep dependencies out: a database outage must not restart
    /// every process.
    public var live: [HealthCheck]
    /// Checks whose failure means: send no work here for now.
    public var ready: [HealthCheck]

    public init(live: [HealthCheck] = [], ready: [HealthCheck] = []) {
        self.live = live
        self.ready = ready
    }

    /// Whether all is well that has to be.
    public var isReady: Bool { ready.allSatisfy { $0.ok || !$0.isRequired } }
}

/// The state of one thing that the service depends on.
public struct HealthCheck: Sendable, Equatable {
    /// A short stable name, such as `database`.
    public var name: String
    public var ok: Bool
    /// What an operator should know, without secrets: the answer is readable for everyone who reaches the port.
    public var detail: String?
    /// Since when it fails.
    public var since: Timestamp?
    /// Whether the process is not ready without it.
    public var isRequired: Bool
    /// How long it fails, while nothing fails that it may be a consequence of, before the log says so. Zero for what is a
    /// cause itself; `nil` for what is never said.
    public var patience: Duration?
    /// For how long it had failed before it could be said that it does.
    public var hasLasted: Duration
    /// The names of the checks that it is a consequence of, while they fail.
    public var after: [String]

    public init(
        name: String, ok: Bool, detail: String? = nil, isRequired: Bool = true, patience: Duration? = .zero,
        hasLasted: Duration = .zero, after: [String] = []
    ) {
        self.name = name
        self.ok = ok
        self.detail = detail
        self.isRequired = isRequired
        self.patience = patience
        self.hasLasted = hasLasted
        self.after = after
    }

    /// Those among the checks of its report that it fails because of, in their order; none when it is well. What is not
    /// known yet, may be a consequence itself, or was well for long when this began to fail, is no cause.
    public func causes(among checks: [HealthCheck]) -> [String] {
        if ok { return [] }
        return checks.filter { cause in
            guard !cause.ok, cause.patience == .zero, after.contains(cause.name) else { return false }
            guard let began = cause.since?.milliseconds, let mine = since?.milliseconds else { return true }
            return began <= mine + Self.slack
        }.map(\.name)
    }

    /// How much later than its consequence a cause may be noticed, in milliseconds.
    private static let slack: Int64 = 10_000
}

/// The HTTP server for operators: `GET /livez`, `/readyz` and `/metrics`.
///
/// Guarantees:
/// - Every JSON answer names the program in its member `identitybus`: by that `identitybus probe` knows that it asks one of
///   ours.
/// - A probe answers 200 when all of its checks are ok that are required (also when there are none) and otherwise 503.
///   `/readyz` always has the list of checks, `/livez` with 503. The report is taken anew for every request.
/// - `run()` throws when the address cannot be bound. It returns after a graceful shutdown, when requests in progress
///   are answered, and gives the port back on every way out.
/// - A client that sends nothing, or no whole request, or does not read its answer, is disconnected after 30 seconds, and
///   sooner when others come; it delays a shutdown by 5 seconds at most. Nor do those keep a probe out who ask without a
///   pause: no connection is closed for another one while it waits for its first answer.
///
/// Threading: sockets are served by one thread of NIO's, which serves nothing else. `health` and `metrics` are called on the concurrent executor
/// and must not block; `onBound` is called once, when connections are accepted.
///
/// A `ServiceGroup` stops its services in reverse order: list this one first, so that probes are answered until the
/// rest has drained.
public struct HealthServer: Service {
    private static let maxConnections = 64

    private let host: String
    private let port: Int
    private let responder: HealthResponder
    private let logger: Logger
    private let onBound: @Sendable (Int) -> Void

    /// Describes the server; nothing is opened before `run()`.
    ///
    /// - Parameters:
    ///   - program: `gateway`, or the service's name.
    ///   - host: The address to listen on. The answers carry no secrets, but are not meant for the world either.
    ///   - port: 0 lets the kernel choose.
    ///   - health: Takes the report of this moment.
    ///   - metrics: Gives the exposition, usually `registry.exposition()`.
    ///   - onBound: Gets the port that was bound.
    public init(
        program: String, host: String = "127.0.0.1", port: Int, health: @escaping @Sendable () -> HealthReport,
        metrics: @escaping @Sendable () -> String, logger: Logger, onBound: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        self.host = host
        self.port = port
        // What it says of its start and its end is said by who started it.
        var quiet = logger
        quiet.logLevel = .critical
        self.logger = quiet
        self.onBound = onBound
        responder = HealthResponder(program: program, health: health, metrics: metrics)
    }

    /// Serves until graceful shutdown or cancellation. To be called once, by a `ServiceGroup`.
    ///
    /// - Throws: ``ListenFailure``.
    public func run() async throws {
        do {
            try await serve()
        } catch let error as IOError {
            throw ListenFailure(error, host: host, port: port, variable: "HTTP_PORT")
        }
    }

    private func serve() async throws {
        let onBound = onBound
        let responder = responder
        try await Application(
            responder: responder,
            // Probes need two or three connections; a leak elsewhere must not use up our descriptors, nor keep probes out.
            server: ClientChannel.server(
                connections: Connections(server: "health", limit: Self.maxConnections, keepsBusy: false),
                timeout: .seconds(30), words: { ("application/json", responder.answer($0.detail)) }),
            configuration: ApplicationConfiguration(
                address: .hostname(host, port: port), backlog: Connections.backlog,
                availableConnectionsDelegate: MaximumAvailableConnections(2 * Self.maxConnections, logger: logger)),
            onServerRunning: { channel in
                await ClientChannel.isRunning(channel)
                if let port = channel.localAddress?.port { onBound(port) }
            },
            eventLoopGroupProvider: .shared(Self.thread),
            logger: logger
        ).run()
    }

    /// Whoever makes room for a new connection has read what the others sent: with two threads a probe was closed by one
    /// before the other had read it. Never shut down, so a connection that is still being dealt with finds its thread.
    private static let thread = MultiThreadedEventLoopGroup(numberOfThreads: 1)
}

/// Answers the three paths of the health server, to GET and HEAD. Holds no state.
struct HealthResponder: HTTPResponder {
    typealias Context = BasicRequestContext

    let program: String
    let health: @Sendable () -> HealthReport
    let metrics: @Sendable () -> String

    func respond(to request: Request, context: BasicRequestContext) async throws -> Response {
        let isRead = request.method == .get || request.method == .head
        let response =
            switch request.uri.path {
            case "/livez" where !isRead, "/readyz" where !isRead, "/metrics" where !isRead: notAllowed
            case "/livez": probe(health().live, isListed: false)
            case "/readyz": probe(health().ready, isListed: true)
            case "/metrics": Self.response(.ok, Array(metrics().utf8), type: PrometheusRegistry.contentType)
            default: Self.json(.notFound, answer("not found"))
            }
        return request.method == .head ? response.createHeadResponse() : response
    }

    private var notAllowed: Response {
        var response = Self.json(.methodNotAllowed, answer("method not allowed"))
        response.headers[.allow] = "GET, HEAD"
        return response
    }

    private func probe(_ checks: [HealthCheck], isListed: Bool) -> Response {
        let ok = checks.allSatisfy { $0.ok || !$0.isRequired }
        if ok, !isListed || checks.isEmpty { return Self.json(.ok, answer("ok")) }
        let list = Self.list(checks)
        return Self.json(ok ? .ok : .serviceUnavailable, answer(ok ? "ok" : "unavailable", list))
    }

    /// All checks are listed, not only the failed ones: what still works is half of a diagnosis.
    private static func list(_ checks: [HealthCheck]) -> [UInt8] {
        var body = Array(",\"checks\":[".utf8)
        for (index, check) in checks.enumerated() {
            if index > 0 { body.append(UInt8(ascii: ",")) }
            body += "{\"name\":".utf8
            HarmlessText.append(check.name, to: &body)
            body += ",\"ok\":\(check.ok)".utf8
            if let detail = check.detail {
                body += ",\"detail\":".utf8
                HarmlessText.append(detail, to: &body)
            }
            if let since = check.since { body += ",\"since\":\"\(since.rfc3339)\"".utf8 }
            let causes = check.causes(among: checks)
            for (place, cause) in causes.enumerated() {
                body += (place == 0 ? ",\"because\":[" : ",").utf8
                HarmlessText.append(cause, to: &body)
            }
            if !causes.isEmpty { body.append(UInt8(ascii: "]")) }
            body.append(UInt8(ascii: "}"))
        }
        body.append(UInt8(ascii: "]"))
        return body
    }

    /// - Parameter members: what stands behind, each with a comma in front.
    func answer(_ status: String, _ members: [UInt8] = []) -> [UInt8] {
        var body = Array("{\"status\":".utf8)
        HarmlessText.append(status, to: &body)
        body += ",\"identitybus\":".utf8
        HarmlessText.append(program, to: &body)
        return body + members + "}".utf8
    }

    private static func json(_ status: HTTPResponse.Status, _ body: [UInt8]) -> Response {
        response(status, body, type: "application/json")
    }

    private static func response(_ status: HTTPResponse.Status, _ body: [UInt8], type: String) -> Response {
        // A cached answer of a probe is a wrong answer.
        let headers: HTTPFields = [.contentType: type, .cacheControl: "no-store"]
        return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
    }
}
