// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Link
@testable import Runtime

/// Registering, reading, detaching, and the platform's word on installs.
@Suite struct InstallTests {
    private static let me = Fixture.userID
    private static let linked = LinkState(
        installs: [Fixture.install("i1", of: me)], persons: [Fixture.person(me, "anna")])

    private func result(
        user: String? = nil, externalID: String? = nil, status: InstallStatus = .enabled, isActive: Bool = false,
        isUsersFirst: Bool = false, version: Int64 = 0
    ) -> Answer {
        .install(
            InstallResult(
                installId: "i1", appId: "demo", userId: user, externalId: externalID, status: status,
                isActive: isActive, isUsersFirst: isUsersFirst, version: version))
    }

    // MARK: Register

    private func register(
        _ user: RegisterInstall.User, _ device: Device = Fixture.device(.phone), in state: LinkState,
        _ context: DecisionContext = Fixture.context()
    ) -> LinkDecider.Decision {
        LinkDecider.decide(
            .registerInstall(RegisterInstall(installId: "i1", device: device, user: user)), state, context)
    }

    @Test func registersWithoutUser() throws {
        let decision = register(.none, Fixture.tablet, in: LinkState())
        #expect(decision.answer == result())
        #expect(decision.told == [InstallRegistered(installId: "i1", device: Fixture.tablet, userId: nil)])
        #expect(
            LinkState().after(decision).install("i1")
                == Install(id: "i1", app: "demo", device: Fixture.tablet, isOpen: true))
    }

    @Test func registersWithANewUnlinkedUser() throws {
        let user = Fixture.context().newUserID
        let decision = register(.new, in: LinkState())
        #expect(decision.answer == result(user: user, isActive: true, isUsersFirst: true, version: 1))
        #expect(decision.told == [InstallRegistered(installId: "i1", device: Fixture.device(.phone), userId: user)])
        #expect(LinkState().after(decision).person(userID: user) == Fixture.person(user))
    }

    @Test func registeringAgainChangesNothing() throws {
        let state = LinkState(installs: [Fixture.install("i1", of: Self.me)], persons: [Fixture.person(Self.me)])
        for user in [RegisterInstall.User.none, .new] {
            let decision = register(user, in: state)
            #expect(decision.answer == result(user: Self.me, isActive: true))
            #expect(decision.changes.isEmpty)
            #expect(decision.events.isEmpty)
        }
    }

    @Test func registeringAgainTakesTheNewDeviceAndKeepsTheRest() throws {
        let decision = register(.none, Fixture.tablet, in: Self.linked)
        #expect(decision.answer == result(user: Self.me, externalID: "anna", isActive: true))
        #expect(decision.told == [InstallRegistered(installId: "i1", device: Fixture.tablet, userId: Self.me)])
        let after = Self.linked.after(decision)
        #expect(
            after.install("i1")
                == Install(
                    id: "i1", app: "demo", device: Fixture.tablet, userID: Self.me, activity: .active))
    }

    /// The user service begins a linker on an install that was reset: it is open again, and nobody need be told.
    @Test func registeringOpensTheInstallAgain() throws {
        let state = LinkState(installs: [Fixture.install("i1", isOpen: false).version(4)])
        let decision = register(.none, in: state)
        #expect(decision.answer == result(version: 4))
        #expect(decision.told == [])
        #expect(state.after(decision).install("i1") == Fixture.install("i1").version(4))
    }

    @Test func aKnownInstallWithoutUserGetsOne() throws {
        let state = LinkState(installs: [Fixture.install("i1")])
        let decision = register(.new, in: state)
        #expect(
            decision.answer == result(user: Fixture.context().newUserID, isActive: true, isUsersFirst: true, version: 1)
        )
        #expect(decision.events.count == 1)
    }

    @Test func registerRefusesForeignDisabledAndDeleted() throws {
        let table: [(Install, ReasonCode)] = [
            (Fixture.install("i1", app: "other"), .installDoesNotBelongToApp),
            (Fixture.install("i1", status: .disabled), .installDisabled),
            (Fixture.install("i1", status: .deleted), .installDeleted),
        ]
        for (install, reason) in table {
            let decision = register(.new, in: LinkState(installs: [install]))
            #expect(decision.answer == .rejected(reason))
            #expect(decision.changes.isEmpty)
            #expect(decision.events.isEmpty)
        }
    }

    // MARK: Query

    @Test func queryReadsAndChangesNothing() throws {
        func query(_ state: LinkState) -> Answer {
            let decision = LinkDecider.decide(.query(QueryInstall(installId: "i1")), state, Fixture.context())
            #expect(decision.changes.isEmpty)
            #expect(decision.events.isEmpty)
            return decision.answer
        }
        #expect(query(LinkState()) == .rejected(.installNotFound))
        #expect(
            query(LinkState(installs: [Fixture.install("i1", app: "other")])) == .rejected(.installDoesNotBelongToApp))
        #expect(query(Self.linked) == result(user: Self.me, externalID: "anna", isActive: true))
        #expect(
            query(LinkState(installs: [Fixture.install("i1", status: .deleted)])) == result(status: .deleted))
    }

    // MARK: Detach

    private func detach(_ state: LinkState) -> LinkDecider.Decision {
        LinkDecider.decide(.detachInstall(DetachInstall(installId: "i1")), state, Fixture.context())
    }

    @Test func detachTakesThePersonOff() throws {
        let decision = detach(Self.linked)
        #expect(decision.answer == result(version: 1))
        #expect(decision.told == [InstallDetached(installId: "i1", userId: Self.me, version: 1)])
        let after = Self.linked.after(decision)
        #expect(after.install("i1") == Fixture.install("i1", isOpen: false).version(1))
        #expect(after.person(app: "demo", externalID: "anna")?.userID == Self.me)
        // A link request that was on its way comes too late.
        let late = LinkDecider.decide(Fixture.request("i1", "anna"), after, Fixture.context(id: "c2"))
        #expect(late.answer == .rejected(.noLinkingInProgress))
        // The same external id restores the same person when the device begins anew (seed 002).
        let open = after.after(register(.none, in: after))
        let again = LinkDecider.decide(Fixture.request("i1", "anna"), open, Fixture.context(id: "c2"))
        #expect(
            again.answer
                == .link(
                    LinkResult(userId: Self.me, installId: "i1", isActive: true, personCreated: false, version: 2)))
    }

    @Test func detachOfAnEmptyInstallChangesNothing() throws {
        let decision = detach(LinkState(installs: [Fixture.install("i1", isOpen: false)]))
        #expect(decision.answer == result())
        #expect(decision.changes.isEmpty)
        #expect(decision.events.isEmpty)
    }

    /// The app's linker failed or took too long. Its link request may be on its way still: it must not put a person on the
    /// install, and no other install of that person may lose it.
    @Test func aLinkThatComesBehindTheDetachChangesNothing() throws {
        let state = LinkState(
            installs: [Fixture.install("i1"), Fixture.install("real", of: Self.me)],
            persons: [Fixture.person(Self.me, "anna")])
        let detached = detach(state)
        #expect(detached.answer == result())
        #expect(detached.told == [])
        let late = LinkDecider.decide(Fixture.request("i1", "anna"), state.after(detached), Fixture.context(id: "c2"))
        #expect(late.answer == .rejected(.noLinkingInProgress))
        #expect(late.changes.isEmpty)
        #expect(late.told == [LinkRefused(installId: "i1", reason: .noLinkingInProgress)])
    }

    @Test func detachRefuses() throws {
        #expect(detach(LinkState()).answer == .rejected(.installNotFound))
        #expect(
            detach(LinkState(installs: [Fixture.install("i1", app: "other")])).answer
                == .rejected(.installDoesNotBelongToApp))
        #expect(
            detach(LinkState(installs: [Fixture.install("i1", status: .deleted)])).answer
                == .rejected(.installDeleted))
    }

    @Test func detachWorksOnADisabledInstall() throws {
        let state = LinkState(
            installs: [Fixture.install("i1", of: Self.me, status: .disabled)], persons: [Fixture.person(Self.me)])
        #expect(detach(state).answer == result(status: .disabled, version: 1))
    }

    // MARK: Status

    private func set(_ status: InstallStatus, _ state: LinkState) -> LinkDecider.Decision {
        LinkDecider.decide(
            .setInstallStatus(SetInstallStatus(installId: "i1", status: status)), state, Fixture.context())
    }

    struct Transition: Sendable {
        var from: InstallStatus
        var to: InstallStatus
        /// `nil`: refused, since deleting cannot be taken back.
        var isActiveAfter: Bool?
    }

    static let transitions = [
        Transition(from: .enabled, to: .disabled, isActiveAfter: false),
        Transition(from: .enabled, to: .deleted, isActiveAfter: false),
        Transition(from: .disabled, to: .enabled, isActiveAfter: true),
        Transition(from: .disabled, to: .deleted, isActiveAfter: false),
        Transition(from: .deleted, to: .enabled), Transition(from: .deleted, to: .disabled),
    ]

    @Test(arguments: transitions) func setsStatus(_ transition: Transition) throws {
        let state = LinkState(
            installs: [
                Fixture.install(
                    "i1", of: Self.me, transition.from == .disabled ? .suspended : .active, status: transition.from)
            ], persons: [Fixture.person(Self.me, "anna")])
        let decision = set(transition.to, state)
        guard let isActive = transition.isActiveAfter else {
            #expect(decision.answer == .rejected(.installDeleted))
            #expect(decision.changes.isEmpty)
            return
        }
        #expect(
            decision.answer
                == result(
                    user: Self.me, externalID: "anna", status: transition.to, isActive: isActive, version: 1))
        #expect(
            decision.told == [
                InstallStatusChanged(
                    installId: "i1", status: transition.to, isActive: isActive, userId: Self.me, cause: .command)
            ])
        let after = state.after(decision)
        #expect(after.install("i1")?.status == transition.to)
        let activity: Install.Activity = transition.to == .disabled ? .suspended : isActive ? .active : .deactivated
        #expect(after.install("i1")?.activity == activity)
    }

    @Test(arguments: InstallStatus.allCases) func theSameStatusChangesNothing(_ status: InstallStatus) throws {
        let decision = set(status, LinkState(installs: [Fixture.install("i1", status: status)]))
        #expect(decision.answer == result(status: status))
        #expect(decision.changes.isEmpty)
        #expect(decision.events.isEmpty)
    }

    @Test func setStatusRefuses() throws {
        #expect(set(.disabled, LinkState()).answer == .rejected(.installNotFound))
        #expect(
            set(.disabled, LinkState(installs: [Fixture.install("i1", app: "other")])).answer
                == .rejected(.installDoesNotBelongToApp))
    }
}
