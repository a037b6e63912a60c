// SPDX-License-Identifier: Apache-2.0

import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import Testing

@testable import Observability

/// Connections of one event loop, whose requests are answered on it by tasks: so it is known what is done when.
@Suite(.timeLimit(.minutes(5))) struct ClientConnectionTests {
    private static let silence = "/silence"

    /// Answers what is asked, but for silence, and tells of it before, and of each part of a body.
    private final class Answerer: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private let asked: (String) -> Void
        private var path = ""

        init(_ asked: @escaping (String) -> Void) { self.asked = asked }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head): path = head.uri
            case .body: asked("\(path) body")
            case .end:
                asked(path)
                guard path != ClientConnectionTests.silence else { return }
                context.eventLoop.assumeIsolated().execute {
                    let head = HTTPResponseHead(version: .http1_1, status: .noContent)
                    context.write(self.wrapOutboundOut(.head(head)), promise: nil)
                    context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: nil)
                }
            }
        }
    }

    /// The paths in the order in which they were asked for, when these are there, or else after ten seconds.
    private func order(
        when areThere: ([String]) -> Bool, _ connections: Connections, _ body: (_ port: Int) throws -> Void,
        asked: @escaping @Sendable (_ path: String, _ port: Int) -> Void
    ) async throws -> [String] {
        let paths = Mutex<[String]>([])
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let server = try await ServerBootstrap(group: group).childChannelInitializer { channel in
            channel.eventLoop.makeCompletedFuture {
                let pipeline = channel.pipeline.syncOperations
                let wire = WireBytes()
                try pipeline.addHandler(wire)
                try pipeline.configureHTTPServerPipeline(withPipeliningAssistance: false, withErrorHandling: false)
                try pipeline.addHandler(
                    ClientConnection(
                        connections, timeout: .seconds(60), wire: wire, turns: try LoopTurns.of(channel.eventLoop),
                        words: { _ in ("", []) }))
                try pipeline.addHandler(
                    Answerer { path in
                        asked(path, channel.localAddress?.port ?? 0)
                        paths.withLock { $0.append(path) }
                    })
            }
        }.bind(host: "127.0.0.1", port: 0).get()
        try body(server.localAddress?.port ?? 0)
        for _ in 0..<1000 where !areThere(paths.withLock { $0 }) { try await Task.sleep(for: .milliseconds(10)) }
        try await group.shutdownGracefully()
        return paths.withLock { $0 }
    }

    /// A connection that asks for these one behind the other.
    private static func ask(_ path: String, times: Int = 1, _ port: Int) -> Int32 {
        say(String(repeating: "GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n", count: times), port)
    }

    private static func say(_ text: String, _ port: Int) -> Int32 {
        let socket = HTTPProbe.connect(port: port) ?? -1
        let bytes = Array(text.utf8)
        _ = send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        return socket
    }

    /// What comes meanwhile, a new connection too, waits for a few of its requests and not for all.
    @Test func whoAsksMuchAtOnceLetsTheOthersIn() async throws {
        let sockets = Mutex<[Int32]>([])
        defer { for socket in sockets.withLock({ $0 }) { close(socket) } }
        let paths = try await order(when: { $0.count == 41 }, Connections(server: "test", limit: 10)) { port in
            sockets.withLock { $0.append(Self.ask("/much", times: 40, port)) }
        } asked: { path, port in
            sockets.withLock { if path == "/much", $0.count == 1 { $0.append(Self.ask("/other", port)) } }
        }
        let before = paths.prefix { $0 != "/other" }
        #expect(paths.count == 41 && before.count <= 5, "\(before.count)")
    }

    /// Also where those who are answered make room, and the others have not been looked at yet.
    @Test func whoHasJustComeIsNotTakenForIdle() async throws {
        let sockets = Mutex<[Int32]>([])
        defer { for socket in sockets.withLock({ $0 }) { close(socket) } }
        let connections = Connections(server: "test", limit: 2, keepsBusy: false)
        let paths = try await order(when: { Set($0).count == 3 }, connections) { port in
            sockets.withLock { $0.append(Self.ask("/much", times: 40, port)) }
        } asked: { _, port in
            sockets.withLock {
                guard $0.count == 1 else { return }
                for path in ["/first", "/second"] { $0.append(Self.ask(path, port)) }
            }
        }
        #expect(paths.contains("/first") && paths.contains("/second"), "\(paths)")
    }

    @Test func whoWaitsForTheFirstAnswerMakesNoRoom() async throws {
        let sockets = Mutex<[Int32]>([])
        defer { for socket in sockets.withLock({ $0 }) { close(socket) } }
        let connections = Connections(server: "test", limit: 2, keepsBusy: false)
        let counts = Mutex<[Int]>([])
        _ = try await order(when: { $0.count == 3 }, connections) { port in
            sockets.withLock { $0.append(Self.ask(Self.silence, port)) }
        } asked: { _, port in
            counts.withLock { $0.append(connections.count) }
            sockets.withLock { if $0.count < 3 { $0.append(Self.ask(Self.silence, port)) } }
        }
        #expect(counts.withLock { $0.last } == 3)
    }

    /// Before it has any answer too.
    @Test func whoAsksForMoreMakesRoom() async throws {
        let sockets = Mutex<[Int32]>([])
        defer { for socket in sockets.withLock({ $0 }) { close(socket) } }
        let paths = try await order(when: { $0.count == 2 }, Connections(server: "test", limit: 1)) { port in
            sockets.withLock { $0.append(Self.ask(Self.silence, times: 2, port)) }
        } asked: { path, port in
            sockets.withLock { if path == Self.silence { $0.append(Self.ask("/other", port)) } }
        }
        #expect(paths == [Self.silence, "/other"])
    }

    /// Though it has just come, and has had no answer yet.
    @Test func whoseBodyDripsMakesRoom() async throws {
        let sockets = Mutex<[Int32]>([])
        defer { for socket in sockets.withLock({ $0 }) { close(socket) } }
        let half = "POST /half HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"
        let connections = Connections(server: "test", limit: 2)
        let paths = try await order(when: { $0.contains("/other") }, connections) { port in
            sockets.withLock { $0.append(Self.say(half, port)) }
        } asked: { path, port in
            guard path == "/half body" else { return }
            sockets.withLock { $0.append($0.count < 2 ? Self.say(half, port) : Self.ask("/other", port)) }
        }
        #expect(paths == ["/half body", "/half body", "/other"])
    }

    /// What it has asked for goes with it.
    @Test func whoHasGoneWaitsForNoTurn() async throws {
        let sockets = Mutex<[Int32]>([])
        defer { for socket in sockets.withLock({ $0 }) { close(socket) } }
        let connections = Connections(server: "test", limit: 1)
        let counts = Mutex<[Int]>([])
        _ = try await order(when: { _ in counts.withLock { $0.count == 2 } }, connections) { port in
            sockets.withLock { $0.append(Self.ask("/much", times: 40, port)) }
        } asked: { _, _ in
            guard counts.withLock(\.isEmpty), let loop = MultiThreadedEventLoopGroup.currentEventLoop else { return }
            @Sendable func note() { counts.withLock { $0.append((try? LoopTurns.of(loop).count) ?? -1) } }
            // Behind its answer, and before the loop looks again.
            loop.execute {
                loop.execute {
                    note()
                    _ = connections.enter(of: nil) {}
                    loop.execute { note() }
                }
            }
        }
        #expect(counts.withLock { $0 } == [1, 0])
    }
}
