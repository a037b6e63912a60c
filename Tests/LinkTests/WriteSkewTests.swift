// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing

@testable import Link
@testable import Runtime

@Suite struct WriteSkewTests {
    /// Decision 3, L19.
    @Test func twoAtOnceComeToOneOfTheOrders() throws {
        var skew = WriteSkew(LinkService()) { state in
            LinkState(
                installs: Array(state.installs.values), persons: Array(state.persons.values),
                erasures: Array(state.erasures.values), holds: Array(state.holds.values))
        }
        var number: UInt64 = 0
        while skew.pairs < writeSkewPairs {
            let seed = testSeed &+ number
            number += 1
            var commands = RandomCommands(seed: seed)
            var state = LinkState()
            var forwards: [CommandID] = []
            for place in 0..<40 {
                let users = state.persons.keys.sorted()
                if place % 4 == 3 {
                    let steps = (0..<10).map { _ in commands.next(users: users, forwards: forwards) }
                    try skew.pair(steps.map { ($0.command, $0.context) }, on: state, "seed \(seed), place \(place)")
                }
                let step = commands.next(users: users, forwards: forwards)
                let decision = Fixture.decide(step.command, state, step.context)
                state = state.after(decision)
                forwards += decision.forwards.map(\.id)
            }
        }
        skew.report()
        #expect(skew.found.isEmpty, "\(skew.found.joined(separator: "\n"))")
        #expect(skew.meeting > skew.pairs / 500)
    }
}
