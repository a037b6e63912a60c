// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import Hummingbird
import HummingbirdCore
import HummingbirdTLS
import Logging
import NIOCore
import NIOHTTPTypes
import NIOPosix
import NIOSSL
import Runtime
import ServiceLifecycle

/// The HTTP server of the API. A graceful shutdown answers what is in progress first.
struct APIServer: Service {
    let configuration: GatewayConfiguration
    let api: API
    let logger: Logger

    func run() async throws {
        let timeout = TimeAmount(configuration.clientTimeout)
        let http = HTTPServerBuilder.http1(
            configuration: HTTP1Channel.Configuration(
                additionalChannelHandlers: [ClientDeadline(timeout: timeout)],
                httpDecoderConfiguration: .init(
                    maxHeaderFieldSize: 16 * 1024, maxHeaderListSize: 32 * 1024, maxHeaderFieldCount: 100)))
        let scheme = configuration.tls == nil ? "http" : "https"
        let (host, logger) = (configuration.host, logger)
        try await Application(
            responder: GatewayResponder(
                api: api, bodies: BodyReader(limit: configuration.maxBodyBytes),
                clients: Clients(proxies: configuration.trustedProxies), logsClients: configuration.logsClients,
                logger: logger),
            server: try configuration.tls.map { try .tls(http, tlsConfiguration: Self.tls($0)) } ?? http,
            configuration: ApplicationConfiguration(
                address: .hostname(host, port: configuration.port), backlog: 1024,
                availableConnectionsDelegate: MaximumAvailableConnections(
                    configuration.maxConnections, logger: logger)),
            onServerRunning: { channel in
                let port = channel.localAddress?.port ?? 0
                let shown = host.contains(":") ? "[\(host)]" : host
                logger.info(
                    "gateway is up", metadata: ["port": "\(port)", "address": "\(scheme)://\(shown):\(port)"])
                ServiceMain.tellParent(
                    "IDENTITYBUS_GATEWAY_FILE", scheme: scheme, host: host, port: port, logger: logger)
            },
            eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup.singleton),
            logger: Self.quiet(logger)
        ).run()
    }

    /// - Throws: `ConfigurationProblem`; what a key file holds is never shown.
    static func tls(_ files: GatewayConfiguration.TLSFiles) throws -> TLSConfiguration {
        let chain: [NIOSSLCertificate]
        do {
            chain = try NIOSSLCertificate.fromPEMFile(files.certificateChain)
        } catch {
            throw ConfigurationProblem(
                "GATEWAY_TLS_CERTIFICATE", "\(files.certificateChain) is not a readable PEM file of certificates")
        }
        let key: NIOSSLPrivateKey
        do {
            key = try NIOSSLPrivateKey(file: files.privateKey, format: .pem)
        } catch {
            throw ConfigurationProblem("GATEWAY_TLS_KEY", "\(files.privateKey) is not a readable PEM file of a key")
        }
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        return configuration
    }

    /// The server's own lines are about single connections.
    private static func quiet(_ logger: Logger) -> Logger {
        var logger = logger
        logger.logLevel = max(logger.logLevel, .warning)
        return logger
    }
}

/// Closes connections whose client takes too long: to send its first byte, a request's head, a whole request, or
/// nothing at all between two requests. Time that the gateway itself takes does not count.
///
/// One slow client so costs one connection for `timeout` at most. Runs on the connection's event loop.
final class ClientDeadline: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let timeout: TimeAmount
    /// How long a client that is told to go away may take to read that.
    private static let linger = TimeAmount.seconds(1)

    private var timer: Scheduled<Void>?
    private var isReadingRequest = false
    private var unanswered = 0
    private var isClosing = false

    init(timeout: TimeAmount) { self.timeout = timeout }

    func handlerAdded(context: ChannelHandlerContext) { restart(context, timeout) }

    func handlerRemoved(context: ChannelHandlerContext) { cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head:
            isReadingRequest = true
            unanswered += 1
            if !isClosing { restart(context, timeout) }
        case .body: break
        case .end:
            isReadingRequest = false
            // The answer may have been given before the request was there as a whole: then nothing is waited for but
            // the next request.
            if !isClosing { unanswered > 0 ? cancel() : restart(context, timeout) }
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(let head):
            if head.headerFields[.connection] == "close" { isClosing = true }
        case .body: break
        case .end:
            unanswered -= 1
            if isClosing {
                restart(context, Self.linger)
            } else if !isReadingRequest, unanswered <= 0 {
                restart(context, timeout)
            }
        }
        context.write(data, promise: promise)
    }

    private func restart(_ context: ChannelHandlerContext, _ time: TimeAmount) {
        cancel()
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
    }

    private func cancel() {
        timer?.cancel()
        timer = nil
    }
}

/// Event loops own their handlers.
@available(*, unavailable)
extension ClientDeadline: Sendable {}
