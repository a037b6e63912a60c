// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Logging
import ServiceLifecycle
import Synchronization
import TestKit
import Testing
import Tracing

@testable import Observability

@Suite(.timeLimit(.minutes(5))) struct SpanExporterTests {
    private func exporter(_ port: Int, queue: Int = 100, batch: Int = 10, delay: Duration) -> SpanExporter {
        var settings = Traced.settings(port)
        (settings.queueSize, settings.batchSize, settings.delay) = (queue, batch, delay)
        settings.timeout = .seconds(5)
        return SpanExporter(settings, logger: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })
    }

    private func add(_ count: Int, to exporter: SpanExporter) {
        for _ in 0..<count {
            exporter.add(
                SpanRecord(context: .random(isSampled: true), parent: nil, name: "s", kind: .internal, start: 1))
        }
    }

    /// Runs it until the body is done, and then to its end.
    private func run(_ exporter: SpanExporter, _ body: @escaping @Sendable () async throws -> Void) async throws {
        let group = ServiceGroup(
            configuration: .init(
                services: [.init(service: exporter)], logger: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() }))
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            try await body()
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }

    private func until(_ isSo: () -> Bool) async throws {
        for _ in 0..<2000 where !isSo() { try await Task.sleep(for: .milliseconds(10)) }
        #expect(isSo())
    }

    @Test func whatWaitsIsSentWhenTheDelayIsOverOrTheBatchIsFull() async throws {
        let receiver = try CollectorStub()
        let exporter = exporter(receiver.port, delay: .milliseconds(50))
        try await run(exporter) {
            add(25, to: exporter)
            try await until { receiver.bodies.count >= 3 }
        }
        #expect(receiver.bodies.count == 3 && exporter.waiting.isEmpty && exporter.dropped == 0)
        let patient = self.exporter(receiver.port, delay: .seconds(600))
        try await run(patient) {
            add(10, to: patient)
            try await until { receiver.bodies.count >= 4 }
        }
    }

    /// Whoever ends a span does not wait for that.
    @Test func theEndOfTheProcessSendsWhatWaits() async throws {
        let receiver = try CollectorStub()
        let exporter = exporter(receiver.port, delay: .seconds(600))
        try await run(exporter) { add(3, to: exporter) }
        #expect(receiver.bodies.count == 1 && exporter.waiting.isEmpty)
        // Nobody would send it any more.
        add(1, to: exporter)
        #expect(exporter.dropped == 1)
    }

    @Test func whatDoesNotFitIsDropped() {
        let exporter = exporter(1, queue: 5, delay: .seconds(600))
        add(8, to: exporter)
        #expect(exporter.waiting.count == 5 && exporter.dropped == 3)
    }

    @Test func aCollectorThatIsAwayGetsWhatWaitedWhenItIsBack() async throws {
        let receiver = try CollectorStub()
        receiver.status = 503
        let exporter = exporter(receiver.port, queue: 20, delay: .milliseconds(10))
        try await run(exporter) {
            add(10, to: exporter)
            try await until { receiver.bodies.count >= 1 }
            add(30, to: exporter)
            receiver.status = 200
            try await until { exporter.waiting.isEmpty }
        }
        // Ten were on their way, twenty waited.
        #expect(exporter.dropped == 10)
        #expect(receiver.taken == 3)
    }

    @Test func whatACollectorDoesNotWantIsNotSentAgain() async throws {
        let receiver = try CollectorStub()
        receiver.status = 400
        let exporter = exporter(receiver.port, delay: .milliseconds(10))
        try await run(exporter) {
            add(10, to: exporter)
            try await until { exporter.dropped == 10 }
        }
        #expect(receiver.bodies.count == 1)
    }

    /// Nobody listens, nobody answers, or what answers speaks something else. Whoever waited for that would wait for ever;
    /// how long it takes, `test_traces.py` knows: here other tests may keep all threads.
    @Test(arguments: [nil, 0, 1] as [Int?]) func theEndIsNotKeptUp(_ kind: Int?) async throws {
        let receiver = try kind.map { try CollectorStub(isSilent: $0 == 0, text: $0 == 1 ? "what?\r\n" : nil) }
        let exporter = exporter(receiver?.port ?? 1, delay: .milliseconds(10))
        try await run(exporter) {
            add(15, to: exporter)
            try await Task.sleep(for: .milliseconds(100))
        }
        #expect(exporter.dropped + exporter.waiting.count >= 5)
    }
}

/// Takes what is posted, one connection after the other.
final class CollectorStub: Sendable {
    private struct State {
        var status = 200
        var taken = 0
        var bodies: [[UInt8]] = []
        var heads: [String] = []
    }

    private let descriptor: Int32
    let port: Int
    private let state = Mutex(State())

    struct NoPort: Error {}

    /// - Parameters:
    ///   - isSilent: whether it never answers.
    ///   - text: what it answers instead of HTTP.
    init(isSilent: Bool = false, text: String? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) | listen(descriptor, 16) | getsockname(descriptor, $0, &length)
            }
        }
        guard result == 0 else { throw NoPort() }
        port = Int(UInt16(bigEndian: address.sin_port))
        let thread = Thread { [weak self] in
            while true {
                let client = accept(descriptor, nil, nil)
                guard client >= 0 else { return }
                self?.serve(client, isSilent, text)
                if !isSilent { close(client) }
            }
        }
        thread.start()
    }

    deinit {
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }

    var status: Int {
        get { state.withLock(\.status) }
        set { state.withLock { $0.status = newValue } }
    }

    /// What came, whether it was taken or not.
    var bodies: [[UInt8]] { state.withLock(\.bodies) }
    var heads: [String] { state.withLock(\.heads) }
    /// How many it took.
    var taken: Int { state.withLock(\.taken) }

    private func serve(_ client: Int32, _ isSilent: Bool, _ text: String?) {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(client, &piece, piece.count, 0)
            if count <= 0 { return }
            bytes += piece[..<count]
            guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { continue }
            let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self)
            let length = head.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }?.dropFirst(16)
            let body = bytes[end.upperBound...]
            guard let length, let expected = Int(length), body.count >= expected else { continue }
            let status = state.withLock { state in
                state.heads.append(head)
                state.bodies.append(Array(body))
                if state.status == 200 { state.taken += 1 }
                return state.status
            }
            if isSilent { return }
            let answer = Array((text ?? "HTTP/1.1 \(status) so\r\nContent-Length: 0\r\n\r\n").utf8)
            _ = send(client, answer, answer.count, Int32(MSG_NOSIGNAL))
            return
        }
    }
}
