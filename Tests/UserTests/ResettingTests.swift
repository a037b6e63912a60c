// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Runtime
@testable import User

/// What the link service answers to a reset.
@Suite struct ResettingTests {
    /// The reset is asked for, `news` come, and the link service refuses.
    private func refused(_ before: UserState, news: Linked?) throws -> (told: UserDecider.Decision, after: UserState) {
        let begun = UserDecider.decide(Command.reset.value, before, Fixture.context(id: "r"))
        var state = before.after(begun)
        if let news { state = state.after(UserDecider.decide(.linked(news), state, Fixture.context(id: "news"))) }
        let answer = LinkAnswer(
            forward: try #require(begun.forwards.first?.id), outcome: .rejected(Rejection(.internalError)))
        let told = UserDecider.decide(.answered(answer), state, Fixture.context(id: "answer"))
        return (told, state.after(told))
    }

    @Test func aResetIsTold() throws {
        let before = UserState(installs: [Fixture.present(Fixture.account())])
        let begun = UserDecider.decide(Command.reset.value, before, Fixture.context(id: "r"))
        #expect(begun.told == [])
        let answer = LinkAnswer(forward: try #require(begun.forwards.first?.id), outcome: .facts(.nothing))
        let told = UserDecider.decide(.answered(answer), before.after(begun), Fixture.context(id: "answer"))
        #expect(told.settled == ["r": .reset])
        #expect(told.told == [UserReset(installId: "i1", userId: Fixture.userID)])
    }

    @Test func whoWasThereStays() throws {
        let install = Fixture.present(Fixture.account(redeemed: ("held", .create), creation: "life-1"))
        let (told, after) = try refused(UserState(installs: [install]), news: nil)
        #expect(told.settled == ["r": .rejected(.serverError)])
        #expect(told.told == [])
        #expect(after.install("demo", "i1") == install)
    }

    /// The news are of a user that we brought to nobody, and of a device that we do not know.
    @Test func whereNobodyWasKnownNothingStays() throws {
        let news = Linked(
            installId: "i1", externalId: "anna", userId: Fixture.userID, personCreated: true, activeInstallId: "i1",
            deactivatedInstallIds: [], version: 3)
        let (told, after) = try refused(UserState(), news: news)
        #expect(told.settled == ["r": .rejected(.serverError)])
        #expect(after.install("demo", "i1") == nil)
    }
}
