// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Testing

@testable import Link
@testable import Runtime

/// `link.establish`: what the user service asks for when an authentication code was redeemed (docs/user.md).
@Suite struct EstablishTests {
    /// The numbers are the rows of docs/link.md; where there is none, the rule is this command's own.
    static let rows = Row.rows(
        """
        L12                | -               | create i1 anna -> i1 active first new=anna; registered i1, linked i1
        L13                | old u1=anna     | create i1 anna -> i1 active u1=anna, old deactivated u1=anna; registered i1, linked i1, superseded old
        L13 beside a phone | old u1=anna     | create i1 tablet anna -> i1 tablet standby u1=anna; registered i1, linked i1
        known device      | i1              | create i1 anna -> i1 active first new=anna; linked i1
        another device    | i1              | create i1 other anna -> i1 other active first new=anna; registered i1, linked i1
        not awaited       | i1 closed       | create i1 anna -> i1 active first new=anna; linked i1
        L14                | i1 u1           | link-existing-user i1 anna -> i1 active u1=anna; linked i1
        no user           | -               | link-existing-user i1 anna -> USER_NOT_FOUND
        no user           | i1              | link-existing-user i1 anna -> USER_NOT_FOUND
        L15                | i1 u1, i2 u2=anna | link-existing-user i1 anna -> CANNOT_LINK_EXISTING_PERSON_TO_OTHER_PERSON
        L3                 | -               | create i1 null -> INVALID_REQUEST
        L3                 | -               | link-existing-user i1 null -> INVALID_REQUEST
        L4                 | -               | create i1 anna in unlinked -> USERLINKING_NOT_CONFIGURED
        L4                 | -               | link-existing-user i1 anna in unlinked -> USERLINKING_NOT_CONFIGURED
        L47                | i1 of other     | create i1 anna -> i1 active first new=anna; registered i1, linked i1
        L47                | i1 of other     | link-existing-user i1 anna -> USER_NOT_FOUND
        L7                 | i1 disabled     | create i1 anna -> INSTALL_DISABLED
        L7                 | i1 disabled     | link-existing-user i1 anna -> INSTALL_DISABLED
        L7                 | i1 deleted      | create i1 anna -> INSTALL_DELETED
        L7                 | i1 deleted      | link-existing-user i1 anna -> INSTALL_DELETED
        L8                 | i1 u1=bert      | create i1 anna -> INSTALL_LINKED_TO_OTHER_USER
        L8                 | i1 u1=bert      | link-existing-user i1 anna -> INSTALL_LINKED_TO_OTHER_USER
        L10                | i1 deactivated u1=anna | link-existing-user i1 anna -> INSTALL_DEACTIVATED
        """)

    @Test(arguments: rows) func decides(_ row: Row) throws { try row.check() }

    @Test func aRepeatedLinkMayBringAnotherDevice() throws {
        let state = LinkState(
            installs: [Fixture.install("i1", of: UserID(Fixture.userID.text))],
            persons: [Fixture.person(UserID(Fixture.userID.text), "anna")])
        let upgraded = Device(kind: .phone, platform: "test", osVersion: "18")
        let command = EstablishLink(installId: "i1", device: upgraded, externalId: "anna", mode: .create)
        let decision = Fixture.decide(.establish(command), state, Fixture.context())
        #expect(
            decision.told == [InstallRegistered(installId: "i1", device: upgraded, userId: UserID(Fixture.userID.text))]
        )
        var expected = Fixture.install("i1", of: UserID(Fixture.userID.text))
        expected.device = upgraded
        #expect(state.after(decision).install("i1") == expected)
    }
}
