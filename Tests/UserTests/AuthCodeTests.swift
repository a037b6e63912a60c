// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Runtime
@testable import User

/// How long a code can be redeemed, and for how long it counts (U5, U10).
@Suite struct AuthCodeTests {
    @Test func aCodeEndsExactlyAtItsInstant() {
        let code = Fixture.code("c")
        let before = Timestamp(milliseconds: code.expires.milliseconds - 1)
        let state = UserState(codes: [code])
        #expect(code.refusal(app: "demo", now: before) == nil)
        #expect(state.outstandingCodes("demo", "anna", now: before) == 1)
        #expect(code.refusal(app: "demo", now: code.expires) == .authCodeExpired)
        #expect(state.outstandingCodes("demo", "anna", now: code.expires) == 0)
    }

    /// L66a: what was said before an external id was given away is told from what was said after that.
    @Test(arguments: [
        (State.none, Command.createByCode), (.presentNotActive, .createByCode), (.presentUnlinked, .linkByCode),
    ]) func theLinkServiceIsToldWhenACodeWasAskedFor(_ before: State, _ command: Command) throws {
        let later = Fixture.context(now: Timestamp(milliseconds: Fixture.start.milliseconds + Fixture.minute))
        for install in before.installs {
            let state = UserState(installs: [install].compactMap(\.self), codes: [Fixture.code("fresh")])
            let decision = UserDecider.decide(command.value, state, later)
            let told = try #require(decision.forwards.first?.command as? EstablishLink)
            #expect(told.askedAt == Fixture.start)
        }
    }
}
