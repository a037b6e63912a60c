// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOHTTP1

/// What one client's connection is, beside its requests: how long it may take, and when it ends. Runs on the
/// connection's event loop.
///
/// - A client that takes too long is disconnected: for its first byte, a request's head, a whole request, an answer that
///   waits for it to read, or nothing at all between two requests. Time that the server itself takes does not count.
/// - It can be disconnected to make room for others, as ``Connections`` says.
/// - Whoever asks for more is read on when the answer before has gone out, and the event loop has looked at the others
///   since: otherwise one connection would take as many turns as it has requests, and answers would pile up for one that
///   does not read. Who has too much wait so is disconnected.
/// - A request after which the connection cannot or shall not go on is answered with `Connection: close`, and is the last.
/// - A request that cannot be read is told why.
/// - When the server stops, what is being asked is answered, and the client has ``farewell`` to send and to read.
final class ClientConnection: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// How long a client that is told to go away may take to read that.
    private static let linger = TimeAmount.seconds(1)
    /// How long a client that has connected may take to ask before it is like any other idle one.
    private static let arrivalTime = TimeAmount.seconds(1)
    /// How long a client may take while the server stops.
    private static let farewell = TimeAmount.seconds(5)
    /// How much may be held. Nothing is read meanwhile, but what a client sent before it closed its side comes all the
    /// same, and so does all of what was encrypted at once.
    private static let mostHeld = 256

    private let connections: Connections
    private let wire: WireBytes
    private let turns: LoopTurns
    private let words: ClientChannel.Words

    private var place: Connections.Place?
    /// How long the client may take, and what ends that.
    private struct Clock {
        var timeout: TimeAmount
        var timer: Scheduled<Void>?
        /// It becomes like any other idle one then.
        var arrival: Scheduled<Void>?
    }

    private var clock: Clock

    /// What waits for the answer before: requests, and the end of them.
    private enum Held {
        case part(HTTPServerRequestPart)
        case error(any Error)
        case event(ChannelEvent)
    }

    private var held: CircularBuffer<Held> = []
    /// The number with which it waits for its turn.
    private var turn: Int?
    private var isReadAskedFor = false

    /// The request that came last.
    private struct Request {
        var isReading = false
        /// No other follows it.
        var isLast = false
        /// The client waits for the word to send the body.
        var awaitsContinue = false
        /// Why it cannot be read, and whether its answer has a body; until it is told.
        var unreadable: (why: UnreadableRequest, hasBody: Bool)?
    }

    private var request = Request()
    /// An answer is owed, and whether it has to say that the connection stays, which HTTP/1.0 asks for.
    private var owed: Bool?
    /// What it is while its client has to say something. At first, nobody has looked yet whether it does.
    private var silence: Connections.Activity = .unanswered
    private var isAnswered = false
    private var isStopping = false
    private var isClosing = false
    /// The last answer has been written.
    private var isOver = false

    init(
        _ connections: Connections, timeout: TimeAmount, wire: WireBytes, turns: LoopTurns,
        words: @escaping ClientChannel.Words
    ) {
        self.connections = connections
        clock = Clock(timeout: timeout)
        self.wire = wire
        self.turns = turns
        self.words = words
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        place = connections.enter(of: connections.owner(channel.remoteAddress)) {
            // An answer that is being written goes out first.
            channel.eventLoop.execute { channel.close(promise: nil) }
        }
        settle(context)
        let loop = context.eventLoop.assumeIsolated()
        // Nothing that waits holds a connection that is closed by then.
        let isSilent = { [weak self, weak context] (activity: Connections.Activity) in
            if let context { self?.isSilent(context, activity) }
        }
        // Of what has been found in this turn, its own may come last.
        turns.whenLooked { loop.execute { isSilent(.new) } }
        clock.arrival = loop.scheduleTask(in: Self.arrivalTime) { isSilent(.idle) }
    }

    /// Its time to ask does not begin anew.
    private func isSilent(_ context: ChannelHandlerContext, _ activity: Connections.Activity) {
        guard let place, silence != .idle else { return }
        silence = activity
        connections.note(place, self.activity(mustRead: !context.channel.isWritable))
    }

    func handlerRemoved(context: ChannelHandlerContext) { end() }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    // MARK: What the client sends

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        switch part {
        case .head: wire.headIsRead()
        case .body: break
        case .end: wire.requestIsRead()
        }
        if mustWait { hold(context, .part(part)) } else { take(context, part) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if mustWait { hold(context, .error(error)) } else { take(context, error) }
    }

    private func hold(_ context: ChannelHandlerContext, _ what: Held) {
        if held.count < Self.mostHeld { held.append(what) } else { context.close(promise: nil) }
        if held.count == 1 { settle(context) }
    }

    func read(context: ChannelHandlerContext) {
        isReadAskedFor = !held.isEmpty
        if !isReadAskedFor { context.read() }
    }

    private var mustWait: Bool { !held.isEmpty || owed != nil && !request.isReading }

    private func canTakeHeld(_ context: ChannelHandlerContext) -> Bool {
        owed == nil && !held.isEmpty && context.channel.isWritable
    }

    /// Goes on with what waits when it is this connection's turn.
    private func takeHeldInTurn(_ context: ChannelHandlerContext) {
        guard turn == nil, canTakeHeld(context) else { return }
        turn = turns.next { [weak self, weak context] in if let context { self?.takeHeld(context) } }
    }

    /// As far as the next request.
    private func takeHeld(_ context: ChannelHandlerContext) {
        turn = nil
        guard place != nil, canTakeHeld(context) else { return }
        while let first = held.first, owed == nil || request.isReading {
            held.removeFirst()
            switch first {
            case .part(let part): take(context, part)
            case .error(let error): take(context, error)
            case .event(let event): context.fireUserInboundEventTriggered(event)
            }
        }
        context.fireChannelReadComplete()
        settle(context)
        if held.isEmpty, isReadAskedFor {
            isReadAskedFor = false
            context.read()
        }
    }

    private func take(_ context: ChannelHandlerContext, _ part: HTTPServerRequestPart) {
        // What follows the last request is not read as one: it may be in another protocol.
        if request.isLast, !request.isReading { return }
        switch part {
        case .head(var head):
            if let why = Self.problem(of: head) { return refuse(context, why, hasBody: head.method != .HEAD) }
            request.isReading = true
            request.awaitsContinue = !head.expectations.isEmpty
            if head.endsConnection {
                request.isLast = true
                // The one spelling that Hummingbird takes for it.
                head.headers.replaceOrAdd(name: "Connection", value: "close")
            }
            owed = head.version == .http1_0 && !request.isLast
            settle(context)
            context.fireChannelRead(wrapInboundOut(.head(head)))
        case .body:
            request.awaitsContinue = false
            context.fireChannelRead(wrapInboundOut(part))
        case .end:
            (request.isReading, request.awaitsContinue) = (false, false)
            settle(context)
            context.fireChannelRead(wrapInboundOut(part))
        }
    }

    private static func problem(of head: HTTPRequestHead) -> UnreadableRequest? {
        guard head.namesItsHost else { return .host }
        return head.expectations.allSatisfy { $0.lowercased() == "100-continue" } ? nil : .expectation
    }

    /// Hummingbird answers a parser's error with 400 when it comes to it, in its order.
    private func refuse(_ context: ChannelHandlerContext, _ why: UnreadableRequest, hasBody: Bool) {
        request.isLast = true
        request.unreadable = (why, hasBody)
        context.fireErrorCaught(HTTPParserError.invalidHeaderToken)
    }

    private func take(_ context: ChannelHandlerContext, _ error: any Error) {
        if let error = error as? HTTPParserError, request.unreadable == nil {
            request.isLast = true
            request.isReading = false
            request.unreadable = (error == .invalidMethod && wire.beginsWithAToken ? .method : .malformed, true)
        }
        context.fireErrorCaught(error)
    }

    // MARK: What it is answered

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isOver else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        switch unwrapOutboundIn(data) {
        case .head(let head): write(context, head, promise)
        case .body: context.write(data, promise: promise)
        case .end:
            owed = nil
            (isAnswered, silence) = (true, .idle)
            isOver = isClosing
            context.write(data, promise: promise)
            settle(context)
            takeHeldInTurn(context)
        }
    }

    private func write(
        _ context: ChannelHandlerContext, _ original: HTTPResponseHead, _ promise: EventLoopPromise<Void>?
    ) {
        var head = original
        // Who was not told to send the body may yet send it, or not.
        if isStopping || request.isLast || request.awaitsContinue {
            head.headers.replaceOrAdd(name: "Connection", value: "close")
        } else if owed == true, !head.headers.contains(name: "Connection") {
            head.headers.add(name: "Connection", value: "keep-alive")
        }
        if head.headers["Connection"].first == "close" { (isClosing, request.isLast) = (true, true) }
        // Hummingbird's own 400 is the only one without a body.
        guard let (why, hasBody) = request.unreadable, head.status == .badRequest,
            head.headers["Content-Length"] == ["0"]
        else {
            return context.write(wrapOutboundOut(.head(head)), promise: promise)
        }
        request.unreadable = nil
        let (type, body) = words(why)
        head.status = HTTPResponseStatus(statusCode: why.status)
        head.headers.replaceOrAdd(name: "Content-Type", value: type)
        head.headers.replaceOrAdd(name: "Content-Length", value: String(body.count))
        context.write(wrapOutboundOut(.head(head)), promise: promise)
        if hasBody { context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: body)))), promise: nil) }
    }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is BodyIsWanted else { return context.triggerUserOutboundEvent(event, promise: promise) }
        if request.awaitsContinue {
            request.awaitsContinue = false
            let head = HTTPResponseHead(version: .http1_1, status: .continue)
            context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
        }
        promise?.succeed()
    }

    // MARK: Whose turn it is

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        settle(context)
        takeHeldInTurn(context)
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // Behind what it sent before, a client may close its side.
        if case .inputClosed? = event as? ChannelEvent, mustWait {
            return hold(context, .event(ChannelEvent.inputClosed))
        }
        if event is ChannelShouldQuiesceEvent {
            (isStopping, request.isLast) = (true, true)
            clock.timeout = min(clock.timeout, Self.farewell)
            settle(context)
        }
        context.fireUserInboundEventTriggered(event)
    }

    /// After everything that moves the connection on: whose turn it is begins anew.
    private func settle(_ context: ChannelHandlerContext) {
        clock.timer?.cancel()
        clock.timer = nil
        guard let place else { return }
        let mustRead = !context.channel.isWritable
        let isClientsTurn = isOver || mustRead || request.isReading || owed == nil
        connections.note(place, activity(mustRead: mustRead))
        guard isClientsTurn else { return }
        let channel = context.channel
        clock.timer = context.eventLoop.scheduleTask(in: isOver && !mustRead ? Self.linger : clock.timeout) {
            channel.close(promise: nil)
        }
    }

    private func activity(mustRead: Bool) -> Connections.Activity {
        if isOver || mustRead { return .idle }
        if !held.isEmpty { return .insistent }
        if owed == nil || request.isReading { return silence }
        return isAnswered ? .served : .unanswered
    }

    private func end() {
        clock.arrival?.cancel()
        clock.timer?.cancel()
        clock.timer = nil
        if let turn { turns.leave(turn) }
        turn = nil
        if let place { connections.leave(place) }
        place = nil
    }
}

/// Event loops own their handlers.
@available(*, unavailable)
extension ClientConnection: Sendable {}
