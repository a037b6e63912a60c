// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// What a client sends, before it is decoded: the decoder passes over empty lines in front of a request and over the
/// extensions of chunks, and so would never tell of their end. Runs on the connection's event loop.
final class WireBytes: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// Of a request: its head, its body, and what frames it.
    private static let limit = 16 * 1024 * 1024
    /// Of what comes before a request's head is there as a whole.
    private static let limitOfHead = 256 * 1024

    private var count = 0
    private var isInHead = true
    /// What the head begins with; `nil` when that is not told apart from the request before it.
    private var start: ByteBuffer?

    func headIsRead() { (isInHead, start) = (false, nil) }

    func requestIsRead() { (isInHead, count) = (true, 0) }

    /// Whether the head that could not be read begins with a word as methods are (RFC 9110, 5.6.2).
    var beginsWithAToken: Bool {
        let bytes = (start?.readableBytesView ?? ByteBufferView()).drop { $0 == 0x0D || $0 == 0x0A }
        let word = bytes.prefix { $0 != 0x20 }
        return !word.isEmpty && word.endIndex < bytes.endIndex && word.allSatisfy(Self.isOfToken)
    }

    private static func isOfToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        if isInHead, start == nil { start = bytes }
        count += bytes.readableBytes
        context.fireChannelRead(data)
        if count > (isInHead ? Self.limitOfHead : Self.limit) { context.close(promise: nil) }
    }
}

/// Event loops own their handlers.
@available(*, unavailable)
extension WireBytes: Sendable {}
