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

        func enter(
            _ connections: Connections, of owner: String? = "one", _ activity: Connections.Activity = .idle
        ) -> Connections.Place {
            let place = connections.enter(of: owner) { self.closed.store(true, ordering: .relaxed) }
            if activity != .unanswered { connections.note(place, activity) }
            return place
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
        connections.note(first, .served)
        connections.note(first, .idle)
        _ = clients[3].enter(connections)
        #expect(clients.map(\.isOpen) == [true, false, true, true])
        #expect(connections.count == 3)
    }

    @Test func whoIsAnsweredKeepsItsPlace() {
        let connections = connections()
        let clients = (0..<4).map { _ in Client() }
        for client in clients.dropLast() { _ = client.enter(connections, .served) }
        _ = clients[3].enter(connections)
        #expect(clients.map(\.isOpen) == [true, true, true, false], "then the new one goes")
        #expect(connections.count == 3)
    }

    /// Where answers never take long: the idle first, then who asks for more, then whose last answer is the longest ago,
    /// and then who has just come.
    @Test func whereBusyOnesAreNotKeptTheyGoInTheirOrder() {
        let connections = Connections(server: "test", limit: 5, keepsBusy: false)
        let clients = (0..<5).map { _ in Client() }
        let places = clients.map { $0.enter(connections, .served) }
        for (place, activity) in zip(places, [.served, .new, nil, .insistent, .idle] as [Connections.Activity?]) {
            if let activity { connections.note(place, activity) }
        }
        let later = (0..<5).map { _ in Client() }
        for (client, number) in zip(later, [4, 3, 2, 0, 1]) {
            #expect(clients[number].isOpen)
            _ = client.enter(connections, .unanswered)
            #expect(!clients[number].isOpen)
        }
        #expect(clients.allSatisfy { !$0.isOpen } && later.allSatisfy { $0.isOpen })
    }

    /// And where all wait for their first answer, nobody goes before it is there.
    @Test func whereBusyOnesAreNotKeptTheFirstAnswerIsGiven() {
        let connections = Connections(server: "test", limit: 2, keepsBusy: false)
        let clients = (0..<4).map { _ in Client() }
        let places = clients.map { $0.enter(connections, .unanswered) }
        #expect(clients.allSatisfy { $0.isOpen })
        for place in places.reversed() { connections.note(place, .idle) }
        #expect(clients.map(\.isOpen) == [true, true, false, false] && connections.count == 2)
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
                connections.note(others[number % 2000], .served)
                connections.note(others[number % 2000], .idle)
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
            var activity: Connections.Activity
            var since: Int
        }
        var random = SplitMix64(seed: testSeed &+ number)
        let keepsBusy = number % 2 == 0
        let connections = Connections(server: "test", limit: 8, limitOfOwner: 3, keepsBusy: keepsBusy)
        let lines: [[Connections.Activity]] =
            keepsBusy ? [[.idle, .insistent, .new]] : [[.idle], [.insistent], [.served], [.new]]
        var all: [Known] = []
        /// After the one at an index has come or moved.
        func makeRoom(_ index: Int) {
            let ofOwner = all.filter { $0.owner == all[index].owner }
            let crowd = all[index].owner != nil && ofOwner.count > 3 ? ofOwner : all.count > 8 ? all : []
            let inOrder = lines.flatMap { line in
                crowd.filter { line.contains($0.activity) }.sorted { $0.since < $1.since }
            }
            guard let last = inOrder.first ?? (keepsBusy && !crowd.isEmpty ? all[index] : nil) else { return }
            #expect(!last.client.isOpen)
            all.removeAll { $0.client === last.client }
            // It notices later, and is no more by then.
            connections.note(last.place, .idle)
            connections.leave(last.place)
        }
        for turn in 0..<200 {
            switch (all.indices.randomElement(using: &random), Int.random(in: 0..<6, using: &random)) {
            case (_, 0...2):
                let (client, owner) = (Client(), ["one", "two", nil].randomElement(using: &random) ?? nil)
                let place = client.enter(connections, of: owner, .unanswered)
                all.append(Known(client: client, place: place, owner: owner, activity: .unanswered, since: turn))
                makeRoom(all.count - 1)
            case (let chosen?, 3...4):
                let activity = Connections.Activity.allCases.randomElement(using: &random) ?? .idle
                connections.note(all[chosen].place, activity)
                (all[chosen].activity, all[chosen].since) = (activity, turn)
                makeRoom(chosen)
            case (let chosen?, _): connections.leave(all.remove(at: chosen).place)
            default: break
            }
            #expect(connections.count == all.count && all.allSatisfy(\.client.isOpen))
        }
    }
}
