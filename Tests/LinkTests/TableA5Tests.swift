// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Link
@testable import Runtime

/// facts/linking-and-verification.md A5, row by row. Rows 1 and 2 are the runtime's (AuthenticatorTests,
/// PrincipalTests).
@Suite struct TableA5Tests {
    struct Row: Sendable, CustomTestStringConvertible {
        var number: String
        var installs: [Install] = []
        var persons: [Person] = []
        var app = Fixture.app
        var install = "i1"
        var externalID = "anna"
        var expected: Expectation

        var testDescription: String { "row \(number)" }
    }

    enum Expectation: Sendable {
        case refused(ReasonCode)
        /// The person of `Fixture.userID`, or a new one.
        case linked(isNew: Bool, isActive: Bool = true, deactivated: [String] = [])
        /// Nothing to do: it is so already.
        case unchanged(isActive: Bool)
    }

    private static let me = Fixture.userID
    private static let other = "0123456789abcdef01234567"

    static let rows: [Row] = [
        Row(
            number: "3, blocked", installs: [Fixture.install("i1")], externalID: "null",
            expected: .refused(.invalidRequest)),
        Row(number: "3, empty", installs: [Fixture.install("i1")], externalID: "", expected: .refused(.invalidRequest)),
        Row(
            number: "3, outer space", installs: [Fixture.install("i1")], externalID: "anna ",
            expected: .refused(.invalidRequest)),
        Row(
            number: "3 before 4 to 7", app: Fixture.unlinkedApp, externalID: "--0", expected: .refused(.invalidRequest)),
        Row(
            number: "4", installs: [Fixture.install("i1", app: "unlinked")], app: Fixture.unlinkedApp,
            expected: .refused(.userLinkingNotConfigured)),
        Row(number: "4 before 5", app: Fixture.unlinkedApp, expected: .refused(.userLinkingNotConfigured)),
        Row(number: "5", expected: .refused(.installNotFound)),
        Row(
            number: "6", installs: [Fixture.install("i1", app: "other")], expected: .refused(.installDoesNotBelongToApp)
        ),
        Row(
            number: "6 before 7", installs: [Fixture.install("i1", status: .deleted, app: "other")],
            expected: .refused(.installDoesNotBelongToApp)),
        Row(
            number: "7, deleted", installs: [Fixture.install("i1", status: .deleted)],
            expected: .refused(.installDeleted)),
        Row(
            number: "7, disabled", installs: [Fixture.install("i1", status: .disabled)],
            expected: .refused(.installDisabled)),
        Row(
            number: "7 before 8", installs: [Fixture.install("i1", of: me, status: .disabled)],
            persons: [Fixture.person(me, "bert")], expected: .refused(.installDisabled)),
        Row(
            number: "7 before 9", installs: [Fixture.install("i1", of: me, status: .deleted)],
            persons: [Fixture.person(me, "anna")], expected: .refused(.installDeleted)),
        Row(
            number: "7a, nobody is awaited", installs: [Fixture.install("i1", isOpen: false)],
            expected: .refused(.noLinkingInProgress)),
        Row(
            number: "7a before 13", installs: [Fixture.install("i1", isOpen: false), Fixture.install("i2", of: me)],
            persons: [Fixture.person(me, "anna")], expected: .refused(.noLinkingInProgress)),
        Row(
            number: "7 before 7a", installs: [Fixture.install("i1", status: .disabled, isOpen: false)],
            expected: .refused(.installDisabled)),
        Row(
            number: "8", installs: [Fixture.install("i1", of: me)], persons: [Fixture.person(me, "bert")],
            expected: .refused(.installLinkedToOtherUser)),
        Row(
            number: "8, known elsewhere", installs: [Fixture.install("i1", of: me), Fixture.install("i2", of: other)],
            persons: [Fixture.person(me, "bert"), Fixture.person(other, "anna")],
            expected: .refused(.installLinkedToOtherUser)),
        Row(
            number: "8 before 10", installs: [Fixture.install("i1", of: me, .deactivated)],
            persons: [Fixture.person(me, "bert")], expected: .refused(.installLinkedToOtherUser)),
        Row(
            number: "8, other case", installs: [Fixture.install("i1", of: me)], persons: [Fixture.person(me, "Anna")],
            expected: .refused(.installLinkedToOtherUser)),
        Row(
            number: "8, other bytes that look alike", installs: [Fixture.install("i1", of: me)],
            persons: [Fixture.person(me, "Ren\u{e9}")], externalID: "Rene\u{301}",
            expected: .refused(.installLinkedToOtherUser)),
        Row(
            number: "9", installs: [Fixture.install("i1", of: me)], persons: [Fixture.person(me, "anna")],
            expected: .unchanged(isActive: true)),
        Row(
            number: "9 before 11", installs: [Fixture.install("i1", of: me), Fixture.install("i2", of: me)],
            persons: [Fixture.person(me, "anna")], expected: .unchanged(isActive: true)),
        Row(
            number: "9, standby",
            installs: [Fixture.install("i1", .tablet, of: me, .standby), Fixture.install("i2", of: me)],
            persons: [Fixture.person(me, "anna")], expected: .unchanged(isActive: false)),
        Row(
            number: "9, standby and nobody active", installs: [Fixture.install("i1", .tablet, of: me, .standby)],
            persons: [Fixture.person(me, "anna")], expected: .linked(isNew: false)),
        Row(
            number: "9, standby and a tablet is active",
            installs: [Fixture.install("i1", .tablet, of: me, .standby), Fixture.install("i2", .tablet, of: me)],
            persons: [Fixture.person(me, "anna")], expected: .linked(isNew: false, deactivated: ["i2"])),
        Row(
            number: "10", installs: [Fixture.install("i1", of: me, .deactivated), Fixture.install("i2", of: me)],
            persons: [Fixture.person(me, "anna")], expected: .refused(.installDeactivated)),
        Row(
            number: "10, nobody active", installs: [Fixture.install("i1", of: me, .deactivated)],
            persons: [Fixture.person(me, "anna")], expected: .refused(.installDeactivated)),
        Row(
            number: "11",
            installs: [Fixture.install("i1"), Fixture.install("i2", of: me), Fixture.install("i3", of: me)],
            persons: [Fixture.person(me, "anna")], expected: .refused(.multipleInstallsActive)),
        Row(number: "12", installs: [Fixture.install("i1")], expected: .linked(isNew: true)),
        Row(
            number: "12, the external id of another app", installs: [Fixture.install("i1")],
            persons: [Fixture.person(other, "anna", app: "other")], expected: .linked(isNew: true)),
        Row(
            number: "12, other bytes that look alike", installs: [Fixture.install("i1")],
            persons: [Fixture.person(other, "Ren\u{e9}")], externalID: "Rene\u{301}", expected: .linked(isNew: true)),
        Row(
            number: "13", installs: [Fixture.install("i1"), Fixture.install("i2", of: me)],
            persons: [Fixture.person(me, "anna")], expected: .linked(isNew: false, deactivated: ["i2"])),
        Row(
            number: "13, nobody active",
            installs: [Fixture.install("i1"), Fixture.install("i2", of: me, .deactivated)],
            persons: [Fixture.person(me, "anna")], expected: .linked(isNew: false)),
        Row(
            number: "13, tablet beside phone",
            installs: [Fixture.install("i1", .tablet), Fixture.install("i2", of: me)],
            persons: [Fixture.person(me, "anna")], expected: .linked(isNew: false, isActive: false)),
        Row(
            number: "13, tablet beside a disabled phone",
            installs: [Fixture.install("i1", .tablet), Fixture.install("i2", of: me, .suspended, status: .disabled)],
            persons: [Fixture.person(me, "anna")], expected: .linked(isNew: false)),
        Row(
            number: "14", installs: [Fixture.install("i1", of: me)], persons: [Fixture.person(me)],
            expected: .linked(isNew: false)),
        Row(
            number: "15", installs: [Fixture.install("i1", of: me), Fixture.install("i2", of: other)],
            persons: [Fixture.person(me), Fixture.person(other, "anna")],
            expected: .refused(.cannotLinkExistingPersonToOtherPerson)),
        Row(
            number: "15, whose person has no install left", installs: [Fixture.install("i1", of: me)],
            persons: [Fixture.person(me), Fixture.person(other, "anna")],
            expected: .refused(.cannotLinkExistingPersonToOtherPerson)),
        Row(
            number: "15 before 11",
            installs: [
                Fixture.install("i1", of: me), Fixture.install("i2", of: other), Fixture.install("i3", of: other),
            ],
            persons: [Fixture.person(me), Fixture.person(other, "anna")],
            expected: .refused(.cannotLinkExistingPersonToOtherPerson)),
    ]

    @Test(arguments: rows) func decides(_ row: Row) throws {
        let state = LinkState(installs: row.installs, persons: row.persons)
        let context = Fixture.context(row.app)
        let decision = LinkDecider.decide(Fixture.request(row.install, row.externalID), state, context)
        switch row.expected {
        case .refused(let reason):
            #expect(decision.answer == .rejected(reason))
            #expect(decision.changes.isEmpty)
            #expect(decision.told == [LinkRefused(installId: row.install, reason: reason)])
        case .unchanged(let isActive):
            #expect(
                decision.answer
                    == .link(
                        LinkResult(
                            userId: Self.me, installId: row.install, isActive: isActive, personCreated: false,
                            version: 0)))
            #expect(decision.changes.isEmpty)
            #expect(decision.events.isEmpty)
        case .linked(let isNew, let isActive, let deactivated):
            let userID = isNew ? context.newUserID : Self.me
            #expect(
                decision.answer
                    == .link(
                        LinkResult(userId: userID, installId: row.install, isActive: isActive, personCreated: isNew)))
            let active = isActive ? row.install : "i2"
            let linked = Linked(
                installId: row.install, externalId: row.externalID, userId: userID, personCreated: isNew,
                activeInstallId: active, deactivatedInstallIds: deactivated)
            let superseded = deactivated.map {
                InstallStatusChanged(
                    installId: $0, status: .enabled, isActive: false, userId: userID, cause: .superseded)
            }
            #expect(decision.told == [AnyHashable(linked)] + superseded.map { AnyHashable($0) })
            try check(state.after(decision), row, userID, isActive: isActive, deactivated: deactivated)
        }
    }

    private func check(
        _ state: LinkState, _ row: Row, _ userID: String, isActive: Bool, deactivated: [String]
    ) throws {
        let install = try #require(state.install(row.install))
        #expect(install.userID == userID)
        #expect(install.activity == (isActive ? .active : .standby))
        #expect(state.person(app: row.app.id, externalID: row.externalID)?.userID == userID)
        for id in deactivated { #expect(state.install(id)?.activity == .deactivated) }
        let untouched = row.installs.filter { $0.id != row.install && !deactivated.contains($0.id) }
        for before in untouched { #expect(state.install(before.id) == before) }
    }
}
