// SPDX-License-Identifier: Apache-2.0

import Contracts
import Dispatch
import Foundation
import Glibc
import HummingbirdCore
import Logging
import Metrics
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization
import TestKit
import Testing

@testable import Observability

@Suite(.serialized, .timeLimit(.minutes(5))) struct HealthServerTests {

    /// Runs a server on a port of the kernel's choice for as long as `body` takes, then shuts it down gracefully.
    private func withServer(
        health: @escaping @Sendable () -> HealthReport = { HealthReport() },
        metrics: @escaping @Sendable () -> String = { "" },
        _ body: @escaping @Sendable (Int) async throws -> Void
    ) async throws {
        let (ports, continuation) = AsyncStream.makeStream(of: Int.self)
        let server = HealthServer(
            program: "link", port: 0, health: health, metrics: metrics, logger: .quiet,
            onBound: { continuation.yield($0) })
        let group = ServiceGroup(services: [server], logger: .quiet)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            let port = try #require(await ports.first { _ in true })
            try await body(port)
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }

    @Test func probesMetricsAndNothingElse() async throws {
        let registry = PrometheusRegistry()
        Counter(label: "commands", factory: registry).increment(by: 2)
        try await withServer(metrics: { registry.exposition() }) { port in
            for path in ["/livez", "/readyz", "/livez?verbose=1"] {
                let reply = try #require(await HTTPProbe.send(path, port: port))
                #expect(reply.status == "200")
                #expect(reply.body == #"{"status":"ok","identitybus":"link"}"#)
                #expect(reply.headers.contains("content-type: application/json"))
            }
            let metrics = try #require(await HTTPProbe.send("/metrics", port: port))
            #expect(metrics.status == "200")
            #expect(metrics.headers.contains("content-type: text/plain; version=0.0.4; charset=utf-8"))
            #expect(metrics.body.hasPrefix("# TYPE commands_total counter\ncommands_total 2\n"))
            for (method, path) in [("GET", "/"), ("GET", "/livez/x"), ("POST", "/")] {
                #expect(await HTTPProbe.send(path, method: method, port: port)?.status == "404")
            }
            for (method, path) in [("POST", "/livez"), ("DELETE", "/metrics"), ("OPTIONS", "/readyz")] {
                let reply = try #require(await HTTPProbe.send(path, method: method, port: port))
                #expect(reply.status == "405" && reply.headers.contains("\nallow: get, head\n"), "\(reply.headers)")
            }
            let unknown = try #require(await HTTPProbe.send("/livez", method: "FOO", port: port))
            #expect(
                unknown.status == "501" && unknown.body.hasPrefix(#"{"status":"#)
                    && unknown.body.hasSuffix(#","identitybus":"link"}"#))
            let head = try #require(await HTTPProbe.send("/readyz", method: "HEAD", port: port))
            #expect(head.status == "200" && head.body.isEmpty && head.headers.contains("content-length: 36"))
            #expect(await HTTPProbe.send("/x", method: "HEAD", port: port)?.body == "")
        }
    }

    /// What is well too, and what nothing has to wait for.
    @Test func readyzListsItsChecksWhenItIsReady() async throws {
        let report = HealthReport(
            ready: [
                HealthCheck(name: "database", ok: true), HealthCheck(name: "apps", ok: false, isRequired: false),
            ])
        try await withServer(health: { report }) { port in
            let ready = try #require(await HTTPProbe.send("/readyz", port: port))
            #expect(ready.status == "200")
            #expect(
                ready.body
                    == #"{"status":"ok","identitybus":"link","checks":[{"name":"database","ok":true},{"name":"apps","ok":false}]}"#
            )
        }
    }

    @Test func failedChecksAreListed() async throws {
        var refused = HealthCheck(name: "database", ok: false, detail: "connection \"refused\"\n")
        refused.since = Timestamp(rfc3339: "2030-01-31T12:00:00Z")
        let report = HealthReport(
            live: [HealthCheck(name: "loop", ok: false)],
            ready: [
                refused,
                HealthCheck(name: "kafka", ok: true, detail: "3 partitions"),
                HealthCheck(name: "turns", ok: false, after: ["database", "kafka"]),
            ])
        try await withServer(health: { report }) { port in
            let live = try #require(await HTTPProbe.send("/livez", port: port))
            #expect(live.status == "503")
            #expect(
                live.body == #"{"status":"unavailable","identitybus":"link","checks":[{"name":"loop","ok":false}]}"#)
            let ready = try #require(await HTTPProbe.send("/readyz", port: port))
            #expect(ready.status == "503")
            #expect(
                ready.body == #"{"status":"unavailable","identitybus":"link","checks":["#
                    + #"{"name":"database","ok":false,"detail":"connection \"refused\"\n","since":"2030-01-31T12:00:00.000Z"},"#
                    + #"{"name":"kafka","ok":true,"detail":"3 partitions"},"#
                    + #"{"name":"turns","ok":false,"because":["database"]}]}"#)
            #expect(try JSONSerialization.jsonObject(with: Data(ready.body.utf8)) is [String: Any])
        }
    }

    /// More than there may be connections; nor does the shutdown wait for them.
    @Test func whoDoesNotReadKeepsNobodyOut() async throws {
        let clock = ContinuousClock()
        let readers = Mutex<[Int32]>([])
        let end = Mutex(clock.now)
        try await withServer(metrics: { String(repeating: "metric 1\n", count: 50_000) }) { port in
            for _ in 0..<80 {
                let reader = HTTPProbe.askWithoutReading("/metrics", times: 50, port: port)
                readers.withLock { $0.append(reader ?? -1) }
            }
            for _ in 0..<5 { #expect(await HTTPProbe.send("/livez", port: port)?.status == "200") }
            end.withLock { $0 = clock.now }
            // They go in the end, or a shutdown that waits for them would never be over.
            let all = readers.withLock { $0 }
            DispatchQueue.global().asyncAfter(deadline: .now() + 20) { for reader in all { close(reader) } }
        }
        #expect(clock.now - end.withLock { $0 } < .seconds(15))
    }

    /// Large ones: some 200 KiB are there for a client that does not read, and half a megabyte for one whose kernel does.
    @Test(arguments: [true, false]) func whoDoesNotReadGetsNoMoreAnswersMade(_ isTight: Bool) async throws {
        let made = Mutex(0)
        let large = String(repeating: "metric 1\n", count: 10_000)
        let metrics: @Sendable () -> String = {
            made.withLock { $0 += 1 }
            return large
        }
        try await withServer(metrics: metrics) { port in
            let reader = try #require(
                HTTPProbe.askWithoutReading("/metrics", times: 100, port: port, takesLittle: isTight))
            defer { close(reader) }
            try await Task.sleep(for: .seconds(2))
            let answers = made.withLock { $0 }
            #expect((1...8).contains(answers), "\(answers) answers")
        }
    }

    /// What it sent before it closed its side comes, whether or not anybody wants to read it.
    @Test func whoHasTooMuchWaitIsDisconnected() async throws {
        try await withServer(metrics: { String(repeating: "metric 1\n", count: 100_000) }) { port in
            for (times, isKept) in [(50, true), (1000, false)] {
                let reader = try #require(HTTPProbe.askWithoutReading("/metrics", times: times, port: port))
                defer { close(reader) }
                shutdown(reader, Int32(SHUT_WR))
                // It tells of a reset without being asked.
                var descriptor = pollfd(fd: reader, events: 0, revents: 0)
                var isOpen = true
                for _ in 0..<20 where isOpen {
                    try await Task.sleep(for: .milliseconds(100))
                    isOpen = poll(&descriptor, 1, 0) == 0
                }
                #expect(isOpen == isKept, "\(times) requests")
            }
        }
    }

    @Test func theReportIsTakenForEveryRequest() async throws {
        let ready = Mutex(false)
        let health: @Sendable () -> HealthReport = {
            HealthReport(ready: [HealthCheck(name: "assigned", ok: ready.withLock { $0 })])
        }
        try await withServer(health: health) { port in
            #expect(await HTTPProbe.send("/readyz", port: port)?.status == "503")
            #expect(await HTTPProbe.send("/livez", port: port)?.status == "200")
            ready.withLock { $0 = true }
            #expect(await HTTPProbe.send("/readyz", port: port)?.status == "200")
        }
    }

    @Test func shutdownFreesThePortAndDoesNotWaitForIdleClients() async throws {
        let seen = Mutex(0)
        let clock = ContinuousClock()
        let stopped = Mutex(clock.now)
        let sockets = Mutex([Int32]())
        try await withServer { port in
            seen.withLock { $0 = port }
            let silent = try #require(HTTPProbe.connect(port: port))
            let half = try #require(HTTPProbe.connect(port: port))
            let start = Array("GET /livez HTT".utf8)
            #expect(write(half, start, start.count) == start.count)
            let body = try #require(HTTPProbe.connect(port: port))
            let upload = Array("POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nabc".utf8)
            #expect(write(body, upload, upload.count) == upload.count)
            sockets.withLock { $0 = [silent, half, body] }
            #expect(await HTTPProbe.send("/livez", port: port)?.status == "200")
            stopped.withLock { $0 = clock.now }
        }
        let took = clock.now - stopped.withLock { $0 }
        #expect(took < .seconds(20))
        #expect(HTTPProbe.connect(port: seen.withLock { $0 }) == nil)
        for socket in sockets.withLock({ $0 }) { close(socket) }
    }

    @Test func aClientThatDoesNotReadDoesNotDelayShutdown() async throws {
        let large = String(repeating: "x", count: 16_000_000)
        let clock = ContinuousClock()
        let stopped = Mutex(clock.now)
        let sockets = Mutex([Int32]())
        try await withServer(metrics: { large }) { port in
            let deaf = try #require(HTTPProbe.connect(port: port))
            let request = Array("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
            #expect(write(deaf, request, request.count) == request.count)
            sockets.withLock { $0 = [deaf] }
            try await Task.sleep(for: .milliseconds(200))
            stopped.withLock { $0 = clock.now }
        }
        let took = clock.now - stopped.withLock { $0 }
        #expect(took < .seconds(20))
        for socket in sockets.withLock({ $0 }) { close(socket) }
    }

    @Test func requestsInProgressAreAnsweredDuringShutdown() async throws {
        let reply = Mutex<Task<HTTPProbe.Reply?, Never>?>(nil)
        let (started, continuation) = AsyncStream.makeStream(of: Void.self)
        let slow: @Sendable () -> HealthReport = {
            continuation.yield()
            usleep(300_000)  // stands for a report that is slow just now; real ones must not block
            return HealthReport()
        }
        try await withServer(health: slow) { port in
            let request = Task { await HTTPProbe.send("/livez", port: port) }
            reply.withLock { $0 = request }
            _ = await started.first { _ in true }
        }
        #expect(await reply.withLock { $0 }?.value?.body == #"{"status":"ok","identitybus":"link"}"#)
    }

    // MARK: Connections

    /// Blocking work runs on a Dispatch thread: the server needs those of Swift.
    /// - Returns: all that comes until the server closes; `nil` when it does not.
    private func answer(_ head: String, port: Int) async -> String? {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: exchange(head, port)) }
        }
    }

    private func exchange(_ head: String, _ port: Int) -> String? {
        guard let socket = HTTPProbe.connect(port: port) else { return nil }
        defer { close(socket) }
        var patience = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        let bytes = Array(head.utf8)
        guard write(socket, bytes, bytes.count) == bytes.count else { return nil }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(socket, &buffer, buffer.count)
            if count == 0 { return String(decoding: answer, as: UTF8.self) }
            if count < 0 { return nil }
            answer += buffer.prefix(count)
        }
    }

    @Test(arguments: [
        ("GET /livez HTTP/1.1", "Host: a\r\nConnection: close", "200"),
        ("GET /livez HTTP/1.1", "Host: a\r\nConnection: Close", "200"),
        ("GET /livez HTTP/1.1", "Host: a\r\nConnection: keep-alive, CLOSE", "200"),
        ("GET /livez HTTP/1.1", "Host: a\r\nConnection: close, TE", "200"),
        ("GET /livez HTTP/1.1", "Host: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c", "200"),
        ("GET /livez HTTP/1.1", "Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket", "200"),
        ("CONNECT a:443 HTTP/1.1", "Host: a", "404"), ("GET /livez HTTP/1.0", "Host: a", "200"),
        ("GET /livez HTTP/1.0", "X: y", "200"),
        ("GET /livez HTTP/1.0", "Connection: keep-alive\r\nTransfer-Encoding: chunked", "200"),
        ("GET /livez HTTP/1.1", "X: y", "400"), ("GET /livez HTTP/1.1", "Host: a\r\nHost: a", "400"),
        ("GET /livez HTTP/1.0", "Host: a\r\nHOST: b", "400"),
    ])
    func theLastRequestOfAConnection(_ line: String, _ headers: String, _ status: String) async throws {
        try await withServer { port in
            let body = headers.contains("chunked") ? "0\r\n\r\n" : ""
            let one = try #require(await answer("\(line)\r\n\(headers)\r\n\r\n\(body)", port: port))
            #expect(one.hasPrefix("HTTP/1.1 \(status) ") && one.lowercased().contains("connection: close"))
            // What stands behind it is not read as a request.
            let two = String(repeating: "\(line)\r\n\(headers)\r\n\r\n\(body)", count: 2)
            let first = try #require(await answer(two, port: port))
            #expect(first.components(separatedBy: "HTTP/1.1 ").count == 2)
        }
    }

    @Test func aConnectionGoesOnOtherwise() async throws {
        try await withServer { port in
            let heads =
                "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: TE, not-close\r\n\r\n"
                + "GET /livez HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"
                + "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            let all = try #require(await answer(heads, port: port))
            #expect(all.components(separatedBy: "HTTP/1.1 200 ").count == 4)
            #expect(all.lowercased().components(separatedBy: "connection: keep-alive").count == 2)
        }
    }

    /// More than may be held: they are read as they are answered.
    @Test func manyRequestsAtOnceAreAllAnswered() async throws {
        try await withServer { port in
            let heads =
                String(repeating: "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n", count: 500)
                + "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            let all = try #require(await answer(heads, port: port))
            #expect(all.components(separatedBy: "HTTP/1.1 200 ").count == 502)
        }
    }

    @Test func probesAreAnsweredWhateverElseIsConnected() async throws {
        try await withServer { port in
            var sockets: [Int32] = []
            defer { for socket in sockets { close(socket) } }
            let start = Array("GET /livez HTT".utf8)
            for number in 0..<200 {
                let socket = try #require(HTTPProbe.connect(port: port))
                sockets.append(socket)
                if number % 2 == 0 { _ = write(socket, start, start.count) }
            }
            #expect(await HTTPProbe.send("/livez", port: port)?.status == "200")
        }
    }

    /// Whoever else comes meanwhile, in any number.
    @Test func whoWaitsForTheFirstAnswerGetsIt() async throws {
        let (started, continuation) = AsyncStream.makeStream(of: Void.self)
        let othersAreThere = Mutex(false)
        let slow: @Sendable () -> HealthReport = {
            continuation.yield()
            while !othersAreThere.withLock({ $0 }) { usleep(1000) }  // stands for a machine that is busy just now
            return HealthReport()
        }
        try await withServer(health: slow) { port in
            async let probe = HTTPProbe.send("/livez", port: port)
            _ = await started.first { _ in true }
            var sockets: [Int32] = []
            defer { for socket in sockets { close(socket) } }
            for _ in 0..<130 {
                sockets.append(try #require(HTTPProbe.askWithoutReading("/metrics", times: 10, port: port)))
            }
            // They have been let in when one more is served.
            #expect(await HTTPProbe.send("/metrics", port: port)?.status == "200")
            othersAreThere.withLock { $0 = true }
            #expect(await probe?.status == "200")
        }
    }

    @Test func shutdownBeforeTheServerRuns() async throws {
        for _ in 0..<20 {
            let server = HealthServer(
                program: "link", port: 0, health: { HealthReport() }, metrics: { "" }, logger: .quiet)
            let group = ServiceGroup(services: [server], logger: .quiet)
            async let running: Void = group.run()
            await group.triggerGracefulShutdown()
            try await running
        }
    }

    @Test func aTakenPortIsAnError() async throws {
        try await withServer { port in
            let second = HealthServer(
                program: "link", port: port, health: { HealthReport() }, metrics: { "" }, logger: .quiet)
            await #expect(throws: (any Error).self) { try await second.run() }
            #expect(await HTTPProbe.send("/livez", port: port)?.status == "200")
        }
    }

    @Test func cancellationEndsTheServer() async throws {
        let (ports, continuation) = AsyncStream.makeStream(of: Int.self)
        let server = HealthServer(
            program: "link", port: 0, health: { HealthReport() }, metrics: { "" }, logger: .quiet,
            onBound: { continuation.yield($0) })
        let task = Task { try await server.run() }
        let port = try #require(await ports.first { _ in true })
        task.cancel()
        _ = await task.result
        #expect(HTTPProbe.connect(port: port) == nil)
    }

    /// It is closed, and NIO does not end the process.
    @Test func aConnectionThatComesWhileTheServerEndsIsClosed() async throws {
        let channels = ClientChannel(
            http: HTTP1Channel(responder: { _, _, _ in }), connections: Connections(server: "test", limit: 10),
            timeout: .seconds(60), words: { _ in ("", []) })
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let server = try await ServerBootstrap(group: group).childChannelInitializer { channel in
            // As Hummingbird does when it accepts no more.
            channels.setup(channel: channel, logger: .quiet).map { _ in }
        }.bind(host: "127.0.0.1", port: 0).get()
        #expect(await answer("", port: server.localAddress?.port ?? 0) == "")
        try await group.shutdownGracefully()
    }

    /// Whenever they come.
    @Test func cancellationEndsTheServerBesideConnections() async throws {
        for _ in 0..<20 {
            let (ports, continuation) = AsyncStream.makeStream(of: Int.self)
            let server = HealthServer(
                program: "link", port: 0, health: { HealthReport() }, metrics: { "" }, logger: .quiet,
                onBound: { continuation.yield($0) })
            let task = Task { try await server.run() }
            let port = try #require(await ports.first { _ in true })
            let clients = DispatchGroup()
            for _ in 0..<4 {
                DispatchQueue.global().async(group: clients) {
                    while let socket = HTTPProbe.connect(port: port) { close(socket) }
                }
            }
            usleep(2000)
            task.cancel()
            _ = await task.result
            await withCheckedContinuation { done in
                clients.notify(queue: .global()) { done.resume() }
            }
        }
    }
}
