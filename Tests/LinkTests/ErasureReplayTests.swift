// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Link
@testable import Runtime

/// What comes again after an erasure.
@Suite struct ErasureReplayTests {
    /// A command that the inbox has forgotten comes again after its person was erased: the erasure stands.
    @Test func replayAfterErasureDoesNotResurrect() throws {
        let creations: [LinkCommand] = [
            Fixture.request("i1", "anna"),
            .registerInstall(RegisterInstall(installId: "i1", device: Fixture.phone, user: .new)),
            .establish(EstablishLink(installId: "i1", device: Fixture.phone, externalId: "anna", mode: .create)),
        ]
        for creation in creations {
            let context = Fixture.context(id: "creation", moment: Moment(milliseconds: -1))
            var state = LinkState(installs: [Fixture.install("i1"), Fixture.install("i2")])
            state = state.after(Fixture.decide(creation, state, context))
            state = state.after(
                Fixture.decide(
                    .eraseUser(EraseUser(userId: context.newUserID)), state, Fixture.context(id: "erase")))
            #expect(state.person(userID: context.newUserID)?.isErased == true)
            // On the same install, and, the install id being unknown to the platform by now, on another.
            for install in ["i1", "i2", "i9"] {
                let replayed = Fixture.decide(on(InstallID(install), creation), state, context)
                let answer = replayed.answer
                #expect(
                    [.rejected(.installDeleted), .rejected(.userErased), .rejected(.installNotFound)].contains(answer))
                #expect(replayed.changes.isEmpty)
            }
            #expect(Fixture.decide(on("i2", creation), state, context).answer == .rejected(.userErased))
        }
    }

    @Test func aReplayedCreationDoesNotTakeALivingPersonsID() throws {
        let context = Fixture.context(id: "creation")
        var state = LinkState(installs: [Fixture.install("i1"), Fixture.install("i2")])
        state = state.after(Fixture.decide(Fixture.request("i1", "anna"), state, context))
        let decision = Fixture.decide(Fixture.request("i2", "bert"), state, context)
        #expect(decision.answer == .rejected(.idReused))
        #expect(decision.changes.isEmpty)
    }

    private func on(_ install: InstallID, _ command: LinkCommand) -> LinkCommand {
        switch command {
        case .request(let request): return Fixture.request(install, request.externalId)
        case .registerInstall(let command):
            return .registerInstall(RegisterInstall(installId: install, device: command.device, user: command.user))
        case .establish(let command):
            return .establish(
                EstablishLink(
                    installId: install, device: command.device, externalId: command.externalId, mode: command.mode))
        default: return command
        }
    }
}
