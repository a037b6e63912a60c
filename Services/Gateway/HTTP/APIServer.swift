// SPDX-License-Identifier: Apache-2.0

import Contracts
import HTTPTypes
import Hummingbird
import HummingbirdCore
import HummingbirdTLS
import Logging
import Metrics
import NIOCore
import NIOPosix
import Observability
import Runtime
import ServiceLifecycle

/// The HTTP server of one of the gateway's ports. A graceful shutdown answers what is in progress first.
struct APIServer: Service {
    let door: Door
    /// Where it is served.
    let place: GatewayConfiguration.Place
    let configuration: GatewayConfiguration
    /// `nil`: without TLS.
    let certificates: Certificates?
    let api: API
    let health: BusHealth
    var console: ConsoleFiles?
    var tracer: OTLPTracer?
    let logger: Logger

    private var clients: Clients { Clients(proxies: configuration.trustedProxies) }

    /// A proxy's connections are everybody's, so those are not counted for one.
    private func connections() -> Connections {
        let clients = clients
        return Connections(
            server: door == .api ? "gateway" : "admin", limit: configuration.maxConnections,
            limitOfOwner: configuration.maxConnectionsPerAddress
        ) { address in
            let client = clients.client(peer: address?.ipAddress.flatMap { IPAddress($0) }, forwarded: [])
            return client.isLimited ? client.address?.network.text : nil
        }
    }

    func run() async throws {
        do {
            try await serve()
        } catch let error as IOError {
            throw ListenFailure(error, host: place.host, port: place.port, variable: place.variable)
        }
    }

    private func serve() async throws {
        let http = ClientChannel.server(
            connections: connections(), timeout: configuration.clientTimeout,
            limits: .init(maxHeaderFieldSize: 16 * 1024, maxHeaderListSize: 32 * 1024, maxHeaderFieldCount: 100)
        ) { why in
            Counter(label: "gateway_requests", dimensions: [("route", "other"), ("status", String(why.status))])
                .increment()
            let response = Dialect.own.response(APIFailure(why), ref: CommandID.random())
            return (response.headers[.contentType] ?? "", response.body)
        }
        try await Application(
            responder: GatewayResponder(
                door: door, api: api, bodies: BodyReader(limit: configuration.maxBodyBytes), clients: clients,
                health: health, console: console, logsClients: configuration.logsClients, tracer: tracer,
                metrics: configuration.service.conventions.includes(.http) ? RequestMetrics(scheme: api.scheme) : nil,
                logger: logger),
            server: try certificates.map { try .tls(http, tlsConfiguration: $0.configuration) } ?? http,
            configuration: ApplicationConfiguration(
                address: .hostname(place.host, port: place.port), backlog: Connections.backlog,
                // Those that have to go are closed by event loops that may be busy: descriptors are bounded all the same.
                availableConnectionsDelegate: MaximumAvailableConnections(
                    configuration.maxConnections + configuration.maxConnections / 8 + 64, logger: logger)),
            onServerRunning: { channel in
                await ClientChannel.isRunning(channel)
                tellPlace(channel.localAddress?.port ?? 0)
            },
            eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup.singleton),
            logger: Self.quiet(logger)
        ).run()
    }

    private func tellPlace(_ port: Int) {
        let scheme = certificates == nil ? "http" : "https"
        let shown = place.host.contains(":") ? "[\(place.host)]" : place.host
        let (line, event) = door == .api ? ("gateway is up", "service.up") : ("admin port is up", "admin.up")
        logger.info(
            "\(line)",
            metadata: [
                "event": "\(event)", "port": .stringConvertible(port), "address": "\(scheme)://\(shown):\(port)",
            ])
        ServiceMain.tellParent(
            door == .api ? "IDENTITYBUS_GATEWAY_FILE" : "IDENTITYBUS_ADMIN_FILE", scheme: scheme, host: place.host,
            port: port, logger: logger)
    }

    /// The server's own lines are about single connections, and about an end that is said by who ends it.
    private static func quiet(_ logger: Logger) -> Logger {
        var logger = logger
        logger.logLevel = .critical
        return logger
    }
}
