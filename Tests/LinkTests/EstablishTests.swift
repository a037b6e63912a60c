// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Link
@testable import Runtime

/// `link.establish`: what the user service asks for when an authentication code was redeemed (domain.md "User").
@Suite struct EstablishTests {
    private static let me = Fixture.userID
    private static let other = "0123456789abcdef01234567"

    private func establish(
        _ mode: EstablishLink.Mode, _ device: Device = Fixture.device(.phone), externalID: String = "anna",
        in state: LinkState, _ context: DecisionContext = Fixture.context()
    ) -> LinkDecider.Decision {
        LinkDecider.decide(
            .establish(EstablishLink(installId: "i1", device: device, externalId: externalID, mode: mode)), state,
            context)
    }

    @Test func createRegistersAnUnknownInstallAndCreatesThePerson() throws {
        let state = LinkState()
        let decision = establish(.create, in: state)
        let user = Fixture.context().newUserID
        #expect(
            decision.answer
                == .link(LinkResult(userId: user, installId: "i1", isActive: true, personCreated: true)))
        #expect(
            decision.told == [
                AnyHashable(InstallRegistered(installId: "i1", device: Fixture.device(.phone), userId: nil)),
                AnyHashable(
                    Linked(
                        installId: "i1", externalId: "anna", userId: user, personCreated: true, activeInstallId: "i1",
                        deactivatedInstallIds: [])),
            ])
        let after = state.after(decision)
        #expect(after.install("i1") == Fixture.install("i1", of: user).version(1, isUsersFirst: true))
        #expect(after.person(userID: user) == Fixture.person(user, "anna"))
    }

    @Test func createRestoresAKnownPersonAndDeactivatesTheOtherInstall() throws {
        let state = LinkState(
            installs: [Fixture.install("old", of: Self.me)], persons: [Fixture.person(Self.me, "anna")])
        let decision = establish(.create, in: state)
        #expect(
            decision.answer
                == .link(LinkResult(userId: Self.me, installId: "i1", isActive: true, personCreated: false)))
        #expect(
            decision.told == [
                AnyHashable(InstallRegistered(installId: "i1", device: Fixture.device(.phone), userId: nil)),
                AnyHashable(
                    Linked(
                        installId: "i1", externalId: "anna", userId: Self.me, personCreated: false,
                        activeInstallId: "i1", deactivatedInstallIds: ["old"])),
                AnyHashable(
                    InstallStatusChanged(
                        installId: "old", status: .enabled, isActive: false, userId: Self.me, cause: .superseded)),
            ])
        #expect(state.after(decision).install("old")?.activity == .deactivated)
    }

    @Test func createOnATabletBesideAPhoneSucceedsAndStaysInactive() throws {
        let state = LinkState(
            installs: [Fixture.install("old", of: Self.me)], persons: [Fixture.person(Self.me, "anna")])
        let decision = establish(.create, Fixture.tablet, in: state)
        #expect(
            decision.answer
                == .link(LinkResult(userId: Self.me, installId: "i1", isActive: false, personCreated: false)))
        #expect(state.after(decision).install("i1")?.device == Fixture.tablet)
        #expect(state.after(decision).install("i1")?.activity == .standby)
        #expect(state.after(decision).install("old")?.activity == .active)
    }

    @Test func theKnownDeviceIsNotRegisteredAgain() throws {
        let state = LinkState(installs: [Fixture.install("i1")])
        #expect(establish(.create, in: state).events.count == 1)
        let other = establish(.create, Fixture.device(.other), in: state)
        #expect(
            other.told.first
                == AnyHashable(InstallRegistered(installId: "i1", device: Fixture.device(.other), userId: nil)))
        #expect(state.after(other).install("i1")?.device.kind == .other)
    }

    @Test func aRepeatedLinkMayBringAnotherDevice() throws {
        let state = LinkState(
            installs: [Fixture.install("i1", of: Self.me)], persons: [Fixture.person(Self.me, "anna")])
        let upgraded = Device(kind: .phone, platform: "test", osVersion: "18")
        let decision = establish(.create, upgraded, in: state)
        #expect(decision.told == [InstallRegistered(installId: "i1", device: upgraded, userId: Self.me)])
        var expected = Fixture.install("i1", of: Self.me)
        expected.device = upgraded
        #expect(state.after(decision).install("i1") == expected)
    }

    @Test func linkExistingUserLinksAnUnlinkedPerson() throws {
        let state = LinkState(installs: [Fixture.install("i1", of: Self.me)], persons: [Fixture.person(Self.me)])
        let decision = establish(.linkExistingUser, in: state)
        #expect(
            decision.answer
                == .link(LinkResult(userId: Self.me, installId: "i1", isActive: true, personCreated: false)))
        #expect(state.after(decision).person(app: "demo", externalID: "anna")?.userID == Self.me)
    }

    @Test func linkExistingUserNeedsAUser() throws {
        for state in [LinkState(), LinkState(installs: [Fixture.install("i1")])] {
            let decision = establish(.linkExistingUser, in: state)
            #expect(decision.answer == .rejected(.userNotFound))
            #expect(decision.changes.isEmpty)
            #expect(decision.told == [LinkRefused(installId: "i1", reason: .userNotFound)])
        }
    }

    @Test func linkExistingUserNeedsAnExternalIDThatIsNew() throws {
        let state = LinkState(
            installs: [Fixture.install("i1", of: Self.me), Fixture.install("i2", of: Self.other)],
            persons: [Fixture.person(Self.me), Fixture.person(Self.other, "anna")])
        let decision = establish(.linkExistingUser, in: state)
        #expect(decision.answer == .rejected(.cannotLinkExistingPersonToOtherPerson))
        #expect(decision.told == [LinkRefused(installId: "i1", reason: .cannotLinkExistingPersonToOtherPerson)])
    }

    @Test(arguments: [EstablishLink.Mode.create, .linkExistingUser]) func refusesAsARequestDoes(
        _ mode: EstablishLink.Mode
    ) throws {
        func reason(
            _ install: Install?, _ persons: [Person] = [], app: AppSettings = Fixture.app, externalID: String = "anna"
        ) -> Answer {
            let state = LinkState(installs: install.map { [$0] } ?? [], persons: persons)
            let decision = establish(mode, externalID: externalID, in: state, Fixture.context(app))
            #expect(decision.changes.isEmpty)
            #expect(decision.events.count == 1)
            return decision.answer
        }
        #expect(reason(nil, externalID: "null") == .rejected(.invalidRequest))
        #expect(reason(nil, app: Fixture.unlinkedApp) == .rejected(.userLinkingNotConfigured))
        #expect(reason(Fixture.install("i1", app: "other")) == .rejected(.installDoesNotBelongToApp))
        #expect(reason(Fixture.install("i1", status: .disabled)) == .rejected(.installDisabled))
        #expect(reason(Fixture.install("i1", status: .deleted)) == .rejected(.installDeleted))
        #expect(
            reason(Fixture.install("i1", of: Self.me), [Fixture.person(Self.me, "bert")])
                == .rejected(.installLinkedToOtherUser))
        #expect(
            reason(Fixture.install("i1", of: Self.me, .deactivated), [Fixture.person(Self.me, "anna")])
                == .rejected(.installDeactivated))
    }
}
