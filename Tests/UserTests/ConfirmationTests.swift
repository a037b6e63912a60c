// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Runtime
@testable import User

/// The app says whom its backend linked, and the link service has somebody else on the install (U72).
@Suite struct ConfirmationTests {
    private func run(_ command: UserCommand, _ state: inout UserState, _ id: CommandID) -> UserDecider.Decision {
        let decision = UserDecider.decide(command, state, Fixture.context(id: id))
        state = state.after(decision)
        return decision
    }

    private func confirmed(
        _ state: State, as named: [ExternalID?], linkedTo actual: ExternalID
    ) throws -> (UserState, UserDecider.Decision) {
        var users = try #require(state.values.last)
        for (place, externalID) in named.enumerated() {
            let command = ConfirmLink(installId: "i1", success: true, externalId: externalID)
            _ = run(.confirmLink(command), &users, CommandID("confirm\(place)"))
        }
        let forward = try #require(users.install("demo", "i1")?.forward)
        let answer = LinkAnswer(forward: forward, outcome: .facts(Fixture.facts(9)), externalID: actual)
        let told = run(.answered(answer), &users, "answer")
        return (users, told)
    }

    @Test func somebodyElsesLinkIsNone() throws {
        let (users, told) = try confirmed(.awaitingCreation, as: ["hana"], linkedTo: "gil")
        #expect(users.install("demo", "i1")?.phase == .resetting)
        #expect(told.forwards.map { $0.command as? DetachInstall } == [.init(installId: "i1", cause: .creationFailed)])
        let (_, link) = try confirmed(.awaitingLink, as: ["hana"], linkedTo: "gil")
        #expect(link.settled.values.allSatisfy { $0 == .rejected(.appSideLinkingFailed) })
        #expect(link.settled.count == 2)
    }

    @Test(arguments: [["hana"], [nil], [nil, "hana"]] as [[ExternalID?]]) func theirOwnIsOne(_ named: [ExternalID?])
        throws
    {
        for state in [State.awaitingCreation, .awaitingLink] {
            let (users, told) = try confirmed(state, as: named, linkedTo: "hana")
            #expect(users.install("demo", "i1")?.phase == .present)
            #expect(told.settled.count == named.count + 1)
        }
    }

    /// All who confirm have to agree.
    @Test func oneOfTwoIsEnoughToDoubt() throws {
        for named in [["hana", "gil"], ["gil", "hana"]] as [[ExternalID?]] {
            let (users, _) = try confirmed(.awaitingCreation, as: named, linkedTo: "gil")
            #expect(users.install("demo", "i1")?.phase == .resetting)
        }
    }
}
