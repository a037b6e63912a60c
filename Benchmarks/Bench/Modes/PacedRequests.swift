// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Glibc

/// Sends HTTP requests when they are due, over connections that are kept, and measures how long each answer takes
/// from then. One thread, which looks after all connections. A request that finds no free connection waits for
/// one, which counts.
final class PacedRequests {
    struct Outcome {
        var times = Times()
        /// Requests by the status of their answer.
        var statuses: [Int: Int] = [:]
        var missing = 0
        var waited = 0
        var sendDelay = Duration.zero
    }

    private struct Connection {
        /// The request that was sent and is not answered.
        var request: Int?
        var received: [UInt8] = []
    }

    private let requests: [[UInt8]]
    private let rate: Int
    private let warmUp: Int
    private var polls: [pollfd]
    private var connections: [Connection]
    private var free: [Int]
    private var outcome = Outcome()
    private var answered = 0

    /// - Parameter warmUp: how many of the first requests are not measured.
    init(requests: [[UInt8]], port: UInt16, connections count: Int, rate: Int, warmUp: Int) throws {
        self.requests = requests
        self.rate = rate
        self.warmUp = warmUp
        polls = try (0..<count).map { _ in pollfd(fd: try Self.connect(port), events: Int16(POLLIN), revents: 0) }
        connections = Array(repeating: Connection(), count: count)
        free = Array(0..<count)
    }

    deinit { for poll in polls { close(poll.fd) } }

    func run() throws -> Outcome {
        let start = ContinuousClock.now + .milliseconds(200)
        let interval = Duration.seconds(1) / rate
        let end = start + interval * requests.count + .seconds(10)
        var next = 0
        var hasWaited = false
        while answered < requests.count, ContinuousClock.now < end {
            while next < requests.count, ContinuousClock.now >= start + interval * next {
                guard !free.isEmpty else {
                    hasWaited = true
                    break
                }
                // All take turns: the gateway closes those that are not used.
                let connection = free.removeFirst()
                let late = ContinuousClock.now - (start + interval * next)
                if hasWaited { outcome.waited += 1 } else { outcome.sendDelay = max(outcome.sendDelay, late) }
                hasWaited = false
                try send(next, over: connection)
                next += 1
            }
            try receive(start, interval)
        }
        outcome.missing = requests.count - answered
        return outcome
    }

    // MARK: Sockets

    private static func connect(_ port: UInt16) throws -> Int32 {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard socket >= 0, status == 0 else { throw BenchError("no connection to port \(port): errno \(errno)") }
        var on: Int32 = 1
        setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        return socket
    }

    private func send(_ number: Int, over index: Int) throws {
        // Small enough for the socket's buffer: this does not block.
        let sent = Glibc.send(polls[index].fd, requests[number], requests[number].count, Int32(MSG_NOSIGNAL))
        guard sent == requests[number].count else { throw BenchError("a request could not be sent: errno \(errno)") }
        connections[index].request = number
    }

    private func receive(_ start: ContinuousClock.Instant, _ interval: Duration) throws {
        // Waiting for sockets is possible in whole milliseconds only, and the next request may be due before.
        usleep(200)
        guard poll(&polls, nfds_t(polls.count), 0) > 0 else { return }
        var buffer = [UInt8](repeating: 0, count: 16_384)
        for index in polls.indices where polls[index].revents != 0 {
            let count = recv(polls[index].fd, &buffer, buffer.count, 0)
            guard count > 0, let request = connections[index].request else {
                throw BenchError("the gateway closed a connection")
            }
            connections[index].received += buffer.prefix(count)
            guard let status = Self.status(of: connections[index].received) else { continue }
            let elapsed = ContinuousClock.now - (start + interval * request)
            connections[index] = Connection()
            free.append(index)
            answered += 1
            outcome.statuses[status, default: 0] += 1
            if request >= warmUp { outcome.times.add(elapsed) }
        }
    }

    /// The status of an answer that is complete; its length must be in a header.
    private static func status(of answer: [UInt8]) -> Int? {
        guard let end = answer.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        let head = String(decoding: answer[..<end.lowerBound], as: UTF8.self).lowercased()
        let lines = head.split(separator: "\r\n")
        let length = lines.first { $0.hasPrefix("content-length:") }
            .flatMap { Int($0.dropFirst("content-length:".count).trimmingCharacters(in: .whitespaces)) }
        guard answer.count >= end.upperBound + (length ?? 0) else { return nil }
        return lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    }
}
