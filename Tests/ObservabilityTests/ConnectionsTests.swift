// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOHTTP1
import Synchronization
import Testing

@testable import Observability

@Suite struct ConnectionsTests {
    /// A connection that knows whether it was closed.
    private final class Client: Sendable {
        private let closed = Atomic(false)
        var isOpen: Bool { !closed.load(ordering: .relaxed) }

        func enter(_ connections: Connections, from address: String = "192.0.2.1") throws -> Connections.Place {
            connections.enter(from: try SocketAddress(ipAddress: address, port: 4711)) {
                self.closed.store(true, ordering: .relaxed)
            }
        }
    }

    private func connections(limit: Int = 3, limitOfOwner: Int = .max) -> Connections {
        Connections(server: "test", limit: limit, limitOfOwner: limitOfOwner) { $0?.ipAddress }
    }

    @Test func theLongestIdleMakesRoom() throws {
        let connections = connections()
        let clients = (0..<4).map { _ in Client() }
        let first = try clients[0].enter(connections)
        for client in clients[1..<3] { _ = try client.enter(connections) }
        connections.isBusy(first)
        connections.isIdle(first)
        _ = try clients[3].enter(connections)
        #expect(clients.map(\.isOpen) == [true, false, true, true])
        #expect(connections.count == 3)
    }

    @Test func whoIsAnsweredKeepsItsPlace() throws {
        let connections = connections()
        let clients = (0..<4).map { _ in Client() }
        for client in clients.dropLast() { connections.isBusy(try client.enter(connections)) }
        _ = try clients[3].enter(connections)
        #expect(clients.map(\.isOpen) == [true, true, true, false], "then the new one goes")
        #expect(connections.count == 3)
    }

    @Test func anOwnerThatHasTooManyLosesItsOwn() throws {
        let connections = connections(limit: 100, limitOfOwner: 2)
        let (other, clients) = (Client(), (0..<4).map { _ in Client() })
        _ = try other.enter(connections, from: "192.0.2.2")
        let places = try clients.map { try $0.enter(connections) }
        #expect(clients.map(\.isOpen) == [false, false, true, true] && other.isOpen)
        // Who was told to go and then leaves is not counted twice.
        for place in places { connections.leave(place) }
        #expect(connections.count == 1)
        let again = (0..<2).map { _ in Client() }
        for client in again { _ = try client.enter(connections) }
        #expect(again.map(\.isOpen) == [true, true])
    }

    // MARK: What a request says about its connection

    private func head(_ version: HTTPVersion = .http1_1, _ headers: HTTPHeaders, _ method: HTTPMethod = .GET)
        -> HTTPRequestHead
    {
        HTTPRequestHead(version: version, method: method, uri: "/", headers: headers)
    }

    @Test(arguments: ["close", "Close", "CLOSE", "close, TE", "keep-alive, close", "TE,close"])
    func theLastRequest(_ connection: String) {
        #expect(head(["Connection": connection]).endsConnection)
    }

    @Test(arguments: ["", "keep-alive", "TE", "closed", "not-close"])
    func notTheLastRequest(_ connection: String) {
        #expect(!head(["Connection": connection]).endsConnection)
        #expect(head(.http1_0, ["Connection": connection]).endsConnection == (connection != "keep-alive"))
    }

    @Test func whatNothingCanBeReadBehind() {
        #expect(head(["Connection": "Upgrade", "Upgrade": "h2c"]).endsConnection)
        #expect(head([:], .CONNECT).endsConnection)
        #expect(head(.http1_0, ["Connection": "keep-alive", "Transfer-Encoding": "chunked"]).endsConnection)
        #expect(!head(["Transfer-Encoding": "chunked"]).endsConnection)
    }

    @Test func hosts() {
        #expect(head(["Host": "a"]).namesItsHost && head(["Host": ""]).namesItsHost)
        #expect(!head([:]).namesItsHost && !head(["Host": "a", "host": "a"]).namesItsHost)
        #expect(head(.http1_0, [:]).namesItsHost && !head(.http1_0, ["Host": "a", "host": "b"]).namesItsHost)
    }
}
