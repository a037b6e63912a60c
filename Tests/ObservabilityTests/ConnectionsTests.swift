// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing

@testable import Observability

@Suite struct ConnectionsTests {
    /// A connection that knows whether it was closed.
    private final class Client: Sendable {
        private let closed = Atomic(false)
        var isOpen: Bool { !closed.load(ordering: .relaxed) }

        func enter(_ connections: Connections, of owner: String? = "one") -> Connections.Place {
            connections.enter(of: owner) { self.closed.store(true, ordering: .relaxed) }
        }
    }

    private func connections(limit: Int = 3, limitOfOwner: Int = .max) -> Connections {
        Connections(server: "test", limit: limit, limitOfOwner: limitOfOwner)
    }

    @Test func theLongestIdleMakesRoom() {
        let connections = connections()
        let clients = (0..<4).map { _ in Client() }
        let first = clients[0].enter(connections)
        for client in clients[1..<3] { _ = client.enter(connections) }
        connections.isBusy(first)
        connections.isIdle(first)
        _ = clients[3].enter(connections)
        #expect(clients.map(\.isOpen) == [true, false, true, true])
        #expect(connections.count == 3)
    }

    @Test func whoIsAnsweredKeepsItsPlace() {
        let connections = connections()
        let clients = (0..<4).map { _ in Client() }
        for client in clients.dropLast() { connections.isBusy(client.enter(connections)) }
        _ = clients[3].enter(connections)
        #expect(clients.map(\.isOpen) == [true, true, true, false], "then the new one goes")
        #expect(connections.count == 3)
    }

    @Test func anOwnerThatHasTooManyLosesItsOwn() {
        let connections = connections(limit: 100, limitOfOwner: 2)
        let (other, clients) = (Client(), (0..<4).map { _ in Client() })
        _ = other.enter(connections, of: "other")
        let places = clients.map { $0.enter(connections) }
        #expect(clients.map(\.isOpen) == [false, false, true, true] && other.isOpen)
        // Who was told to go and then leaves is not counted twice.
        for place in places { connections.leave(place) }
        #expect(connections.count == 1)
        let again = (0..<2).map { _ in Client() }
        for client in again { _ = client.enter(connections) }
        #expect(again.map(\.isOpen) == [true, true])
    }
}
