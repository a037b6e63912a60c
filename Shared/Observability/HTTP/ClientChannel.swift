// SPDX-License-Identifier: Apache-2.0

package import HummingbirdCore
package import Logging
package import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1

/// The connections of a server: HTTP/1.1 as Hummingbird speaks it, and ``ClientConnection`` in front of that.
package struct ClientChannel: HTTPChannelHandler {
    package typealias Value = HTTP1Channel.Value

    private let http: HTTP1Channel
    private let connections: Connections
    private let timeout: Duration

    /// - Parameter timeout: how long a client may take to send a request's head, or its body, or stay connected without a
    ///   request.
    package static func server(
        connections: Connections, timeout: Duration, limits: HTTP1Channel.Configuration.DecoderConfiguration = .init()
    ) -> HTTPServerBuilder {
        HTTPServerBuilder { responder in
            ClientChannel(
                http: HTTP1Channel(
                    responder: responder, configuration: HTTP1Channel.Configuration(httpDecoderConfiguration: limits)),
                connections: connections, timeout: timeout)
        }
    }

    package var responder: HTTPChannelHandler.Responder { http.responder }

    package func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        http.setup(channel: channel, logger: logger).flatMapThrowing { value in
            let pipeline = channel.pipeline.syncOperations
            // Behind the codec, nobody knows the request's version any more, nor how many hosts it names.
            try pipeline.addHandler(
                ClientConnection(connections, timeout: TimeAmount(timeout)),
                position: .before(try pipeline.handler(type: HTTP1ToHTTPServerCodec.self)))
            return value
        }
    }

    package func handle(value: Value, logger: Logger) async { await http.handle(value: value, logger: logger) }
}

/// What one client's connection is, beside its requests: how long it may take, and when it ends. Runs on the
/// connection's event loop.
///
/// - A client that takes too long is disconnected: for its first byte, a request's head, a whole request, or nothing at
///   all between two requests. Time that the server itself takes does not count.
/// - A request after which the connection cannot or shall not go on is answered with `Connection: close`, and is the last.
/// - A body that goes on and on behind its answer ends the connection.
/// - A request that does not name exactly one host is answered 400 (RFC 9112, 3.2).
final class ClientConnection: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let connections: Connections
    private let timeout: TimeAmount
    /// How long a client that is told to go away may take to read that.
    private static let linger = TimeAmount.seconds(1)

    private var place: Connections.Place?
    private var timer: Scheduled<Void>?
    /// Bytes of a request's body that are read behind its answer, which so reaches clients that read late; no more, or one
    /// that never ends would be read for as long as a request may take.
    private static let maxSurplus = 16 * 1024 * 1024

    private var isReadingRequest = false
    private var surplus = 0
    /// A request that is the last one has been read.
    private var isLast = false
    /// For each request that is not answered yet, in their order: whether it has to be told that the connection stays, which
    /// HTTP/1.0 asks for.
    private var waiting: [Bool] = []
    private var unanswered: Int { waiting.count }
    private var isClosing = false

    init(_ connections: Connections, timeout: TimeAmount) {
        self.connections = connections
        self.timeout = timeout
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        place = connections.enter(of: connections.owner(channel.remoteAddress)) { channel.close(promise: nil) }
        restart(context, timeout)
    }

    func handlerRemoved(context: ChannelHandlerContext) { end() }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // What follows the last request is not read as one: it may be in another protocol.
        if isLast, !isReadingRequest { return }
        var part = unwrapInboundIn(data)
        switch part {
        case .head(var head):
            guard head.namesItsHost else { return context.fireErrorCaught(HTTPParserError.invalidHeaderToken) }
            isReadingRequest = true
            surplus = 0
            if head.endsConnection {
                isLast = true
                // The one spelling that Hummingbird takes for it.
                head.headers.replaceOrAdd(name: "Connection", value: "close")
                part = .head(head)
            }
            waiting.append(head.version == .http1_0 && !isLast)
            if !isClosing { restart(context, timeout) }
        case .body(let bytes):
            if unanswered <= 0 { surplus += bytes.readableBytes }
            guard surplus <= Self.maxSurplus else { return context.close(promise: nil) }
        case .end:
            isReadingRequest = false
            // The answer may have been given before the request was there as a whole: then nothing is waited for but
            // the next request.
            if !isClosing { unanswered > 0 ? isAnswering() : restart(context, timeout) }
        }
        context.fireChannelRead(wrapInboundOut(part))
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        var part = unwrapOutboundIn(data)
        switch part {
        case .head(var head):
            // Requests are answered in their order.
            if isLast, unanswered <= 1 {
                head.headers.replaceOrAdd(name: "Connection", value: "close")
            } else if waiting.first == true, !head.headers.contains(name: "Connection") {
                head.headers.add(name: "Connection", value: "keep-alive")
            }
            if head.headers["Connection"].first == "close" { isClosing = true }
            part = .head(head)
        case .body: break
        case .end:
            if !waiting.isEmpty { waiting.removeFirst() }
            if isClosing {
                restart(context, Self.linger)
            } else if !isReadingRequest, unanswered <= 0 {
                restart(context, timeout)
            }
        }
        context.write(wrapOutboundOut(part), promise: promise)
    }

    private func isAnswering() {
        cancel()
        if let place { connections.isBusy(place) }
    }

    private func restart(_ context: ChannelHandlerContext, _ time: TimeAmount) {
        cancel()
        if let place { connections.isIdle(place) }
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
    }

    private func cancel() {
        timer?.cancel()
        timer = nil
    }

    private func end() {
        cancel()
        if let place { connections.leave(place) }
        place = nil
    }
}

/// Event loops own their handlers.
@available(*, unavailable)
extension ClientConnection: Sendable {}

extension HTTPRequestHead {
    /// Whether nothing can be read behind this request, or nothing shall be. The decoder reads nothing behind an
    /// `Upgrade` and a `CONNECT`, also when nobody takes part in it; and a body whose length an HTTP/1.0 proxy may have
    /// seen otherwise is the last thing that is believed (RFC 9112, 6.1).
    var endsConnection: Bool {
        let wishes = headers[canonicalForm: "Connection"].map { $0.lowercased() }
        if wishes.contains("close") || headers.contains(name: "Upgrade") || method == .CONNECT { return true }
        guard isOld else { return false }
        return !wishes.contains("keep-alive") || headers.contains(name: "Transfer-Encoding")
    }

    /// Exactly one `Host`; HTTP/1.0 has none.
    var namesItsHost: Bool {
        let count = headers["Host"].count
        return count == 1 || count == 0 && isOld
    }

    /// HTTP/1.0 or before it: connections end there unless both say otherwise.
    private var isOld: Bool { version.major < 1 || version == .http1_0 }
}
