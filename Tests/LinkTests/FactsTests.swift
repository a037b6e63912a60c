// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime
import Storage
import TestKit
import Testing
import WireJSON

@testable import Link

/// L81.
@Suite struct FactsTests {
    private static func chain(_ id: CommandID) -> DecisionChain {
        DecisionChain(StoredKey(CommandKey(app: "demo", source: "test", id: id)))
    }

    @Test(arguments: SQLEngine.allCases) func anInstallAUserAndAnExternalIDAreTold(_ engine: SQLEngine) throws {
        let store = try LinkTestStore(engine)
        var state = LinkState()
        var chain = Self.chain("c1")
        let install = Fixture.install("i1", of: "u1")
        for change: LinkState.Change in [
            .person(Person(userID: "u1", app: "demo", externalID: "anna")), .install(install),
            .person(Person(userID: "u2", app: "other", externalID: "anna")),
            .install(Fixture.install("i1", app: "other")),
        ] {
            state.chain(change, &chain)
            state.apply(change)
        }
        let saved = state
        try store.database.transaction { try LinkStore(transaction: $0).save(saved) }
        for (id, kinds, heads) in [
            ("i1", ["install"], 1), ("u1", ["user", "install"], 1), ("anna", ["user", "install"], 1), ("u2", [], 0),
            ("i2", [], 0), ("", [], 0),
        ] {
            let subject = try store.database.transaction {
                try LinkService().facts(about: id, of: Fixture.app, in: $0)
            }
            #expect(subject.state.compactMap { $0["kind"]?.stringValue } == kinds, "\(id)")
            #expect(subject.heads.count == heads, "\(id)")
            if heads > 0 { #expect(subject.heads[0] != .none) }
        }
    }

    /// Of an erasure that the sync service began, that one's certificate tells the end.
    @Test(arguments: [
        (Erasure.Part.done, Erasure.Part.done, ["completedAt"]), (.done, .asked(forward: "f1"), ["isUnderWay"]),
        (.done, .untold, []), (.asked(forward: "f1"), .untold, ["isUnderWay"]),
    ])
    func anErasureIsToldAsFarAsItIsKnown(_ user: Erasure.Part, _ sync: Erasure.Part, _ said: [String]) throws {
        let store = try LinkTestStore(.sqlite)
        let moment = Timestamp(milliseconds: 1000)
        var certificate = ErasureCertificate(requestId: "r1", erasedAt: moment, done: .init())
        certificate.completedAt = user == .done && (sync == .done || sync == .untold) ? moment : nil
        var person = Person(userID: "u1", app: "demo", externalID: nil)
        person.isErased = true
        var erasure = Erasure(
            app: "demo", userID: "u1", moment: moment, externalID: nil, installIDs: [], certificate: certificate)
        (erasure.user, erasure.sync) = (user, sync)
        var state = LinkState()
        state.apply(.person(person))
        state.apply(.erasure(erasure))
        let saved = state
        try store.database.transaction { try LinkStore(transaction: $0).save(saved) }
        let row = try #require(
            try store.database.transaction { try LinkService().facts(about: "u1", of: Fixture.app, in: $0) }.state.first
        )
        #expect(row["erasedAt"]?.stringValue == moment.rfc3339)
        #expect(["completedAt", "isUnderWay"].filter { row[$0] != nil } == said)
    }

    /// What is decided about an install is a fact of whoever has it then, and of whoever had it before.
    @Test func anInstallsDecisionsAreItsUsersToo() {
        var state = LinkState(
            installs: [Fixture.install("i1", of: "u1")],
            persons: [
                Person(userID: "u1", app: "demo", externalID: "anna"), Person(userID: "u2", app: "demo"),
                Person(userID: "u3", app: "demo"),
            ])
        var chain = Self.chain("c1")
        state.chain(.install(Fixture.install("i1", of: "u2")), &chain)
        #expect(state.persons.last("u1") != .none && state.persons.last("u2") != .none)
        #expect(state.persons.last("u3") == .none)
        #expect(chain.before.isEmpty && chain.mentions.isEmpty)
        var next = Self.chain("c2")
        state.chain(.person(Person(userID: "u1", app: "demo", externalID: "annette")), &next)
        #expect(next.mentions.map(\.text) == ["anna"])
        #expect(next.before.count == 8)
    }
}
