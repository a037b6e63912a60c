// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import Testing

@testable import Link
@testable import Runtime

/// The election of a person's active install (docs/link.md "Which install is active").
@Suite struct ElectionTests {
    /// Row 13 of docs/link.md for every two devices: the phone stays when a tablet comes, and only then.
    static let rows = Row.rows(
        """
        L13 | new, old u1=anna               | request new anna -> new active u1=anna, old deactivated u1=anna; linked new, superseded old
        L13 | new, old tablet u1=anna        | request new anna -> new active u1=anna, old tablet deactivated u1=anna; linked new, superseded old
        L13 | new, old other u1=anna         | request new anna -> new active u1=anna, old other deactivated u1=anna; linked new, superseded old
        L13 | new tablet, old u1=anna        | request new anna -> new tablet standby u1=anna; linked new
        L13 | new tablet, old tablet u1=anna | request new anna -> new tablet active u1=anna, old tablet deactivated u1=anna; linked new, superseded old
        L13 | new tablet, old other u1=anna  | request new anna -> new tablet active u1=anna, old other deactivated u1=anna; linked new, superseded old
        L13 | new other, old u1=anna         | request new anna -> new other active u1=anna, old deactivated u1=anna; linked new, superseded old
        L13 | new other, old tablet u1=anna  | request new anna -> new other active u1=anna, old tablet deactivated u1=anna; linked new, superseded old
        L13 | new other, old other u1=anna   | request new anna -> new other active u1=anna, old other deactivated u1=anna; linked new, superseded old
        L13 the first one | new, u1=anna        | request new anna -> new active u1=anna; linked new
        L13 the first one | new tablet, u1=anna | request new anna -> new tablet active u1=anna; linked new
        L13 the first one | new other, u1=anna  | request new anna -> new other active u1=anna; linked new
        L49 a disabled one | new, old disabled u1=anna active-once-enabled | request new anna -> new active u1=anna, old disabled deactivated u1=anna; linked new, superseded old
        L49 by a tablet    | new tablet, old disabled u1=anna active-once-enabled | request new anna -> new tablet active u1=anna, old disabled deactivated u1=anna; linked new, superseded old
        L53 superseded     | i1 deactivated u1=anna, i2 u1=anna | create i1 anna -> i1 active u1=anna, i2 deactivated u1=anna; linked i1, superseded i2
        L53 nobody is active | i1 deactivated u1=anna | create i1 anna -> i1 active u1=anna; linked i1
        L53 waits          | i1 tablet standby u1=anna | create i1 tablet anna -> i1 tablet active u1=anna; linked i1
        L53 behind a phone | i1 tablet deactivated u1=anna, i2 u1=anna | create i1 tablet anna -> i1 tablet standby u1=anna; linked i1
        L53 waits still    | i1 tablet standby u1=anna, i2 u1=anna | create i1 tablet anna -> unchanged
        L10 a request      | i1 deactivated u1=anna | request i1 anna -> INSTALL_DEACTIVATED
        L10 a later link   | i1 deactivated u1=anna | link-existing-user i1 anna -> INSTALL_DEACTIVATED
        L7 a disabled one  | i1 disabled deactivated u1=anna | create i1 anna -> INSTALL_DISABLED
        L13 standby stays | new, phone u1=anna, tab tablet standby u1=anna | request new anna -> new active u1=anna, phone deactivated u1=anna; linked new, superseded phone
        """)

    /// Whoever was active stays active until somebody else is: a creation that fails gives back what it took.
    static let failures = Row.rows(
        """
        L50 | i1 u1=anna over:i2, i2 deactivated u1=anna | fail i1 -> i1 closed, i2 active u1=anna; detached i1, restored i2
        L50 not by a reset | i1 u1=anna over:i2, i2 deactivated u1=anna | detach i1 -> i1 closed; detached i1
        L50 changed since | i1 u1=anna over:i2/7, i2 deactivated u1=anna | fail i1 -> i1 closed; detached i1
        L50 somebody else has the person | i1 deactivated u1=anna over:i2, i2 deactivated u1=anna, i3 u1=anna | fail i1 -> i1 closed, i3 active u1=anna; detached i1
        L50 somebody else had it when disabled | i1 deactivated u1=anna over:i2, i2 deactivated u1=anna, i3 disabled active-once-enabled u1=anna | fail i1 -> i1 closed, i3 disabled active-once-enabled u1=anna; detached i1
        L50 suspended again | i1 u1=anna over:i2*, i2 disabled deactivated u1=anna | fail i1 -> i1 closed, i2 disabled active-once-enabled u1=anna; detached i1, restored i2
        L50 deleted meanwhile | i1 deleted deactivated u1=anna over:i2, i2 deactivated u1=anna | fail i1 -> i1 deleted closed, i2 active u1=anna; detached i1, restored i2
        L50 behind one that waits | i1 u1=anna over:i2, i2 tablet standby u1=anna | fail i1 -> i1 closed, i2 tablet active u1=anna; detached i1, restored i2
        L50 nobody was | i1 u1=anna | fail i1 -> i1 closed; detached i1
        L50 nobody is | i1 | fail i1 -> i1 closed
        """)

    @Test(arguments: rows + failures) func decides(_ row: Row) throws { try row.check() }

    /// L51. Two creations at once, each over the one before: whichever order they fail in, the first one is active again.
    @Test(arguments: [["two", "three"], ["three", "two"]]) func failuresInAnyOrderGiveBack(_ order: [String]) throws {
        func decide(_ command: LinkCommand, _ state: LinkState, _ id: CommandID) -> LinkState {
            state.after(Fixture.decide(command, state, Fixture.context(id: id)))
        }
        var state = LinkState("one u1=anna")
        for name in ["two", "three"] {
            let establish = EstablishLink(
                installId: InstallID(name), device: Fixture.phone, externalId: "anna", mode: .create)
            state = decide(.establish(establish), state, CommandID(name))
            #expect(state.installs.values.filter(\.isActive).map(\.id) == [InstallID(name)])
        }
        for (place, name) in order.enumerated() {
            let failure = DetachInstall(installId: InstallID(name), cause: .creationFailed)
            state = decide(.detachInstall(failure), state, CommandID("f\(name)"))
            let expected = place == 1 ? "one" : order[1]
            #expect(state.installs.values.filter(\.isActive).map(\.id) == [InstallID(expected)])
        }
    }

    /// L51. The install of the first creation is deleted before the second one takes the person, so from nobody: the one
    /// before both is active again all the same, whichever fails first.
    @Test(arguments: [["two", "three"], ["three", "two"]])
    func whoTookThePersonFromNobodyGivesBackToo(_ order: [String]) throws {
        var state = LinkState("one u1=anna")
        func run(_ command: LinkCommand, _ id: String) {
            state = state.after(Fixture.decide(command, state, Fixture.context(id: CommandID(id))))
        }
        for name in ["two", "three"] {
            run(
                .establish(
                    EstablishLink(
                        installId: InstallID(name), device: Fixture.phone, externalId: "anna", mode: .create)), name)
            if name == "two" {
                run(.setInstallStatus(SetInstallStatus(installId: "two", status: .deleted)), "deleted")
            }
        }
        #expect(state.installs.values.filter(\.isActive).map(\.id) == ["three"])
        for name in order {
            run(.detachInstall(DetachInstall(installId: InstallID(name), cause: .creationFailed)), "f\(name)")
        }
        #expect(state.installs.values.filter(\.isActive).map(\.id) == ["one"])
    }

    /// L50, L53. A tablet that creations on phones superseded asks for its person anew, and waits for the phone that is
    /// active then: it is active again when all of them have failed, whenever it asked and whichever fails first.
    @Test(arguments: 0...2, [["two", "three"], ["three", "two"]])
    func whoWaitsForCreationsThatFailIsActiveAgain(_ asks: Int, _ order: [String]) throws {
        var state = LinkState("one tablet u1=anna")
        func run(_ command: LinkCommand, _ id: String) {
            state = state.after(Fixture.decide(command, state, Fixture.context(id: CommandID(id))))
        }
        func establish(_ name: String, _ device: Device) {
            run(
                .establish(
                    EstablishLink(installId: InstallID(name), device: device, externalId: "anna", mode: .create)), name)
        }
        func askAnew() {
            establish("one", Fixture.tablet)
            #expect(state.install("one")?.activity == .standby)
        }
        establish("two", Fixture.phone)
        if asks == 0 { askAnew() }
        establish("three", Fixture.phone)
        if asks == 1 { askAnew() }
        for (place, name) in order.enumerated() {
            run(.detachInstall(DetachInstall(installId: InstallID(name), cause: .creationFailed)), "f\(name)")
            if asks == 2, place == 0 { askAnew() }
        }
        #expect(state.installs.values.filter(\.isActive).map(\.id) == ["one"])
    }

    /// L50. What a creation took that ended well stays so: a later one on the same install, which finds its person active,
    /// takes it from nobody.
    @Test func whatASuccessTookIsNotGivenBack() throws {
        var state = LinkState("one u1=anna")
        func run(_ command: LinkCommand, _ id: CommandID) {
            state = state.after(Fixture.decide(command, state, Fixture.context(id: id)))
        }
        let establish = EstablishLink(installId: "two", device: Fixture.phone, externalId: "anna", mode: .create)
        run(.establish(establish), "creation")
        run(.establish(establish), "again")
        #expect(state.install("two")?.isActive == true)
        run(.detachInstall(DetachInstall(installId: "two", cause: .creationFailed)), "failure")
        #expect(state.install("one")?.activity == .deactivated)
    }

    /// L50, L72. Support takes the external id off the person while the linker's creation is open, and its backend links the
    /// person with another one: when the creation comes to nothing, the phone of before is active again.
    @Test func whoIsLinkedAnewGivesBackWhatTheCreationTook() throws {
        var state = LinkState("one u1=anna, two")
        func run(_ command: LinkCommand, _ id: CommandID) {
            state = state.after(Fixture.decide(command, state, Fixture.context(id: id)))
        }
        run(.request(LinkRequest(installId: "two", externalId: "anna")), "link")
        #expect(state.installs.values.filter(\.isActive).map(\.id) == ["two"])
        let user = try #require(state.install("two")?.userID)
        run(.unlink(UnlinkUser(userId: user, author: "kim", reason: "wrong")), "unlink")
        run(.request(LinkRequest(installId: "two", externalId: "berta")), "again")
        #expect(state.person(userID: user)?.externalID == "berta")
        run(.detachInstall(DetachInstall(installId: "two", cause: .creationFailed)), "failure")
        #expect(state.installs.values.filter(\.isActive).map(\.id) == ["one"])
    }

    @Test func nothingIsPromotedWhenTheActiveOneGoes() throws {
        let start = LinkState(
            installs: [
                Fixture.install("phone", of: UserID(Fixture.userID.text)),
                Fixture.install("tablet", .tablet, of: UserID(Fixture.userID.text), .standby),
            ], persons: [Fixture.person(UserID(Fixture.userID.text), "anna")])
        let commands: [LinkCommand] = [
            .detachInstall(DetachInstall(installId: "phone", cause: .reset)),
            .setInstallStatus(SetInstallStatus(installId: "phone", status: .deleted)),
            .setInstallStatus(SetInstallStatus(installId: "phone", status: .disabled)),
        ]
        for command in commands {
            let after = start.after(Fixture.decide(command, start, Fixture.context()))
            #expect(after.install("tablet")?.activity == .standby)
            #expect(after.installs.values.filter(\.isActive).isEmpty)
            // But the tablet becomes active when it asks again.
            let again = after.after(
                Fixture.decide(Fixture.request("tablet", "anna"), after, Fixture.context(id: "c2")))
            #expect(again.install("tablet")?.activity == .active)
        }
    }

    /// Enabling gives back what disabling took, with an event, unless another install took over.
    @Test(arguments: [false, true]) func enablingGivesActivityBackUnlessItIsTaken(_ isTaken: Bool) throws {
        let start = LinkState(
            installs: [
                Fixture.install("phone", of: UserID(Fixture.userID.text)),
                Fixture.install("tablet", .tablet, of: UserID(Fixture.userID.text), .standby),
            ], persons: [Fixture.person(UserID(Fixture.userID.text), "anna")])
        func set(_ status: InstallStatus, _ state: LinkState) -> LinkDecider.Decision {
            Fixture.decide(
                .setInstallStatus(SetInstallStatus(installId: "phone", status: status)), state, Fixture.context())
        }
        let disabling = set(.disabled, start)
        var state = start.after(disabling)
        #expect(state.install("phone")?.activity == .suspended)
        #expect((disabling.told.first as? InstallStatusChanged)?.isActive == false)
        if isTaken {
            state = state.after(Fixture.decide(Fixture.request("tablet", "anna"), state, Fixture.context(id: "c2")))
            #expect(state.install("tablet")?.activity == .active)
        }
        let enabling = set(.enabled, state)
        #expect(state.after(enabling).install("phone")?.activity == (isTaken ? .deactivated : .active))
        #expect((enabling.told.first as? InstallStatusChanged)?.isActive == !isTaken)
        // What was taken over by another stays so, as any install that was.
        let again = Fixture.decide(
            Fixture.request("phone", "anna"), state.after(enabling), Fixture.context(id: "c3"))
        #expect((again.answer == .rejected(.installDeactivated)) == isTaken)
    }
}
