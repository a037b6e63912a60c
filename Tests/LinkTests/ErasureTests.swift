// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import Testing

@testable import Link
@testable import Runtime

/// `link.erase-user` and `link.forget`: the person goes, a tombstone stays, the others are told.
@Suite struct ErasureTests {
    private static let me = Fixture.userID
    private static let state = LinkState(
        installs: [
            Fixture.install("i1", of: me), Fixture.install("i2", of: me, .deactivated),
            Fixture.install("i3", .tablet, of: me, .standby), Fixture.install("i4"),
        ], persons: [Fixture.person(me, "anna")])

    private static let forgetProfiles = ForgetProfiles(
        userId: me, externalId: "anna", erasedAt: Timestamp(milliseconds: 0))
    private static let forgetUser = ForgetUser(
        userId: me, externalId: "anna", installIds: ["i1", "i2", "i3"], erasedAt: Timestamp(milliseconds: 0))

    private func erase(
        _ user: UserID = me, _ state: LinkState = state, _ context: DecisionContext = Fixture.context(id: "erase")
    ) -> LinkDecider.Decision {
        Fixture.decide(.eraseUser(EraseUser(userId: user)), state, context)
    }

    @Test func leavesTombstones() throws {
        let decision = erase()
        #expect(decision.answer == .pending)
        #expect(decision.told == [UserErased(userId: Self.me)])
        let context = Fixture.context(id: "erase")
        #expect(
            decision.sent == [
                context.forwardID(0): AnyHashable(Self.forgetUser),
                context.forwardID(1): AnyHashable(Self.forgetProfiles),
            ])
        #expect(decision.forwards.allSatisfy { $0.expiry == nil })
        let after = Self.state.after(decision)
        #expect(after.person(userID: Self.me) == Person(userID: Self.me, app: "demo", isErased: true))
        #expect(after.person(app: "demo", externalID: "anna") == nil)
        for id in ["i1", "i2", "i3"] {
            #expect(
                after.install(InstallID(id))
                    == Install(
                        id: InstallID(id), app: "demo", device: Device(kind: .other, platform: "erased"), version: 1,
                        erasedAt: 0))
        }
        #expect(after.install("i4") == Self.state.install("i4"))
        #expect(after.installs(of: Self.me).isEmpty)
    }

    /// L39: whoever asked by hand stands in what is told.
    @Test func saysWhoAsked() {
        let command = EraseUser(userId: Self.me, author: "kim", reason: "case 1")
        let decision = Fixture.decide(.eraseUser(command), Self.state, Fixture.context(id: "erase"))
        #expect(decision.told == [UserErased(userId: Self.me, author: "kim", reason: "case 1")])
    }

    private static let onI1: [LinkCommand] = [
        Fixture.request("i1", "anna"), .detachInstall(DetachInstall(installId: "i1", cause: .reset)),
        .registerInstall(RegisterInstall(installId: "i1", device: Fixture.phone, user: .new)),
        .establish(EstablishLink(installId: "i1", device: Fixture.phone, externalId: "anna", mode: .create)),
        .setInstallStatus(SetInstallStatus(installId: "i1", status: .disabled)),
    ]

    /// L62: what comes again from before the erasure, as a replay of the log does.
    @Test func whatIsOfBeforeTheErasureIsRefused() throws {
        let after = Self.state.after(
            erase(Self.me, Self.state, Fixture.context(id: "erase", moment: Moment(milliseconds: -100))))
        for command in Self.onI1 {
            let decision = Fixture.decide(
                command, after, Fixture.context(id: "older", moment: Moment(milliseconds: -101)))
            #expect(decision.answer == .rejected(.installDeleted))
            #expect(decision.changes.isEmpty)
        }
    }

    /// L62: whoever deletes the account can sign up again on the same phone, and is somebody else.
    @Test func thePhoneOfTheErasedCanBeUsedAgain() throws {
        let after = Self.state.after(
            erase(Self.me, Self.state, Fixture.context(id: "erase", moment: Moment(milliseconds: -100))))
        let late = Fixture.decide(Self.onI1[0], after, Fixture.context(id: "late", moment: Moment(milliseconds: -50)))
        #expect(late.answer == .rejected(.noLinkingInProgress), "closed")
        let context = Fixture.context(id: "again", moment: Moment(milliseconds: -50))
        let again = Fixture.decide(Self.onI1[3], after, context)
        #expect(
            again.answer
                == .link(
                    LinkResult(
                        userId: context.newUserID, installId: "i1", isActive: true, personCreated: true, version: 2)))
        let used = after.after(again)
        #expect(used.install("i1")?.erasedAt == -100)
        // And what is of before still brings nobody back, nor does it harm who is there now.
        for command in Self.onI1 {
            let decision = Fixture.decide(
                command, used, Fixture.context(id: "older", moment: Moment(milliseconds: -101)))
            #expect(decision.answer == .rejected(.installDeleted) && decision.changes.isEmpty)
        }
        // What the platform disabled stays so.
        let disabled = LinkState(
            installs: [Fixture.install("i1", of: Self.me, .suspended, status: .disabled)],
            persons: [Fixture.person(Self.me, "anna")])
        #expect(disabled.after(erase(Self.me, disabled)).install("i1")?.status == .disabled)
    }

    @Test func theExternalIDMayBeUsedAgainByANewPerson() throws {
        let after = Self.state.after(erase())
        let context = Fixture.context(id: "later")
        let decision = Fixture.decide(Fixture.request("i4", "anna"), after, context)
        #expect(
            decision.answer
                == .link(
                    LinkResult(userId: context.newUserID, installId: "i4", isActive: true, personCreated: true)))
        #expect(context.newUserID != Self.me)
    }

    // MARK: Until the others have done it

    private func answer(
        _ number: Int, _ state: inout LinkState, _ outcome: ForgetAnswer.Outcome = .done(.part()),
        to id: CommandID = "erase"
    ) -> [CommandID: Answer] {
        let answer = ForgetAnswer(forward: Fixture.context(id: id).forwardID(number), outcome: outcome)
        let decision = Fixture.decide(
            .answered(answer), state, Fixture.context(id: CommandID("answer to \(id) \(number)")))
        #expect(decision.answer == .noted)
        state = state.after(decision)
        return decision.settled
    }

    private static let result = Answer.certificate(Gone([me], persons: 1, installs: 3, isWhole: true))
    private static let forgotten = Answer.certificate(Gone([me], persons: 1, installs: 3, isWhole: false))

    @Test(arguments: [[0, 1], [1, 0]]) func theFinalAnswerComesWhenBothHaveAnswered(_ order: [Int]) throws {
        var state = Self.state.after(erase())
        #expect(answer(order[0], &state, .pending) == [:])
        #expect(answer(order[0], &state) == [:])
        #expect(answer(order[0], &state) == [:])
        #expect(state.erasure(of: Self.me)?.isOver == false)
        #expect(answer(order[1], &state) == ["erase": Self.result])
        #expect(state.erasures.values.allSatisfy { $0.isOver && $0.waiting.isEmpty })
        #expect(answer(order[1], &state) == [:])
        let decision = erase(Self.me, state)
        #expect(decision.answer == Self.result)
        #expect(decision.changes.isEmpty && decision.events.isEmpty && decision.forwards.isEmpty)
    }

    /// L44. A command may have 256 KiB: 400 ids of 255 bytes, each of them escaped, are less.
    @Test func theUserServiceIsToldInParts() throws {
        let ids = (0..<1001).map { InstallID("i\(10_000 + $0)") }
        let installs = ids.map { Fixture.install($0, of: Self.me, .deactivated) }
        var state = LinkState(installs: installs, persons: [Fixture.person(Self.me, "anna")])
        var decision = erase(Self.me, state)
        var told: [InstallID] = []
        var parts = 0
        while let forward = decision.forwards.first(where: { $0.command is ForgetUser }) {
            let command = try #require(forward.command as? ForgetUser)
            #expect(command.installIds.count <= 400)
            told += command.installIds
            parts += 1
            state = state.after(decision)
            #expect(decision.settled.isEmpty)
            decision = Fixture.decide(
                .answered(ForgetAnswer(forward: forward.id, outcome: .done(.part()))), state,
                Fixture.context(id: CommandID("answer \(parts)")))
        }
        #expect(told == ids)
        #expect(parts == 3)
        state = state.after(decision)
        let settled = answer(1, &state)
        #expect(settled == ["erase": .certificate(Gone([Self.me], persons: 1, installs: 1001, isWhole: true))])
    }

    // MARK: The certificate

    /// L60: counts of all services, zeros included, and no value of the person; kept when all is over.
    @Test func theCertificateSaysWhatEveryServiceDid() throws {
        func query(_ state: LinkState, _ app: AppSettings = Fixture.app) -> LinkDecider.Decision {
            Fixture.decide(.getErasure(GetUserErasure(userId: Self.me)), state, Fixture.context(app, id: "query"))
        }
        func certificate(_ decision: LinkDecider.Decision) -> ErasureCertificate? {
            guard case .succeeded(let result as ErasureCertificate) = decision.outcome else { return nil }
            return result
        }
        #expect(query(Self.state).answer == .rejected(.userNotFound))
        var state = Self.state.after(erase())
        #expect(certificate(query(state))?.completedAt == nil && certificate(query(state))?.done.link?.installs == 3)
        _ = answer(0, &state, .done(.part(.init(user: .init(installs: 2, codes: 1)))))
        var part = ErasureCertificate.part(.init(sync: .init(profiles: 1, identities: 4), verification: .init()))
        part.subject.mpids = [try #require(MPID(7))]
        _ = answer(1, &state, .done(part))
        let whole = try #require(certificate(query(state)))
        #expect(
            whole.done
                == .init(
                    link: .init(persons: 1, installs: 3), user: .init(installs: 2, codes: 1),
                    sync: .init(profiles: 1, identities: 4), verification: .init()))
        #expect(whole.requestId == "erase" && whole.completedAt != nil && whole.subject.mpids == part.subject.mpids)
        #expect(whole.remains.map(\.place) == ErasureCertificate.Remainder.Place.allCases)
        #expect(certificate(erase(Self.me, state, Fixture.context(id: "again"))) == whole)
        #expect(query(state, Fixture.otherApp).answer == .rejected(.userNotFound))
        let row = try #require(state.erasure(of: Self.me))
        #expect(row.externalID == nil && row.installIDs.isEmpty && row.waiting.isEmpty)
    }

    /// Whoever went with a profile is erased here as a whole when somebody asks for it.
    @Test func whoWasForgottenIsErasedToTheEnd() throws {
        var state = Self.state.after(forget(Self.me, nil))
        _ = answer(0, &state, to: "forget")
        let late = erase(Self.me, state)
        #expect(
            late.sent.values.map { $0 } == [
                AnyHashable(ForgetProfiles(userId: Self.me, erasedAt: Timestamp(milliseconds: 0)))
            ])
        state = state.after(late)
        #expect(answer(1, &state) == ["erase": Self.result])
    }

    @Test func erasingAgainWaitsAlong() throws {
        var state = Self.state.after(erase())
        let second = erase(Self.me, state, Fixture.context(id: "second"))
        #expect(second.answer == .pending)
        #expect(second.events.isEmpty && second.forwards.isEmpty)
        state = state.after(second)
        #expect(answer(0, &state) == [:])
        #expect(answer(1, &state) == ["erase": Self.result, "second": Self.result])
    }

    @Test func notAnyNumberWaits() throws {
        var state = Self.state.after(erase())
        for number in 1..<Erasure.maxWaiting {
            state = state.after(erase(Self.me, state, Fixture.context(id: CommandID("\(number)"))))
        }
        let decision = erase(Self.me, state, Fixture.context(id: "one more"))
        #expect(decision.answer == .rejected(.throttled))
        #expect(decision.changes.isEmpty)
    }

    /// A command that the inbox has forgotten comes again while its erasure goes on.
    @Test func aForgottenErasureThatIsRepeatedWaitsOnce() throws {
        var state = Self.state.after(erase())
        for _ in 0..<(2 * Erasure.maxWaiting) {
            let again = erase(Self.me, state)
            #expect(again.answer == .pending)
            #expect(again.events.isEmpty && again.forwards.isEmpty)
            state = state.after(again)
        }
        #expect(state.erasure(of: Self.me)?.waiting.count == 1)
        #expect(answer(0, &state) == [:])
        let last = ForgetAnswer(forward: Fixture.context(id: "erase").forwardID(1), outcome: .done(.part()))
        let decision = Fixture.decide(.answered(last), state, Fixture.context(id: "last"))
        #expect(decision.settlements.map { Answer($0.outcome) } == [Self.result])
    }

    @Test func aForgottenForgetThatIsRepeatedWaitsOnce() throws {
        var state = Self.state.after(forget(Self.me, "anna"))
        let again = forget(Self.me, "anna", state)
        #expect(again.answer == .pending)
        state = state.after(again)
        #expect(state.erasure(of: Self.me)?.waiting.count == 1)
        #expect(answer(0, &state, to: "forget") == ["forget": Self.forgotten])
    }

    /// Whoever waits is told, and a repetition asks the one that refused once more, with all it needs.
    @Test func aRefusalIsToldAndAskedAgain() throws {
        var state = Self.state.after(erase())
        #expect(answer(1, &state, .refused("why")) == ["erase": .rejected(.serverError)])
        #expect(answer(0, &state) == [:])
        let second = erase(Self.me, state, Fixture.context(id: "second"))
        #expect(second.answer == .pending)
        let forward = Fixture.context(id: "second").forwardID(1)
        #expect(second.sent == [forward: AnyHashable(Self.forgetProfiles)])
        state = state.after(second)
        #expect(answer(1, &state, to: "second") == ["second": Self.result])
        #expect(state.erasures.values.allSatisfy { $0.isOver && $0.waiting.isEmpty })
    }

    // MARK: Whoever the sync service erases

    private func forget(
        _ userID: UserID?, _ externalID: ExternalID?, _ state: LinkState = state,
        _ context: DecisionContext = Fixture.context(id: "forget"), erasedAt: Timestamp? = nil
    ) -> LinkDecider.Decision {
        let command = ForgetPerson(userId: userID, externalId: externalID, erasedAt: erasedAt)
        return Fixture.decide(.forget(command), state, context)
    }

    @Test func theSyncServiceIsNotAskedForWhatItAsksFor() throws {
        for (user, external) in [(Self.me, nil), (nil, "anna"), (Self.me, "anna")] {
            let decision = forget(user, external.map(ExternalID.init(_:)))
            #expect(decision.answer == .pending)
            #expect(decision.told == [UserErased(userId: Self.me)])
            #expect(decision.sent == [Fixture.context(id: "forget").forwardID(0): AnyHashable(Self.forgetUser)])
            var state = Self.state.after(decision)
            #expect(state.person(userID: Self.me)?.isErased == true)
            let done = answer(0, &state, to: "forget")
            #expect(done == ["forget": Self.forgotten])
            #expect(state.erasures.values.allSatisfy { $0.isOver && $0.waiting.isEmpty })
        }
    }

    /// L64: when the sync service's word comes late, the external id may be another person's already.
    @Test func forgettingSparesWhoWasLinkedLater() throws {
        var person = Fixture.person(Self.me, "anna")
        person.linkedAt = -50
        let state = LinkState(installs: [Fixture.install("i1", of: Self.me)], persons: [person])
        func forgotten(_ userID: UserID?, at moment: Int64) -> LinkDecider.Decision {
            let erasedAt = Timestamp(milliseconds: moment)
            return forget(userID, "anna", state, Fixture.context(id: "forget"), erasedAt: erasedAt)
        }
        let late = forgotten(nil, at: -51)
        #expect(late.answer == .certificate(Gone([], persons: 0, installs: 0, isWhole: false)))
        #expect(late.changes.isEmpty)
        // The user that the profile is marked with is meant, whenever it was made.
        for decision in [forgotten(Self.me, at: -51), forgotten(nil, at: -50)] {
            #expect(decision.answer == .pending && state.after(decision).person(userID: Self.me)?.isErased == true)
        }
        // L63: the others hear the moment of what began it all.
        let told = forgotten(nil, at: -40)
        #expect(told.forwards.compactMap { ($0.command as? ForgetUser)?.erasedAt?.milliseconds } == [-40])
        #expect(state.after(told).install("i1")?.erasedAt == -40)
    }

    /// L64: since when somebody has the external id counts, and not since when there is a person.
    @Test func aPersonThatIsLinkedLaterIsAnother() throws {
        let person = Person(userID: Self.me, app: "demo")
        let state = LinkState(installs: [Fixture.install("i1", of: Self.me)], persons: [person])
        let request = LinkRequest(installId: "i1", externalId: "anna")
        let linking = LinkDecider(state, Fixture.context(id: "link")).decide(.request(request))
        let linked = state.after(linking)
        let moment = try #require(linked.person(userID: Self.me)?.linkedAt)
        for (then, isSpared) in [(moment - 1, true), (moment, false)] {
            let late = forget(
                nil, "anna", linked, Fixture.context(id: "forget"), erasedAt: Timestamp(milliseconds: then))
            #expect(late.changes.isEmpty == isSpared)
        }
    }

    /// L79: the sync service has not heard that the external id was taken off the user, and is another's.
    @Test func whoHasTheExternalIDNoLongerIsNotForgotten() throws {
        let other: UserID = "0123456789abcdef01234567"
        let state = LinkState(
            installs: [Fixture.install("i1", of: Self.me), Fixture.install("i2", of: other)],
            persons: [Fixture.person(Self.me), Fixture.person(other, "anna")])
        let decision = forget(Self.me, "anna", state)
        #expect(decision.told == [UserErased(userId: other)])
        #expect(state.after(decision).person(userID: Self.me)?.isErased == false)
        // By nothing but its id it is meant.
        #expect(forget(Self.me, nil, state).told == [UserErased(userId: Self.me)])
        // Whom support renamed is the same person.
        var renamed = Fixture.person(Self.me, "annette")
        renamed.former = [FormerExternalID(externalId: "anna", until: Timestamp(milliseconds: -9))]
        let state2 = LinkState(installs: [Fixture.install("i1", of: Self.me)], persons: [renamed])
        #expect(forget(Self.me, "anna", state2).told == [UserErased(userId: Self.me)])
    }

    @Test func nobodyToForgetIsSuccess() throws {
        let foreign = forget(Self.me, "anna", Self.state, Fixture.context(Fixture.otherApp))
        for decision in [forget("nobody", "nobody"), foreign] {
            #expect(decision.answer == .certificate(Gone([], persons: 0, installs: 0, isWhole: false)))
            #expect(decision.changes.isEmpty)
        }
        var erased = Self.state.after(erase())
        _ = answer(0, &erased)
        #expect(forget(Self.me, nil, erased).answer == Self.forgotten)
    }

    /// The sync service asks while it is asked itself: neither waits for the other.
    @Test func bothMayEraseAtOnce() throws {
        var state = Self.state.after(erase())
        let second = forget(Self.me, "anna", state)
        #expect(second.answer == .pending)
        #expect(second.forwards.isEmpty)
        state = state.after(second)
        #expect(answer(0, &state) == ["forget": Self.forgotten])
        #expect(answer(1, &state) == ["erase": Self.result])
        // The other way round: who erases the person here has the sync service told too.
        state = Self.state.after(forget(Self.me, nil))
        let late = erase(Self.me, state)
        #expect(late.sent.values.map { $0 } == [AnyHashable(Self.forgetProfiles)])
        state = state.after(late)
        #expect(answer(1, &state) == [:])
        #expect(answer(0, &state, to: "forget").keys.sorted() == ["erase", "forget"])
        #expect(state.erasures.values.allSatisfy { $0.isOver && $0.waiting.isEmpty })
    }

    private static let twoPeople: LinkState = {
        let other: UserID = "0123456789abcdef01234567"
        return LinkState(
            installs: [Fixture.install("i1", of: me), Fixture.install("i2", of: other)],
            persons: [Fixture.person(me, "anna"), Fixture.person(other, "bert")])
    }()

    /// The first of two is going already, and the second is told to.
    private func bothGo() -> LinkState {
        let context = Fixture.context(id: "first")
        let state = Self.twoPeople.after(forget(Self.me, nil, Self.twoPeople, context))
        return state.after(forget(Self.me, "bert", state))
    }

    /// One profile, two people by its two names: both go.
    @Test func twoPeopleOfOneProfileBothGo() throws {
        var state = bothGo()
        #expect(state.persons.values.map(\.isErased) == [true, true])
        #expect(answer(1, &state, to: "forget") == [:])
        let done = answer(0, &state, to: "first")
        let both = [Self.me, "0123456789abcdef01234567"]
        #expect(done["forget"] == .certificate(Gone(both, persons: 2, installs: 2, isWhole: false)))
        #expect(state.erasures.values.allSatisfy { $0.isOver && $0.waiting.isEmpty })
    }

    /// The answers for both come at the same moment, in two replicas: one of these must see the other's, or nobody is
    /// told of the end.
    @Test func theAnswersForTwoPeopleMeet() throws {
        let state = bothGo()
        let written = [0, 1].map { number in
            let forward = Fixture.context(id: ["first", "forget"][number]).forwardID(number)
            let answer = ForgetAnswer(forward: forward, outcome: .done(.part()))
            let decision = Fixture.decide(.answered(answer), state, Fixture.context(id: CommandID("answer \(number)")))
            return decision.changes.compactMap { if case .person(let person) = $0 { person.userID } else { nil } }
        }
        #expect(!Set(written[0]).isDisjoint(with: written[1]))
    }

    @Test func unknownAndForeignUsersAreNotFound() throws {
        for decision in [erase("nobody"), erase(Self.me, Self.state, Fixture.context(Fixture.otherApp))] {
            #expect(decision.answer == .rejected(.userNotFound))
            #expect(decision.changes.isEmpty)
            #expect(decision.events.isEmpty)
        }
    }
}
