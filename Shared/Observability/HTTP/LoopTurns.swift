// SPDX-License-Identifier: Apache-2.0

import Glibc
import NIOCore
import NIOPosix
import Synchronization

/// What waits on an event loop until that has asked the kernel again for what its sockets have.
///
/// A loop runs its tasks until none is left, also those that come meanwhile, and only then looks at its sockets. So what
/// goes on at once, a request behind the other, is done before anybody else is let in, however much it is. What is put off
/// here waits for a byte which the loop sends to itself: that is found where the bytes and connections of others are.
///
/// Belongs to one event loop and lasts as long, since NIO's own loops are never shut down: two descriptors for each.
final class LoopTurns: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// How many requests go on in one turn: the others' bytes are looked at again soon, however many wait here.
    static let most = 64

    private static let all = Mutex<[ObjectIdentifier: NIOLoopBound<LoopTurns>]>([:])

    private var context: ChannelHandlerContext?
    /// What costs next to nothing.
    private var looks: [() -> Void] = []
    /// What takes its time. Who has gone has left: otherwise it would stand before others, and hold what it had.
    private var requests = Line<() -> Void>()
    /// Which of them have waited since the byte was sent that is on its way, so many and up to this number; `nil` without one.
    private var due: (looks: Int, requests: Int)?

    private init() {}

    /// Those of a loop, to be asked for on it.
    ///
    /// - Throws: when the process has no file descriptors left.
    static func of(_ loop: any EventLoop) throws -> LoopTurns {
        if let known = all.withLock({ $0[ObjectIdentifier(loop)] }) { return known.value }
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { throw IOError(errnoCode: errno, reason: "pipe") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let turns = NIOLoopBound(LoopTurns(), eventLoop: loop)
        all.withLock { $0[ObjectIdentifier(loop)] = turns }
        NIOPipeBootstrap(group: loop)
            // What is sent while one is read is left for the next turn.
            .channelOption(.maxMessagesPerRead, value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(turns.value) }
            }
            .takingOwnershipOfDescriptors(input: ends[0], output: ends[1])
            // It has no loop any more, or the kernel no memory. The next connection tries it again.
            .whenFailure { _ in forget(loop) }
        return turns.value
    }

    private static func forget(_ loop: any EventLoop) { all.withLock { $0[ObjectIdentifier(loop)] = nil } }

    /// How many requests wait.
    var count: Int { requests.count }

    /// To be done when the loop has looked once, with all others of its kind.
    func whenLooked(_ work: @escaping () -> Void) {
        looks.append(work)
        if due == nil { ask() }
    }

    /// Puts a request off. What comes first goes on first, and ``most`` of them in a turn.
    /// - Returns: the number with which it can leave before its turn.
    func next(_ work: @escaping () -> Void) -> Int {
        defer { if due == nil { ask() } }
        return requests.join(work)
    }

    func leave(_ number: Int) { requests.leave(number) }

    private func ask() {
        guard let context, !looks.isEmpty || requests.count > 0 else { return }
        due = (looks.count, requests.next)
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: [0])), promise: nil)
    }

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        ask()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let due else { return }
        let looks = looks.prefix(due.looks)
        self.looks.removeFirst(due.looks)
        for look in looks { look() }
        for _ in 0..<Self.most {
            guard let (number, request) = requests.longest(), number < due.requests else { break }
            requests.leave(number)
            request()
        }
        self.due = nil
        ask()
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.context = nil
        (looks, requests) = ([], Line())
        Self.forget(context.eventLoop)
    }
}

/// Event loops own their handlers.
@available(*, unavailable)
extension LoopTurns: Sendable {}
