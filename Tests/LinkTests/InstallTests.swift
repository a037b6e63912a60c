// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Link
@testable import Runtime

/// Registering, reading, detaching, and the platform's word on installs.
@Suite struct InstallTests {
    /// What is not on the page as a numbered row has its name here.
    static let rows = Row.rows(
        """
        register          | -                     | register i1 tablet none -> i1 tablet; registered i1
        register          | -                     | register i1 new -> i1 active first new; registered i1
        a user            | i1                    | register i1 new -> i1 active first new; registered i1
        again             | i1                    | register i1 none -> unchanged
        again             | i1 u1                 | register i1 none -> unchanged
        L54                | i1 u1                 | register i1 new -> USER_ALREADY_EXISTS
        L54                | i1 u1=anna            | register i1 new -> USER_ALREADY_EXISTS
        L54                | i1 u1                 | create i1 anna -> CANNOT_LINK_EXISTING_PERSON_TO_OTHER_PERSON
        another device    | i1 u1=anna            | register i1 tablet none -> i1 tablet active u1=anna; registered i1
        L7a opens it again | i1 closed             | register i1 none -> i1
        L47                | i1 u1 of other        | register i1 new -> i1 active first new; registered i1
        L47                | i1 u1=anna of other   | create i1 anna -> i1 active first new=anna; registered i1, linked i1
        L7                 | i1 disabled           | register i1 new -> INSTALL_DISABLED
        L7                 | i1 deleted            | register i1 new -> INSTALL_DELETED
        query             | i1 u1=anna            | query i1 -> unchanged
        query             | i1 deleted            | query i1 -> unchanged
        L5                 | -                     | query i1 -> INSTALL_NOT_FOUND
        L6                 | i1 of other           | query i1 -> INSTALL_DOES_NOT_BELONG_TO_APP
        detach            | i1 u1=anna            | detach i1 -> i1 closed; detached i1
        detach            | i1 disabled u1        | detach i1 -> i1 disabled closed; detached i1
        nobody is there   | i1 closed             | detach i1 -> unchanged
        L7a closes it      | i1, real u1=anna      | detach i1 -> i1 closed
        L5                 | -                     | detach i1 -> INSTALL_NOT_FOUND
        L6                 | i1 of other           | detach i1 -> INSTALL_DOES_NOT_BELONG_TO_APP
        L7                 | i1 deleted            | detach i1 -> INSTALL_DELETED
        L26                | i1 deleted deactivated u1=anna | detach i1 -> i1 deleted closed; detached i1
        disable           | i1 u1=anna            | set i1 disabled -> i1 disabled active-once-enabled u1=anna; status i1
        delete            | i1 u1=anna            | set i1 deleted -> i1 deleted deactivated u1=anna; status i1
        enable            | i1 disabled active-once-enabled u1=anna | set i1 enabled -> i1 active u1=anna; status i1
        delete            | i1 disabled active-once-enabled u1=anna | set i1 deleted -> i1 deleted deactivated u1=anna; status i1
        never taken back  | i1 deleted u1=anna    | set i1 enabled -> INSTALL_DELETED
        never taken back  | i1 deleted u1=anna    | set i1 disabled -> INSTALL_DELETED
        the same          | i1                    | set i1 enabled -> unchanged
        the same          | i1 disabled           | set i1 disabled -> unchanged
        the same          | i1 deleted            | set i1 deleted -> unchanged
        L5                 | -                     | set i1 disabled -> INSTALL_NOT_FOUND
        L33                | i1 of other           | set i1 disabled -> INSTALL_NOT_FOUND
        """)

    @Test(arguments: rows) func decides(_ row: Row) throws { try row.check() }

    /// A link request that was on its way comes too late. The same external id restores the same person when the device
    /// begins anew.
    @Test func aDetachedInstallIsLinkedWhenTheDeviceBeginsAnew() throws {
        let state = LinkState("i1 u1=anna")
        let after = state.after(decide(.detachInstall(DetachInstall(installId: "i1", cause: .reset)), state))
        #expect(after.person(app: "demo", externalID: "anna")?.userID == "u1")
        let late = decide(Fixture.request("i1", "anna"), after)
        #expect(late.answer == .rejected(.noLinkingInProgress))
        let device = Fixture.device(.phone)
        let open = after.after(decide(.registerInstall(.init(installId: "i1", device: device, user: .none)), after))
        let again = decide(Fixture.request("i1", "anna"), open)
        #expect(
            again.answer
                == .link(LinkResult(userId: "u1", installId: "i1", isActive: true, personCreated: false, version: 2)))
    }

    /// The app's linker failed or took too long. Its link request may be on its way still: it must not put a person on the
    /// install, and no other install of that person may lose it.
    @Test func aLinkThatComesBehindTheDetachChangesNothing() throws {
        let state = LinkState("i1, real u1=anna")
        let detached = state.after(decide(.detachInstall(DetachInstall(installId: "i1", cause: .reset)), state))
        let late = decide(Fixture.request("i1", "anna"), detached)
        #expect(late.answer == .rejected(.noLinkingInProgress))
        #expect(late.changes.isEmpty)
        #expect(late.told == [LinkRefused(installId: "i1", reason: .noLinkingInProgress)])
    }

    /// Also what is not seen of a device is kept.
    @Test func theWholeDeviceIsKept() throws {
        let command = RegisterInstall(installId: "i1", device: Fixture.tablet, user: .none)
        for state in [LinkState(), LinkState("i1"), LinkState("i1 tablet u1=anna")] {
            let decision = decide(.registerInstall(command), state)
            #expect(state.after(decision).install("i1")?.device == Fixture.tablet)
            let userID = state.install("i1")?.userID
            #expect(decision.told == [InstallRegistered(installId: "i1", device: Fixture.tablet, userId: userID)])
        }
    }

    private func decide(_ command: LinkCommand, _ state: LinkState) -> LinkDecider.Decision {
        Fixture.decide(command, state, Fixture.context())
    }

    /// Decision 3: who decides about another install of the person at the same moment writes that row too.
    @Test func whatChangesAPersonsInstallWritesThePerson() {
        let person = Fixture.person(Fixture.userID, "anna")
        let state = LinkState(installs: [Fixture.install("i1", of: Fixture.userID)], persons: [person])
        let commands: [LinkCommand] = [
            .detachInstall(DetachInstall(installId: "i1", cause: .reset)),
            .setInstallStatus(SetInstallStatus(installId: "i1", status: .disabled)),
        ]
        for command in commands {
            #expect(Fixture.decide(command, state, Fixture.context()).changes.contains(.person(person)))
        }
    }
}
