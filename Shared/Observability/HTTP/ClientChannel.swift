// SPDX-License-Identifier: Apache-2.0

package import HummingbirdCore
package import Logging
package import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1

/// The connections of a server: HTTP/1.1 as Hummingbird speaks it, and ``ClientConnection`` in front of that.
package struct ClientChannel: HTTPChannelHandler {
    package typealias Value = Accepted
    /// The body of an answer, and its `Content-Type`.
    package typealias Words = @Sendable (UnreadableRequest) -> (type: String, body: [UInt8])

    /// How many bytes may wait for a client that does not read: then nothing more is answered until it has read nearly all
    /// of them.
    private static let unread = ChannelOptions.Types.WriteBufferWaterMark(low: 4 * 1024, high: 16 * 1024)
    /// The kernel's part of that, which it doubles: left alone, it takes megabytes for each such client.
    private static let unreadInKernel: SocketOptionValue = 64 * 1024
    /// Bytes that are read at once. All of them are decoded, also when they are many requests.
    private static let atOnce = FixedSizeRecvByteBufferAllocator(capacity: 2 * 1024)

    private static let acceptedAtOnce: UInt = 64

    let http: HTTP1Channel
    let connections: Connections
    let timeout: Duration
    let words: Words

    /// - Parameters:
    ///   - timeout: how long a client may take to send a request's head, or its body, to read an answer, or stay connected
    ///     without a request.
    ///   - words: what is answered to a request that cannot be read.
    package static func server(
        connections: Connections, timeout: Duration, limits: HTTP1Channel.Configuration.DecoderConfiguration = .init(),
        words: @escaping Words
    ) -> HTTPServerBuilder {
        HTTPServerBuilder { responder in
            ClientChannel(
                http: HTTP1Channel(
                    responder: responder, configuration: HTTP1Channel.Configuration(httpDecoderConfiguration: limits)),
                connections: connections, timeout: timeout, words: words)
        }
    }

    package var responder: HTTPChannelHandler.Responder { http.responder }

    package func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            let options = channel.syncOptions
            try options?.setOption(.writeBufferWaterMark, value: Self.unread)
            try options?.setOption(.socketOption(.so_sndbuf), value: Self.unreadInKernel)
            try options?.setOption(.recvAllocator, value: Self.atOnce)
            try options?.setOption(.maxMessagesPerRead, value: 1)
            try channel.pipeline.syncOperations.addHandler(WireBytes())
        }.flatMap {
            http.setup(channel: channel, logger: logger)
        }.flatMapThrowing { value in
            let pipeline = channel.pipeline.syncOperations
            let wire = try pipeline.handler(type: WireBytes.self)
            // Behind the codec, nobody knows the request's version any more, nor how many hosts it names.
            try pipeline.addHandler(
                ClientConnection(
                    connections, timeout: TimeAmount(timeout), wire: wire, turns: try LoopTurns.of(channel.eventLoop),
                    words: words),
                position: .before(try pipeline.handler(type: HTTP1ToHTTPServerCodec.self)))
            return Accepted(value)
        }
    }

    /// To be told of the channel that accepts connections. NIO would accept four in a turn of its event loop, and have a
    /// crowd wait for hundreds of turns.
    package static func isRunning(_ channel: any Channel) async {
        // One that is closed by now accepts none.
        try? await channel.setOption(.maxMessagesPerRead, value: acceptedAtOnce).get()
    }

    package func handle(value: Value, logger: Logger) async { await http.handle(value: value.http, logger: logger) }

    /// A connection that the server has accepted. One that comes while the server ends is handled by nobody: then it is
    /// closed.
    package final class Accepted: ServerChildChannelValue {
        fileprivate let http: HTTP1Channel.Value

        package var channel: any Channel { http.channel }

        fileprivate init(_ http: HTTP1Channel.Value) {
            self.http = http
            // NIO ends the process where this goes before the connection does, and nobody has handled it.
            http.channel.closeFuture.whenComplete { _ in withExtendedLifetime(http) {} }
        }

        deinit {
            let channel = channel
            channel.eventLoop.execute { channel.close(promise: nil) }
        }
    }
}

/// Tells the client of a request that says `Expect: 100-continue` to send the body.
struct BodyIsWanted: Sendable {}

extension Channel {
    /// To be called before the body of a request is read that waits for the word to send it (RFC 9110, 10.1.1).
    package func askForBody() { triggerUserOutboundEvent(BodyIsWanted(), promise: nil) }
}
