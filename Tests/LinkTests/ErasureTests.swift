// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
import Testing

@testable import Link
@testable import Runtime

/// `link.erase-user`: the person goes, a tombstone stays.
@Suite struct ErasureTests {
    private static let me = Fixture.userID
    private static let state = LinkState(
        installs: [
            Fixture.install("i1", of: me), Fixture.install("i2", of: me, .deactivated),
            Fixture.install("i3", .tablet, of: me, .standby), Fixture.install("i4"),
        ], persons: [Fixture.person(me, "anna")])

    private func erase(
        _ user: String = me, _ state: LinkState = state, _ context: DecisionContext = Fixture.context(id: "erase")
    ) -> LinkDecider.Decision {
        LinkDecider.decide(.eraseUser(EraseUser(userId: user)), state, context)
    }

    @Test func leavesTombstones() throws {
        let decision = erase()
        #expect(decision.answer == .erasure(ErasureResult(userId: Self.me, installsRemoved: 3)))
        #expect(decision.told == [UserErased(userId: Self.me)])
        let after = Self.state.after(decision)
        #expect(after.person(userID: Self.me) == Person(userID: Self.me, app: "demo", isErased: true))
        #expect(after.person(app: "demo", externalID: "anna") == nil)
        for id in ["i1", "i2", "i3"] {
            #expect(
                after.install(id)
                    == Install(
                        id: id, app: "demo", device: Device(kind: .other, platform: "erased"), status: .deleted,
                        version: 1))
        }
        #expect(after.install("i4") == Self.state.install("i4"))
        #expect(after.installs(of: Self.me).isEmpty)
    }

    @Test func anErasedInstallIsRefusedForEver() throws {
        let after = Self.state.after(erase())
        let commands: [LinkCommand] = [
            Fixture.request("i1", "anna"), .detachInstall(DetachInstall(installId: "i1")),
            .registerInstall(RegisterInstall(installId: "i1", device: Fixture.phone, user: .new)),
            .establish(EstablishLink(installId: "i1", device: Fixture.phone, externalId: "anna", mode: .create)),
            .setInstallStatus(SetInstallStatus(installId: "i1", status: .enabled)),
        ]
        for command in commands {
            let decision = LinkDecider.decide(command, after, Fixture.context(id: "later"))
            #expect(decision.answer == .rejected(.installDeleted))
            #expect(decision.changes.isEmpty)
        }
    }

    @Test func theExternalIDMayBeUsedAgainByANewPerson() throws {
        let after = Self.state.after(erase())
        let context = Fixture.context(id: "later")
        let decision = LinkDecider.decide(Fixture.request("i4", "anna"), after, context)
        #expect(
            decision.answer
                == .link(
                    LinkResult(userId: context.newUserID, installId: "i4", isActive: true, personCreated: true)))
        #expect(context.newUserID != Self.me)
    }

    @Test func erasingAgainRemovesNothing() throws {
        let after = Self.state.after(erase())
        let decision = erase(Self.me, after)
        #expect(decision.answer == .erasure(ErasureResult(userId: Self.me, installsRemoved: 0)))
        #expect(decision.changes.isEmpty)
        #expect(decision.events.isEmpty)
    }

    @Test func unknownAndForeignUsersAreNotFound() throws {
        for decision in [erase("nobody"), erase(Self.me, Self.state, Fixture.context(Fixture.otherApp))] {
            #expect(decision.answer == .rejected(.userNotFound))
            #expect(decision.changes.isEmpty)
            #expect(decision.events.isEmpty)
        }
    }

    /// A command that the journal has forgotten comes again after its person was erased: the erasure stands.
    @Test func replayAfterErasureDoesNotResurrect() throws {
        let creations: [LinkCommand] = [
            Fixture.request("i1", "anna"),
            .registerInstall(RegisterInstall(installId: "i1", device: Fixture.phone, user: .new)),
            .establish(EstablishLink(installId: "i1", device: Fixture.phone, externalId: "anna", mode: .create)),
        ]
        for creation in creations {
            let context = Fixture.context(id: "creation")
            var state = LinkState(installs: [Fixture.install("i1"), Fixture.install("i2")])
            state = state.after(LinkDecider.decide(creation, state, context))
            state = state.after(erase(context.newUserID, state))
            #expect(state.person(userID: context.newUserID)?.isErased == true)
            // On the same install, and, the install id being unknown to the platform by now, on another.
            for install in ["i1", "i2", "i9"] {
                let replayed = LinkDecider.decide(on(install, creation), state, context)
                let answer = replayed.answer
                #expect(
                    [.rejected(.installDeleted), .rejected(.userErased), .rejected(.installNotFound)].contains(answer))
                #expect(replayed.changes.isEmpty)
            }
            #expect(LinkDecider.decide(on("i2", creation), state, context).answer == .rejected(.userErased))
        }
    }

    @Test func aReplayedCreationDoesNotTakeALivingPersonsID() throws {
        let context = Fixture.context(id: "creation")
        var state = LinkState(installs: [Fixture.install("i1"), Fixture.install("i2")])
        state = state.after(LinkDecider.decide(Fixture.request("i1", "anna"), state, context))
        let decision = LinkDecider.decide(Fixture.request("i2", "bert"), state, context)
        #expect(decision.answer == .rejected(.idReused))
        #expect(decision.changes.isEmpty)
    }

    private func on(_ install: String, _ command: LinkCommand) -> LinkCommand {
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
