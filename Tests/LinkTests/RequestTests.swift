// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Link
@testable import Runtime

/// The table of docs/link.md, row by row. Rows 1 and 2 are the runtime's (`AuthenticatorTests`).
@Suite struct RequestTests {
    static let rows = Row.rows(
        """
        3 blocked               | i1                                    | request i1 null -> INVALID_REQUEST
        3 empty                 | i1                                    | request i1 "" -> INVALID_REQUEST
        3 outer white space     | i1                                    | request i1 "anna " -> INVALID_REQUEST
        3 before 4 to 7         | -                                     | request i1 --0 in unlinked -> INVALID_REQUEST
        4                       | i1 of unlinked                        | request i1 anna in unlinked -> USERLINKING_NOT_CONFIGURED
        4 before 5              | -                                     | request i1 anna in unlinked -> USERLINKING_NOT_CONFIGURED
        5                       | -                                     | request i1 anna -> INSTALL_NOT_FOUND
        6                       | i1 of other                           | request i1 anna -> INSTALL_DOES_NOT_BELONG_TO_APP
        6 before 7              | i1 deleted of other                   | request i1 anna -> INSTALL_DOES_NOT_BELONG_TO_APP
        7 deleted               | i1 deleted                            | request i1 anna -> INSTALL_DELETED
        7 disabled              | i1 disabled                           | request i1 anna -> INSTALL_DISABLED
        7 before 7a             | i1 disabled closed                    | request i1 anna -> INSTALL_DISABLED
        7 before 8              | i1 disabled u1=bert                   | request i1 anna -> INSTALL_DISABLED
        7 before 9              | i1 deleted u1=anna                    | request i1 anna -> INSTALL_DELETED
        7a                      | i1 closed                             | request i1 anna -> NO_LINKING_IN_PROGRESS
        7a before 13            | i1 closed, i2 u1=anna                 | request i1 anna -> NO_LINKING_IN_PROGRESS
        8                       | i1 u1=bert                            | request i1 anna -> INSTALL_LINKED_TO_OTHER_USER
        8 known elsewhere       | i1 u1=bert, i2 u2=anna                | request i1 anna -> INSTALL_LINKED_TO_OTHER_USER
        8 before 10             | i1 deactivated u1=bert                | request i1 anna -> INSTALL_LINKED_TO_OTHER_USER
        8 other case            | i1 u1=Anna                            | request i1 anna -> INSTALL_LINKED_TO_OTHER_USER
        8 other bytes           | i1 u1=Ren\u{e9}                           | request i1 Rene\u{301} -> INSTALL_LINKED_TO_OTHER_USER
        9                       | i1 u1=anna                            | request i1 anna -> unchanged
        9 before 11             | i1 u1=anna, i2 u1=anna                | request i1 anna -> unchanged
        9 standby               | i1 tablet standby u1=anna, i2 u1=anna | request i1 anna -> unchanged
        9a nobody is active     | i1 tablet standby u1=anna             | request i1 anna -> i1 tablet active u1=anna; linked i1
        9a a tablet is active   | i1 tablet standby u1=anna, i2 tablet u1=anna | request i1 anna -> i1 tablet active u1=anna, i2 tablet deactivated u1=anna; linked i1, superseded i2
        10                      | i1 deactivated u1=anna, i2 u1=anna    | request i1 anna -> INSTALL_DEACTIVATED
        10 nobody is active     | i1 deactivated u1=anna                | request i1 anna -> INSTALL_DEACTIVATED
        11                      | i1, i2 u1=anna, i3 u1=anna            | request i1 anna -> MULTIPLE_INSTALLS_ACTIVE
        12                      | i1                                    | request i1 anna -> i1 active first new=anna; linked i1
        12 of another app       | i1, u2=anna of other                  | request i1 anna -> i1 active first new=anna; linked i1
        12 other bytes          | i1, u2=Ren\u{e9}                          | request i1 Rene\u{301} -> i1 active first new=Rene\u{301}; linked i1
        13                      | i1, i2 u1=anna                        | request i1 anna -> i1 active u1=anna, i2 deactivated u1=anna; linked i1, superseded i2
        13 nobody is active     | i1, i2 deactivated u1=anna            | request i1 anna -> i1 active u1=anna; linked i1
        13 beside a phone       | i1 tablet, i2 u1=anna                 | request i1 anna -> i1 tablet standby u1=anna; linked i1
        13 it is disabled       | i1 tablet, i2 disabled suspended u1=anna | request i1 anna -> i1 tablet active u1=anna; linked i1
        14                      | i1 u1                                 | request i1 anna -> i1 active u1=anna; linked i1
        15                      | i1 u1, i2 u2=anna                     | request i1 anna -> CANNOT_LINK_EXISTING_PERSON_TO_OTHER_PERSON
        15 without an install   | i1 u1, u2=anna                        | request i1 anna -> CANNOT_LINK_EXISTING_PERSON_TO_OTHER_PERSON
        15 before 11            | i1 u1, i2 u2=anna, i3 u2=anna         | request i1 anna -> CANNOT_LINK_EXISTING_PERSON_TO_OTHER_PERSON
        """)

    @Test(arguments: rows) func decides(_ row: Row) throws { try row.check() }
}
