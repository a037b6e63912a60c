// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime
import Storage
import TestKit
import Testing
import WireJSON

@testable import User

/// U94.
@Suite struct FactsTests {
    @Test(arguments: SQLEngine.allCases) func installsAndCodesAreTold(_ engine: SQLEngine) throws {
        let store = try UserTestStore(engine)
        let install = Fixture.present(Fixture.account())
        let user = try #require(install.facts.userID)
        let state = {
            var state = UserState()
            var chain = DecisionChain(StoredKey(Fixture.key("c1")))
            for change: UserState.Change in [
                .install(install), .user(id: user, isErased: false), .code(Fixture.code("1234-abcd")),
                .code(Fixture.code("5678-abcd", use: .used(installID: "i1"))),
            ] {
                state.chain(change, &chain)
                state.apply(change)
            }
            #expect(chain.mentions.map(\.text) == ["anna"])
            return state
        }()
        try store.database.transaction { try UserStore(transaction: $0).save(state) }
        func subject(_ id: String) throws -> FactsSubject {
            try store.database.transaction { try UserService().facts(about: id, of: Fixture.app, in: $0) }
        }
        #expect(try subject("i1").heads.count == 1)
        #expect(try subject(user.text).state.first?["installId"] == "i1")
        #expect(try subject("anna").state == [["kind": "codes", "externalId": "anna", "count": 2, "unused": 1]])
        #expect(try subject("nobody").state.isEmpty)
    }

    /// Who has left an install, or whose install is gone, is found by a mention that leads on.
    @Test func whoLeavesIsMentioned() throws {
        let install = Fixture.present(Fixture.account())
        let user = try #require(install.facts.userID)
        var state = UserState(installs: [install])
        var chain = DecisionChain(StoredKey(Fixture.key("c1")))
        state.chain(.remove(install.key), &chain)
        #expect(Set(chain.mentions.map(\.text)) == [install.id.text, user.text])
    }

    /// Whoever shows a code that is refused names nobody: the code does, in its app.
    @Test func aCodeNamesWhoseItIs() {
        let state = UserState(codes: [Fixture.code("1234-abcd")])
        let create = UserCommand.create(CreateUser(installId: "i2", device: Fixture.phone, authCode: "1234-abcd"))
        #expect(UserService().ids(in: create, of: "demo", state) == ["i2", "anna"])
        #expect(UserService().ids(in: create, of: "other", state) == ["i2"])
        let unknown = UserCommand.create(CreateUser(installId: "i2", device: Fixture.phone, authCode: "5678"))
        #expect(UserService().ids(in: unknown, of: "demo", state) == ["i2"])
    }
}
