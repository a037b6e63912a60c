// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing
import WireJSON

@testable import Runtime

/// What is left of others' events, on a real database (docs/loop.md "Inbox and outbox").
@Suite struct CommutingEventsTests {
    /// Where it does not matter how often an event is read, nobody need know that nothing came of one.
    @Test func anEventOfNoConsequenceLeavesNoRow() throws {
        let listener = try Room<Commuting>()
        #expect(try listener.hear([1: "nobody", 2: "known", 3: "nobody"]) == [2])
        #expect(try listener.rows() == [2])
        // The same again: what came of it is known, the rest comes to nothing again.
        #expect(try listener.hear([4: "nobody", 5: "known"], ids: 1) == [5])
        #expect(try listener.rows() == [2, 5])
    }

    /// Elsewhere, what an event came to when it was read first is what it came to.
    @Test func otherwiseEveryEventLeavesOne() throws {
        let listener = try Room<Ordered>()
        #expect(try listener.hear([1: "nobody", 2: "known"]) == [1, 2])
        #expect(try listener.rows() == [1, 2])
    }
}

private protocol Order: Sendable { static var commute: Bool { get } }
private enum Commuting: Order { static let commute = true }
private enum Ordered: Order { static let commute = false }

/// Counts what it hears of whom it knows.
private struct Listener<Kind: Order>: CommandService {
    static var name: String { "listener" }
    static var migrations: [Migration] { [] }
    static var eventsCommute: Bool { Kind.commute }
    static var inputs: [Input<Happened>] { [.event(Happened.self, of: "peer") { $0 }] }

    struct Happened: EventMessage {
        static var type: String { "identity.peer.happened.v1" }
        var who: String
        var subject: String { who }
    }

    struct State: ServiceState {
        mutating func apply(_ change: String) {}
    }

    func load(_ commands: [(Happened, DecisionContext)], in transaction: any SQLTransaction) -> State { State() }

    func decide(_ event: Happened, _ state: State, _ context: DecisionContext) -> Decision<String> {
        Decision(.noted, changes: event.who == "known" ? [event.who] : [])
    }

    func save(_ state: State, in transaction: any SQLTransaction) {}
}

private struct Room<Kind: Order> {
    private let store: ServiceStore<Listener<Kind>>
    private let topic = Topics().events("peer")

    init() throws { store = try ServiceStore(.sqlite) }

    /// One batch.
    /// - Parameters:
    ///   - heard: whom the event at an offset is about.
    ///   - ids: the events' ids begin behind this number; as their offsets, if there is none.
    /// - Returns: the offsets of the entries.
    func hear(_ heard: [Int64: String], ids: Int64? = nil) throws -> [Int64] {
        let reader = InboundReader<Listener<Kind>>(authenticator: Fixture.authenticator(), topics: Topics())
        let decider = BatchDecider(
            service: Listener<Kind>(), reader: reader,
            writer: MessageWriter(service: "listener", topics: Topics(), keys: Fixture.keys),
            vault: OutboxVault(Fixture.keys), secrets: .none, cluster: "cluster", incarnations: [:])
        let records = try heard.sorted { $0.key < $1.key }.enumerated().map { place, event in
            let id = ids.map { $0 + Int64(place) } ?? event.key
            let attributes = EventAttributes(
                id: "e\(id)", source: "identitybus/peer", type: Listener<Kind>.Happened.type, appID: "demo")
            return try Fixture.record(
                attributes, ["who": .string(event.value)], signedBy: Signature.eventsKeyID, offset: event.key,
                topic: topic)
        }
        return try store.database.transaction { transaction in
            try decider.decide(records.map { reader.read($0, now: Fixture.now) }, in: transaction, now: Fixture.now)
        }.map(\.position.offset)
    }

    /// The offsets that the inbox knows.
    func rows() throws -> [Int64] {
        try store.database.transaction { transaction in
            try transaction.query("SELECT log_offset FROM inbox_1 ORDER BY log_offset").map { try $0.integer(0) }
        }
    }
}
