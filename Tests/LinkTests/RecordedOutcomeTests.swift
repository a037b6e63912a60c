// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing
import WireJSON

@testable import Link
@testable import Runtime

/// L80: what a link came to once, it comes to in a replay.
@Suite struct RecordedOutcomeTests {
    private let other: UserID = "5a18fc4b0962209e0000000e"

    private func decided(
        _ command: LinkCommand, _ recorded: RecordedOutcome?, _ state: LinkState, isPast: Bool = true, index: Int = 0
    ) -> LinkDecider.Decision {
        var (context, state) = (Fixture.context(id: "c1"), state)
        context.isPast = isPast
        if var recorded {
            recorded.event = CommandID(DerivedID.message(of: context.command, index: index))
            state.load([recorded], since: nil)
        }
        return Fixture.decide(command, state, context)
    }

    private func linked(_ userID: UserID) -> RecordedOutcome { RecordedOutcome(event: "", userID: userID) }

    private let establish = LinkCommand.establish(
        EstablishLink(installId: "i1", device: Fixture.phone, externalId: "anna", mode: .create))

    @Test func theUserHasTheIDOfThen() {
        let state = LinkState(installs: [Fixture.install("i1")])
        for command in [Fixture.request("i1", "anna"), establish] {
            let person = state.after(decided(command, linked(other), state)).person(app: "demo", externalID: "anna")
            #expect(person?.userID == other)
        }
        // Behind the event that makes the install known.
        let unknown = LinkState()
        let person = unknown.after(decided(establish, linked(other), unknown, index: 1)).person(userID: other)
        #expect(person?.externalID == "anna")
    }

    @Test(arguments: [ReasonCode.installNotFound, .noLinkingInProgress, .cannotLinkExistingPersonToOtherPerson])
    func whatWasRefusedIsRefused(_ reason: ReasonCode) {
        let state = LinkState(
            installs: [Fixture.install("i1", of: Fixture.userID)], persons: [Fixture.person(Fixture.userID)])
        for command in [Fixture.request("i1", "anna"), establish] {
            let decision = decided(command, RecordedOutcome(event: "", reason: reason), state)
            #expect(decision.answer == .rejected(reason))
            #expect(decision.changes.isEmpty)
            #expect(decision.told == [AnyHashable(LinkRefused(installId: "i1", reason: reason))])
        }
    }

    @Test func whoGotTheExternalIDThenGetsIt() throws {
        let state = LinkState(
            installs: [Fixture.install("i1"), Fixture.install("i2", of: Fixture.userID)],
            persons: [Fixture.person(Fixture.userID)])
        let decision = decided(Fixture.request("i1", "anna"), linked(Fixture.userID), state)
        let after = state.after(decision)
        #expect(after.person(app: "demo", externalID: "anna")?.userID == Fixture.userID)
        #expect(after.install("i1")?.userID == Fixture.userID)
        // The command that gave it is behind in the log.
        let later = Fixture.decide(Fixture.request("i2", "anna"), after, Fixture.context(id: "c2"))
        #expect(after.after(later).install("i2")?.userID == Fixture.userID)
    }

    @Test func anErasedPersonStaysErased() {
        var state = LinkState(installs: [Fixture.install("i1")])
        state.load([Fixture.person(other).tombstone])
        #expect(decided(Fixture.request("i1", "anna"), linked(other), state).answer == .rejected(.userErased))
    }

    /// Who was erased stays away, though the command that makes them is read later.
    @Test func anErasureLeavesATombstone() {
        let erase = LinkCommand.eraseUser(EraseUser(userId: other))
        let state = LinkState(installs: [Fixture.install("i1")])
        #expect(decided(erase, nil, state).answer == .rejected(.userNotFound))
        let forget = LinkCommand.forget(ForgetPerson(userId: other, externalId: nil))
        for command in [erase, forget] {
            let after = state.after(decided(command, linked(other), state))
            #expect(after.person(userID: other)?.isErased == true)
            #expect(decided(Fixture.request("i1", "anna"), linked(other), after).answer == .rejected(.userErased))
        }
    }

    /// An erasure was decided before the link then, and is behind it in the log: somebody has the external id still. Who was told
    /// of later has it later.
    @Test(arguments: [
        (Int64(1), false, Int64(2), true), (2, false, 1, false), (1, true, 1, true), (1, false, 1, true),
    ])
    func theExternalIDGoesToWhomItWentToLast(
        _ ownersFirst: Int64, _ isOwnerErased: Bool, _ othersFirst: Int64, _ goes: Bool
    ) {
        var state = LinkState(
            installs: [Fixture.install("i1"), Fixture.install("i2", of: Fixture.userID)],
            persons: [Fixture.person(Fixture.userID, "anna")])
        state.recordedLives = [
            Fixture.userID: RecordedLife(first: ownersFirst, isErased: isOwnerErased),
            other: RecordedLife(first: othersFirst, isErased: false),
        ]
        for command in [Fixture.request("i1", "anna"), establish] {
            let after = state.after(decided(command, linked(other), state))
            #expect(after.person(app: "demo", externalID: "anna")?.userID == (goes ? other : Fixture.userID))
            #expect(after.install("i1")?.userID == other && after.install("i2")?.userID == Fixture.userID)
        }
    }

    /// It was linked so already, or refused without a word: whoever was there is erased before it in the log.
    @Test func aLinkThatToldNothingMakesNobody() {
        var state = LinkState(installs: [Fixture.install("i1")])
        state.load([], since: 0)
        for command in [Fixture.request("i1", "anna"), establish] {
            let decision = decided(command, nil, state)
            #expect(decision.answer == .rejected(.userErased))
            #expect(state.after(decision).person(app: "demo", externalID: "anna") == nil)
            // Nobody knows what was told before the events that are kept.
            var later = state
            later.load([], since: 1)
            #expect(later.after(decided(command, nil, later)).person(app: "demo", externalID: "anna") != nil)
        }
    }

    /// The link that was decided after the registration is before it in the log.
    @Test(arguments: [false, true]) func aRegistrationFindsWhomItMade(_ isElsewhere: Bool) {
        let own = Fixture.context(id: "c1").newUserID
        let elsewhere = isElsewhere ? [Fixture.install("i2", of: own)] : []
        let state = LinkState(installs: elsewhere, persons: [Fixture.person(own, "anna")])
        let register = LinkCommand.registerInstall(
            RegisterInstall(installId: "i1", device: Fixture.phone, user: .new))
        let after = state.after(decided(register, nil, state))
        #expect(after.install("i1")?.userID == own && after.install("i1")?.isActive == !isElsewhere)
        #expect(decided(register, nil, state, isPast: false).answer == .rejected(.idReused))
    }

    @Test func nothingElseIsDecidedByIt() {
        let state = LinkState(installs: [Fixture.install("i1")])
        let request = Fixture.request("i1", "anna")
        let own = Fixture.context(id: "c1").newUserID
        #expect(state.after(decided(request, linked(other), state, isPast: false)).person(userID: own) != nil)
        #expect(state.after(decided(request, nil, state)).person(userID: own) != nil)
        let query = LinkCommand.query(QueryInstall(installId: "i1"))
        let refused = RecordedOutcome(event: "", reason: .installNotFound)
        #expect(decided(query, refused, state).answer == Fixture.decide(query, state, Fixture.context(id: "c1")).answer)
    }

    @Test(arguments: SQLEngine.allCases)
    func whatIsKeptStays(_ engine: SQLEngine) throws {
        let store = try LinkTestStore(engine)
        let events = try [
            event("e1", Linked.self, linkedEvent(other)),
            event("e2", LinkRefused.self, LinkRefused(installId: "i1", reason: .installNotFound)),
            event("e1", Linked.self, linkedEvent(Fixture.userID)),
        ]
        try store.database.transaction { try LinkService.keep(events, in: $0) }
        try store.database.transaction { try LinkService.keep(Array(events.suffix(2)), in: $0) }
        let kept = try store.database.transaction { try LinkStore(transaction: $0).recorded(["e1", "e2", "e3"]) }
        #expect(
            Set(kept) == [
                RecordedOutcome(event: "e1", userID: other), RecordedOutcome(event: "e2", reason: .installNotFound),
            ])
        try store.database.transaction { try LinkService.forgetRecorded(in: $0) }
        #expect(try store.count("recorded") == 0)
    }

    private func linkedEvent(_ userID: UserID) -> Linked {
        Linked(
            installId: "i1", externalId: "anna", userId: userID, personCreated: true, activeInstallId: "i1",
            deactivatedInstallIds: [], version: 1)
    }

    private func event<Event: EventMessage>(_ id: CommandID, _: Event.Type, _ event: Event) throws -> RecordedEvent {
        RecordedEvent(
            id: id, type: Event.type, time: nil, data: try JSONView(parsing: try WireJSONEncoder().encode(event)))
    }
}
