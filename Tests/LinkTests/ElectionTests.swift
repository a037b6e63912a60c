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
        L13 standby stays | new, phone u1=anna, tab tablet standby u1=anna | request new anna -> new active u1=anna, phone deactivated u1=anna; linked new, superseded phone
        """)

    @Test(arguments: rows) func decides(_ row: Row) throws { try row.check() }

    @Test func nothingIsPromotedWhenTheActiveOneGoes() throws {
        let start = LinkState(
            installs: [
                Fixture.install("phone", of: UserID(Fixture.userID.text)),
                Fixture.install("tablet", .tablet, of: UserID(Fixture.userID.text), .standby),
            ], persons: [Fixture.person(UserID(Fixture.userID.text), "anna")])
        let commands: [LinkCommand] = [
            .detachInstall(DetachInstall(installId: "phone")),
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
