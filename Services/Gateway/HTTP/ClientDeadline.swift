// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import NIOCore
import NIOHTTPTypes

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
