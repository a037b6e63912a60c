// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Link
@testable import Runtime

/// Users who do not come back (docs/link.md "Retention").
@Suite struct RetentionTests {
    private static let userID = Fixture.userID

    private func expire(_ state: LinkState, _ install: InstallID = "i1") -> (LinkDecider.Decision, LinkState) {
        let command = LinkCommand.expire(ExpirePerson(installId: install, userId: Self.userID))
        let decision = Fixture.decide(command, state, Fixture.context())
        return (decision, state.after(decision))
    }

    /// L201.
    @Test func whoIsOnNoOtherInstallIsGone() {
        let (decision, after) = expire(
            LinkState(installs: [Fixture.install("i1", of: Self.userID)], persons: [Fixture.person()]))
        #expect(
            decision.events.map { AnyHashable($0) } == [
                AnyHashable(InstallDetached(installId: "i1", userId: Self.userID, version: 1)),
                AnyHashable(UserExpired(userId: Self.userID, installId: "i1")),
            ])
        #expect(after.person(userID: Self.userID) == nil && after.install("demo", "i1")?.userID == nil)
        #expect(after.expired == 1)
    }

    /// L201.
    @Test func whoIsOnAnotherInstallStaysThere() {
        let (decision, after) = expire(
            LinkState(
                installs: [
                    Fixture.install("i1", of: Self.userID), Fixture.install("i2", of: Self.userID, .deactivated),
                ], persons: [Fixture.person()]))
        #expect(decision.events.count == 1 && after.person(userID: Self.userID) != nil)
        #expect(after.install("demo", "i2")?.userID == Self.userID && after.install("demo", "i1")?.userID == nil)
    }

    /// L200: who is linked, was linked, is restricted, or somebody else.
    @Test(arguments: ["linked", "linked once", "barred", "called otherwise before", "restricted", "another's install"])
    func whoIsNeededStays(_ why: String) {
        var person = Fixture.person()
        var install = Fixture.install("i1", of: Self.userID)
        switch why {
        case "linked": person.externalID = "anna"
        case "linked once": person.linkedAt = 1
        case "barred": person.barred = [TextDigest(of: "anna")]
        case "called otherwise before":
            person.former = [FormerExternalID(externalId: "anna", until: Timestamp(milliseconds: 1))]
        case "restricted":
            person.restrictions = [Restriction(mpid: .max, isRestricted: true, changedAt: 1)]
        default: install.userID = "another"
        }
        let state = LinkState(installs: [install], persons: [person])
        let (decision, _) = expire(state)
        #expect(decision.changes.isEmpty && decision.events.isEmpty)
        guard case .succeeded = decision.outcome else { return #expect(Bool(false)) }
    }

    @Test func anInstallThatIsNotThereIsRefused() {
        let (decision, _) = expire(LinkState())
        #expect(decision.answer == .rejected(.installNotFound))
    }
}
