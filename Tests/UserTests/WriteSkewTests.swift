// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing

@testable import Link
@testable import Runtime
@testable import User

@Suite struct WriteSkewTests {
    /// Decision 3.
    @Test func twoAtOnceComeToOneOfTheOrders() throws {
        var skew = WriteSkew(UserService(), partition: World.partition) { state in
            UserState(
                installs: Array(state.installs.values), codes: Array(state.codes.values),
                erased: Array(state.erased))
        }
        var number: UInt64 = 0
        while skew.pairs < writeSkewPairs {
            let seed = testSeed &+ number
            number += 1
            var world = World(seed: seed)
            var commands = RandomCommands(seed: seed)
            for place in 0..<60 {
                if place % 4 == 3 {
                    let steps = world.next + fresh(&commands, "p\(place)", world)
                    try skew.pair(steps, on: world.users, "seed \(seed), place \(place)")
                }
                let (command, app) = commands.next()
                switch command {
                case .wait:
                    world.now.milliseconds += RandomCommands.wait
                    world.sendDue()
                case .user(let command): world.send(command, CommandID("c\(place)"), app)
                case .link(let command, let late): world.send(command, CommandID("c\(place)"), app, late: late)
                case .erase(let place):
                    let users = world.links.persons.keys.sorted()
                    guard !users.isEmpty else { continue }
                    let user = users[place % users.count]
                    world.send(.eraseUser(EraseUser(userId: user)), CommandID("c\(place)"), app)
                case .unlink: continue
                }
                for _ in 0..<Int.random(in: 0..<12, using: &commands.random) where !world.step() { break }
                commands.codes = world.final.values.compactMap { if case .code(let text) = $0 { text } else { nil } }
                    .sorted()
            }
        }
        skew.report()
        #expect(skew.found.isEmpty, "\(skew.found.joined(separator: "\n"))")
        #expect(skew.meeting > skew.pairs / 500)
    }

    /// Commands from outside, and erasures of users that there are.
    private func fresh(
        _ commands: inout RandomCommands, _ id: String, _ world: World
    ) -> [(command: UserCommand, context: DecisionContext)] {
        (0..<6).compactMap { number in
            let (command, app) = commands.next()
            let context = Fixture.context(app, id: CommandID("\(id) \(number)"), now: world.now)
            switch command {
            case .user(let command): return (command, context)
            case .erase(let place):
                let users = world.links.persons.values.sorted { $0.key < $1.key }
                guard !users.isEmpty else { return nil }
                let user = users[place % users.count]
                return (
                    .forget(ForgetUser(userId: user.userID, externalId: user.externalID, installIds: [])),
                    Fixture.context(Self.app(user.app), id: CommandID("\(id) \(number)"), now: world.now)
                )
            case .link, .unlink, .wait: return nil
            }
        }
    }

    private static func app(_ id: AppID) -> AppSettings { RandomSequenceTests.app(id) }
}
