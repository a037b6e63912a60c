// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Link
@testable import Runtime

/// docs/link.md, rule by rule. L1 and L2 are the runtime's (`AuthenticatorTests`).
@Suite struct RequestTests {
    static let rows = Row.rows(
        """
        L3 blocked               | i1                                    | request i1 null -> INVALID_REQUEST
        L3 empty                 | i1                                    | request i1 "" -> INVALID_REQUEST
        L3 outer white space     | i1                                    | request i1 "anna " -> INVALID_REQUEST
        L3 before L4 to L7         | -                                     | request i1 --0 in unlinked -> INVALID_REQUEST
        L4                       | i1 of unlinked                        | request i1 anna in unlinked -> USERLINKING_NOT_CONFIGURED
        L4 before L5              | -                                     | request i1 anna in unlinked -> USERLINKING_NOT_CONFIGURED
        L5                       | -                                     | request i1 anna -> INSTALL_NOT_FOUND
        L6                       | i1 of other                           | request i1 anna -> INSTALL_DOES_NOT_BELONG_TO_APP
        L6 before L7              | i1 deleted of other                   | request i1 anna -> INSTALL_DOES_NOT_BELONG_TO_APP
        L7 deleted               | i1 deleted                            | request i1 anna -> INSTALL_DELETED
        L7 disabled              | i1 disabled                           | request i1 anna -> INSTALL_DISABLED
        L7 before L7a             | i1 disabled closed                    | request i1 anna -> INSTALL_DISABLED
        L7 before L8              | i1 disabled u1=bert                   | request i1 anna -> INSTALL_DISABLED
        L7 before L9              | i1 deleted u1=anna                    | request i1 anna -> INSTALL_DELETED
        L7a                      | i1 closed                             | request i1 anna -> NO_LINKING_IN_PROGRESS
        L7a before L13            | i1 closed, i2 u1=anna                 | request i1 anna -> NO_LINKING_IN_PROGRESS
        L8                       | i1 u1=bert                            | request i1 anna -> INSTALL_LINKED_TO_OTHER_USER
        L8 known elsewhere       | i1 u1=bert, i2 u2=anna                | request i1 anna -> INSTALL_LINKED_TO_OTHER_USER
        L8 before L10             | i1 deactivated u1=bert                | request i1 anna -> INSTALL_LINKED_TO_OTHER_USER
        L8 other case            | i1 u1=Anna                            | request i1 anna -> INSTALL_LINKED_TO_OTHER_USER
        L8 other bytes           | i1 u1=Ren\u{e9}                           | request i1 Rene\u{301} -> INSTALL_LINKED_TO_OTHER_USER
        L9                       | i1 u1=anna                            | request i1 anna -> unchanged
        L9 before L11             | i1 u1=anna, i2 u1=anna                | request i1 anna -> unchanged
        L9 standby               | i1 tablet standby u1=anna, i2 u1=anna | request i1 anna -> unchanged
        L9a nobody is active     | i1 tablet standby u1=anna             | request i1 anna -> i1 tablet active u1=anna; linked i1
        L9a a tablet is active   | i1 tablet standby u1=anna, i2 tablet u1=anna | request i1 anna -> i1 tablet active u1=anna, i2 tablet deactivated u1=anna; linked i1, superseded i2
        L10                      | i1 deactivated u1=anna, i2 u1=anna    | request i1 anna -> INSTALL_DEACTIVATED
        L10 nobody is active     | i1 deactivated u1=anna                | request i1 anna -> INSTALL_DEACTIVATED
        L11                      | i1, i2 u1=anna, i3 u1=anna            | request i1 anna -> MULTIPLE_INSTALLS_ACTIVE
        L12                      | i1                                    | request i1 anna -> i1 active first new=anna; linked i1
        L12 of another app       | i1, u2=anna of other                  | request i1 anna -> i1 active first new=anna; linked i1
        L12 other bytes          | i1, u2=Ren\u{e9}                          | request i1 Rene\u{301} -> i1 active first new=Rene\u{301}; linked i1
        L13                      | i1, i2 u1=anna                        | request i1 anna -> i1 active u1=anna, i2 deactivated u1=anna; linked i1, superseded i2
        L13 nobody is active     | i1, i2 deactivated u1=anna            | request i1 anna -> i1 active u1=anna; linked i1
        L13 beside a phone       | i1 tablet, i2 u1=anna                 | request i1 anna -> i1 tablet standby u1=anna; linked i1
        L13 it is disabled       | i1 tablet, i2 disabled active-once-enabled u1=anna | request i1 anna -> i1 tablet active u1=anna, i2 disabled deactivated u1=anna; linked i1, superseded i2
        L14                      | i1 u1                                 | request i1 anna -> i1 active u1=anna; linked i1
        L15                      | i1 u1, i2 u2=anna                     | request i1 anna -> CANNOT_LINK_EXISTING_PERSON_TO_OTHER_PERSON
        L15 without an install   | i1 u1, u2=anna                        | request i1 anna -> CANNOT_LINK_EXISTING_PERSON_TO_OTHER_PERSON
        L15 before L11            | i1 u1, i2 u2=anna, i3 u2=anna         | request i1 anna -> CANNOT_LINK_EXISTING_PERSON_TO_OTHER_PERSON
        """)

    @Test(arguments: rows) func decides(_ row: Row) throws { try row.check() }
}
