// SPDX-License-Identifier: Apache-2.0

import Synchronization
import TestKit
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

    /// Where answers never take long, somebody who asks without a pause keeps nobody out.
    @Test func whereBusyOnesAreNotKeptTheFirstMakesRoom() {
        let connections = Connections(server: "test", limit: 3, keepsBusy: false)
        let clients = (0..<4).map { _ in Client() }
        let places = clients.dropLast().map { $0.enter(connections) }
        for place in places { connections.isBusy(place) }
        connections.isBusy(places[0])
        _ = clients[3].enter(connections)
        #expect(clients.map(\.isOpen) == [true, false, true, true])
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

    /// Also where all are idle and each new one has another one closed.
    @Test func aFloodIsDealtWithQuickly() {
        let connections = connections(limit: 4000, limitOfOwner: 2000)
        let others = (0..<2000).map { _ in Client().enter(connections, of: nil) }
        let taken = ContinuousClock().measure {
            for number in 0..<20_000 {
                _ = Client().enter(connections)
                connections.isBusy(others[number % 2000])
                connections.isIdle(others[number % 2000])
            }
        }
        #expect(connections.count == 4000 && taken < .seconds(10), "took \(taken)")
    }

    /// The same as a list that is looked through does.
    @Test(arguments: 0..<100) func theModelAgrees(_ number: UInt64) {
        struct Known {
            var client: Client
            var place: Connections.Place
            var owner: String?
            /// `nil` while it is answered.
            var idleSince: Int?
        }
        var random = SplitMix64(seed: testSeed &+ number)
        let connections = connections(limit: 8, limitOfOwner: 3)
        var all: [Known] = []
        for turn in 0..<200 {
            let chosen = all.indices.randomElement(using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0...2:
                let (client, owner) = (Client(), ["one", "two", nil].randomElement(using: &random) ?? nil)
                let place = client.enter(connections, of: owner)
                all.append(Known(client: client, place: place, owner: owner, idleSince: turn))
                let ofOwner = all.filter { $0.owner == owner }
                let crowd = owner != nil && ofOwner.count > 3 ? ofOwner : all.count > 8 ? all : []
                let last = crowd.filter { $0.idleSince != nil }.min { $0.idleSince ?? 0 < $1.idleSince ?? 0 }
                if let last {
                    #expect(!last.client.isOpen)
                    all.removeAll { $0.client === last.client }
                    // It notices later, and is no more by then.
                    connections.isIdle(last.place)
                    connections.leave(last.place)
                }
            case 3:
                guard let chosen else { continue }
                connections.isBusy(all[chosen].place)
                all[chosen].idleSince = nil
            case 4:
                guard let chosen else { continue }
                connections.isIdle(all[chosen].place)
                all[chosen].idleSince = turn
            default:
                guard let chosen else { continue }
                connections.leave(all.remove(at: chosen).place)
            }
            #expect(connections.count == all.count && all.allSatisfy(\.client.isOpen))
        }
    }
}
