// SPDX-License-Identifier: Apache-2.0

import Apps
import Storage
import TestKit
import Testing

@testable import Runtime
@testable import Verification

@Suite struct WriteSkewTests {
    /// Decision 3. Counts add up in whatever order.
    @Test func twoAtOnceComeToOneOfTheOrders() throws {
        let service = VerificationService(counterShard: 0)
        var skew = WriteSkew(service, ignoring: ["verification_counts"]) { state in
            var stored = SessionState(sessions: Array(state.sessions.values), sagas: Array(state.sagas.values))
            stored.load(erased: Array(state.erased))
            return stored
        }
        var number: UInt64 = 0
        while skew.pairs < writeSkewPairs {
            let seed = testSeed &+ number
            number += 1
            var commands = RandomCommands(seed: seed)
            var state = SessionState()
            for place in 0..<60 {
                if place % 4 == 3 {
                    var others = commands
                    let steps = (0..<10).map { _ in others.next() }
                    try skew.pair(steps.map { ($0.command, $0.context) }, on: state, "seed \(seed), place \(place)")
                }
                let step = commands.next()
                let decision = service.decide(step.command, state, step.context)
                commands.note(decision, app: step.context.app.id)
                decision.changes.forEach { state.apply($0) }
            }
        }
        skew.report()
        #expect(skew.found.isEmpty, "\(skew.found.joined(separator: "\n"))")
        #expect(skew.meeting > skew.pairs / 500)
    }
}
