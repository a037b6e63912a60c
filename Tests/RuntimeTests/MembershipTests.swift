// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Runtime

@Suite struct MembershipTests {
    private struct Newer: Error {}

    /// Whoever is outside has nothing to leave, and whoever must end does not join again.
    @Test func onlyAMemberLeaves() {
        for (before, after) in [
            (Membership.outside, "outside"), (.member, "leaving"), (.leaving, "leaving"), (.unfit(Newer()), "unfit"),
        ] {
            var membership = before
            membership.leave()
            #expect("\(membership)".hasPrefix(after))
            #expect(membership.isLeaving == (after != "outside"))
        }
    }
}
