// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage
import TestKit
import Testing
import WireJSON

@testable import Verification

/// V93.
@Suite struct FactsTests {
    @Test(arguments: SQLEngine.allCases) func sessionsAreTold(_ engine: SQLEngine) throws {
        let store = try VerificationTestStore(engine)
        let mpid = try #require(MPID("77"))
        let state = {
            var state = SessionState()
            var chain = DecisionChain(StoredKey(CommandKey(app: "demo", source: "test", id: "c1")))
            let change = SessionState.Change.session(Session(app: "demo", deviceID: "d1", mpid: mpid))
            state.chain(change, &chain)
            state.apply(change)
            #expect(chain.mentions.map(\.text) == ["77"], "whom it has now")
            return state
        }()
        try store.database.transaction { try VerificationStore(transaction: $0).save(state, shard: 0) }
        let app = AppSettings(id: "demo")
        for (id, count, heads) in [("d1", 1, 1), ("77", 1, 0), ("78", 0, 0), ("077", 0, 0)] {
            let subject = try store.database.transaction {
                try VerificationService().facts(about: id, of: app, in: $0)
            }
            #expect(subject.state.count == count && subject.heads.count == heads, "\(id)")
        }
    }
}
