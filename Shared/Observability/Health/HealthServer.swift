// SPDX-License-Identifier: Apache-2.0

import Hummingbird
import HummingbirdCore
public import Logging
import NIOCore
import NIOPosix
public import ServiceLifecycle

/// The HTTP server for operators: `GET /livez`, `/readyz` and `/metrics`.
///
/// Guarantees:
/// - A probe answers 200 `{"status":"ok"}` when all of its checks are ok (also when there are none) and otherwise 503
///   with the list of checks. The report is taken anew for every request.
/// - `run()` throws when the address cannot be bound. It returns after a graceful shutdown, when requests in progress
///   are answered, and gives the port back on every way out.
/// - A client that sends nothing is disconnected after 30 seconds, and never delays a shutdown.
///
/// Threading: sockets are served by NIO's shared threads. `health` and `metrics` are called on the concurrent executor
/// and must not block; `onBound` is called once, when connections are accepted.
///
/// A `ServiceGroup` stops its services in reverse order: list this one first, so that probes are answered until the
/// rest has drained.
public struct HealthServer: Service {
    private let host: String
    private let port: Int
    private let responder: HealthResponder
    private let logger: Logger
    private let onBound: @Sendable (Int) -> Void

    /// Describes the server; nothing is opened before `run()`.
    ///
    /// - Parameters:
    ///   - host: The address to listen on. The answers carry no secrets, but are not meant for the world either.
    ///   - port: 0 lets the kernel choose.
    ///   - health: Takes the report of this moment.
    ///   - metrics: Gives the exposition, usually `registry.exposition()`.
    ///   - onBound: Gets the port that was bound.
    public init(
        host: String = "127.0.0.1", port: Int, health: @escaping @Sendable () -> HealthReport,
        metrics: @escaping @Sendable () -> String, logger: Logger, onBound: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        self.host = host
        self.port = port
        self.logger = logger
        self.onBound = onBound
        responder = HealthResponder(health: health, metrics: metrics)
    }

    /// Serves until graceful shutdown or cancellation. To be called once, by a `ServiceGroup`.
    public func run() async throws {
        // NIO's own group is never shut down, so a connection that is still being dealt with finds its thread.
        let onBound = onBound
        try await Application(
            responder: responder,
            server: .http1(configuration: HTTP1Channel.Configuration(idleTimeout: .seconds(30))),
            configuration: ApplicationConfiguration(
                address: .hostname(host, port: port), backlog: 64,
                // Probes need two or three connections; a leak elsewhere must not use up our descriptors.
                availableConnectionsDelegate: MaximumAvailableConnections(64, logger: logger)),
            onServerRunning: { channel in
                if let port = channel.localAddress?.port { onBound(port) }
            },
            eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup.singleton),
            logger: logger
        ).run()
    }

    /// Keeps NIO to one thread in this process: a service serves nobody but probes. To be called before anything else
    /// uses NIO.
    public static func useOneThread() {
        NIOSingletons.groupLoopCountSuggestion = 1
    }
}
