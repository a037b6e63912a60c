// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Runtime
@testable import User

/// A linker's wait ends by its own command only (U20).
@Suite struct LinkerExpiryTests {
    private func expire(
        _ state: UserState, _ id: CommandID, from source: SourceID = "test"
    ) -> UserDecider.Decision {
        let command = ExpireLinker(installId: "i1", commandSource: source, commandId: id)
        return UserDecider.decide(.expireLinker(command), state, Fixture.context(id: "expire", source: "user"))
    }

    /// The first linker's wait was ended otherwise; its expiry was on its way already, and a second linker waits now.
    /// Two senders may give their commands one id.
    private func laterGoesOn(_ state: UserState) throws {
        let waiting = try #require(state.install("demo", "i1")?.linkersTurn?.command)
        #expect(waiting == Waiting(Fixture.key("later")))
        for (id, source): (CommandID, SourceID) in [("earlier", "test"), ("later", "other"), ("earlier", "other")] {
            let decision = expire(state, id, from: source)
            #expect(decision.answer == .noted, "\(source) \(id)")
            #expect(decision.changes.isEmpty && decision.settled == [:], "\(source) \(id)")
            #expect(decision.told == [] && decision.forwards.isEmpty, "\(source) \(id)")
        }
    }

    @Test func theExpiryOfAnEarlierLinkerEndsNoLaterCreation() throws {
        var state = UserState()
        func run(_ command: UserCommand, _ id: CommandID) {
            let decision = UserDecider.decide(command, state, Fixture.context(id: id))
            state = state.after(decision)
            guard let forward = decision.forwards.first?.id else { return }
            let nobody = LinkAnswer(forward: forward, outcome: .facts(Fixture.facts(user: nil, isLinked: false)))
            let answered = UserDecider.decide(
                .answered(nobody), state, Fixture.context(id: CommandID("answer to \(id)")))
            state = state.after(answered)
        }
        run(Command.createByLinker.value, "earlier")
        run(Command.confirmFailure.value, "confirm")
        #expect(state.install("demo", "i1") == nil)
        run(Command.createByLinker.value, "later")
        try laterGoesOn(state)
        #expect(expire(state, "later").forwards.first?.command is DetachInstall)
    }

    @Test func theExpiryOfAnEarlierLinkerEndsNoLaterLink() throws {
        var state = UserState(installs: [Fixture.present(Fixture.account(isLinked: false))])
        for (command, id): (Command, CommandID) in [
            (.linkByLinker, "earlier"), (.confirmFailure, "confirm"), (.linkByLinker, "later"),
        ] {
            state = state.after(UserDecider.decide(command.value, state, Fixture.context(id: id)))
        }
        try laterGoesOn(state)
        #expect(expire(state, "later").settled == ["later": .expired])
    }
}
