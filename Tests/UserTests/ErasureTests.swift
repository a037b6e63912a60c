// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing

@testable import Runtime
@testable import User

/// `user.forget`, in every state of an install.
@Suite struct ErasureTests {
    private func forget(
        _ state: UserState, externalID: ExternalID? = nil, installs: [InstallID] = ["i1"]
    ) -> UserDecider.Decision {
        UserDecider.decide(
            .forget(ForgetUser(userId: Fixture.userID, externalId: externalID, installIds: installs)), state,
            Fixture.context(id: "forget"))
    }

    @Test(arguments: State.allCases) func endsWhateverGoesOn(_ state: State) throws {
        for before in state.values { try endsWhateverGoesOn(state, before) }
    }

    private func endsWhateverGoesOn(_ state: State, _ before: UserState) throws {
        let isKnown = before.install("demo", "i1") != nil
        let decision = forget(before)
        #expect(decision.answer == .forgotten(isKnown ? 1 : 0))
        let after = before.after(decision)
        #expect(after.installs.isEmpty)
        #expect(after.isErased(Fixture.userID))
        let event: AnyHashable? =
            switch state {
            case .none: nil
            case .creatingByCode, .creatingUnlinked, .awaitingCreation, .confirmingCreation:
                UserCreationFailed(installId: "i1", reason: .userErased)
            case .resetting where before.install("demo", "i1")?.resets == []:
                UserCreationFailed(installId: "i1", reason: .userErased)
            case .resetting: UserReset(installId: "i1", userId: nil)
            default: UserDeactivated(installId: "i1", userId: nil, cause: .erased)
            }
        #expect(decision.told == (event.map { [$0] } ?? []) + [AnyHashable(UserForgotten(userId: Fixture.userID))])
        let install = before.install("demo", "i1")
        let erased = (install?.waiting ?? []).map { ($0.id, Answer.rejected(.userErased)) }
        let reset = (install?.resets ?? []).map { ($0.id, Answer.reset) }
        #expect(decision.settled == Dictionary(uniqueKeysWithValues: erased + reset))
        // What the link service answers to a command that was on its way is passed over.
        let late = LinkAnswer(forward: "f1", outcome: .facts(Fixture.facts(7)))
        let decided = UserDecider.decide(.answered(late), after, Fixture.context(id: "late"))
        #expect(decided.changes.isEmpty && decided.events.isEmpty && decided.settlements.isEmpty)
    }

    /// A command that waits for a reset is told that it is done.
    @Test func aResetIsDone() throws {
        var state = try #require(State.creatingByCode.values.first)
        state = state.after(UserDecider.decide(Command.reset.value, state, Fixture.context(id: "r")))
        #expect(forget(state).settled == ["begun": .rejected(.userErased), "r": .reset])
    }

    /// Which installs are hers the link service says, and what is known here.
    @Test func installsAreFoundByBothNames() throws {
        let hers = Fixture.present(Fixture.account())
        let others = [
            Fixture.present(Fixture.account(user: "other"), id: "i2"),
            Fixture.present(Fixture.account(user: "other"), app: "other"),
        ]
        let state = UserState(installs: [hers] + others)
        for installs in [[], ["i1"], ["i1", "unknown"]] {
            let after = state.after(forget(state, installs: installs.map(InstallID.init(_:))))
            #expect(Set(after.installs.keys) == Set(others.map(\.key)))
        }
    }

    /// U90: whoever signed up again on the same phone is somebody else, when the link service's word comes late or again.
    @Test func whoCameLaterStays() throws {
        let erasedAt = Fixture.start
        func forgotten(_ install: Installation) -> UserDecider.Decision {
            let command = ForgetUser(userId: Fixture.userID, installIds: ["i1"], erasedAt: erasedAt)
            return UserDecider.decide(
                .forget(command), UserState(installs: [install]), Fixture.context(id: "forget"))
        }
        for state in [State.creatingByCode, .creatingUnlinked, .awaitingCreation, .confirmingCreation] {
            for install in state.installs.compactMap({ $0 }) {
                guard case .creating(var creation) = install.state else { continue }
                creation.moment = Timestamp(milliseconds: erasedAt.milliseconds + 1)
                #expect(forgotten(install.with(.creating(creation))).answer == .forgotten(0), "\(state)")
                // What the link service says of it tells whose it is.
                creation.facts = Fixture.facts(3)
                #expect(forgotten(install.with(.creating(creation))).answer == .forgotten(1))
                creation.facts = .nothing
                creation.moment = erasedAt
                #expect(forgotten(install.with(.creating(creation))).answer == .forgotten(1))
            }
        }
        let other = Fixture.present(Fixture.account(user: "other"))
        #expect(forgotten(other).answer == .forgotten(0))
        #expect(UserState(installs: [other]).after(forgotten(other)).install("demo", "i1") == other)
        // A reset that has begun ends either way.
        for install in State.resetting.installs.compactMap({ $0 }) {
            #expect(forgotten(install).answer == .forgotten(1))
        }
    }

    @Test func theCodesOfTheExternalIDGo() throws {
        let state = UserState(codes: [
            Fixture.code("a"), Fixture.code("b", use: .used(installID: "i1")), Fixture.code("c", "bert"),
        ])
        let after = state.after(forget(state, externalID: "anna"))
        #expect(Array(after.codes.keys) == [CodeDigest(of: "c")])
        #expect(after.outstandingCodes("demo", "anna", now: Fixture.start) == 0)
        #expect(after.outstandingCodes("demo", "bert", now: Fixture.start) == 1)
    }

    /// U35. Whoever asked for a code after the erasure is another person.
    @Test func aCodeThatWasAskedForLaterStays() {
        let erasedAt = Timestamp(milliseconds: Fixture.start.milliseconds - 1)
        var earlier = Fixture.code("earlier")
        earlier.moment = erasedAt
        let state = UserState(codes: [earlier, Fixture.code("later")])
        let command = ForgetUser(userId: Fixture.userID, externalId: "anna", installIds: [], erasedAt: erasedAt)
        let after = state.after(UserDecider.decide(.forget(command), state, Fixture.context(id: "forget")))
        #expect(Array(after.codes.keys) == [CodeDigest(of: "later")])
    }

    @Test func forgettingAgainTellsNobody() throws {
        let state = UserState(erased: [Fixture.userID])
        let decision = forget(state)
        #expect(decision.answer == .forgotten(0))
        #expect(decision.events.isEmpty)
    }
}

/// The platform takes an install away and gives it back.
@Suite struct ActivityTests {
    private func told(_ facts: LinkFacts, on install: Installation) -> [AnyHashable] {
        let event = InstallStatusChanged(
            installId: "i1", status: facts.status, isActive: facts.isActive, userId: facts.userID,
            isLinked: facts.isLinked, cause: .command, version: facts.version)
        return UserDecider.decide(
            .statusChanged(event), UserState(installs: [install]), Fixture.context(id: "event")
        ).told
    }

    /// U91.
    @Test func whoIsUnlinkedIsTold() throws {
        let linked = Fixture.present(Fixture.account())
        let event = InstallStatusChanged(
            installId: "i1", status: .enabled, isActive: true, userId: Fixture.userID, isLinked: false,
            cause: .unlinked, version: 9)
        let state = UserState(installs: [linked])
        let decision = UserDecider.decide(.statusChanged(event), state, Fixture.context(id: "event"))
        #expect(decision.told == [UserUnlinked(installId: "i1", userId: Fixture.userID)])
        #expect(state.after(decision).install("demo", "i1")?.facts.isLinked == false)
        // Somebody else, who never was.
        let other = InstallStatusChanged(
            installId: "i1", status: .enabled, isActive: true, userId: "other", isLinked: false, cause: .unlinked,
            version: 9)
        #expect(UserDecider.decide(.statusChanged(other), state, Fixture.context(id: "event")).told.isEmpty)
    }

    /// U92.
    @Test func codesOfANameThatWasChangedGo() {
        var late = Fixture.code("late")
        late.moment.milliseconds += 1
        let codes = [Fixture.code("early"), late, Fixture.code("bert's", "bert")]
        let event = ExternalIDChanged(
            userId: Fixture.userID, externalId: "annette", previousExternalId: "anna",
            linkedAt: Fixture.start, author: "kim", reason: "typo")
        let state = UserState(codes: codes)
        let decision = UserDecider.decide(.externalIDChanged(event), state, Fixture.context(id: "event"))
        #expect(decision.changes == [.removeCode(CodeDigest(of: "early"))] && decision.told.isEmpty)
    }

    /// U93. A phone that redeems one would get the next owner's user.
    @Test(arguments: SQLEngine.allCases) func codesOfANameThatWasTakenGo(_ engine: SQLEngine) throws {
        var late = Fixture.code("late")
        late.moment.milliseconds += 1
        let codes = [Fixture.code("early"), late, Fixture.code("bert's", "bert")]
        let event = ExternalIDRemoved(
            userId: Fixture.userID, externalId: "anna", unlinkedAt: Fixture.start, author: "kim", reason: "wrong")
        let store = try UserTestStore(engine)
        try store.write(codes.map { .code($0) })
        let decision = try store.run([.externalIDRemoved(event)], id: "event")[0]
        #expect(decision.changes == [.removeCode(CodeDigest(of: "early"))] && decision.told.isEmpty)
    }

    @Test func whatComesBackIsTold() throws {
        let active = Fixture.present(Fixture.account())
        let disabled = Fixture.present(Fixture.account(2, isActive: false, status: .disabled))
        let deactivated = UserDeactivated(installId: "i1", userId: Fixture.userID, cause: .disabled)
        #expect(told(disabled.facts, on: active) == [deactivated])
        #expect(told(Fixture.facts(3), on: disabled) == [UserActivated(installId: "i1", userId: Fixture.userID)])
        // Enabled, but another install has the user now.
        #expect(told(Fixture.facts(3, isActive: false), on: disabled) == [])
        #expect(told(Fixture.facts(4), on: active) == [])
    }

    /// A creation's install that has its user yet to come tells of nothing.
    @Test func nothingIsToldBeforeTheUserIsThere() throws {
        for state in [State.creatingByCode, .creatingUnlinked, .awaitingCreation, .confirmingCreation, .resetting] {
            for install in state.installs.compactMap({ $0 }) { #expect(told(Fixture.facts(3), on: install) == []) }
        }
    }
}

/// What an earlier life left on an install when the app's linker begins (docs/user.md).
@Suite struct LinkerLeftoverTests {
    @Test(arguments: [false, true]) func aLeftoverIsTakenOffFirst(_ isLinked: Bool) throws {
        var state = UserState()
        func run(_ command: UserCommand, _ id: CommandID) -> UserDecider.Decision {
            let decision = UserDecider.decide(command, state, Fixture.context(id: id))
            state = state.after(decision)
            return decision
        }
        func answer(_ to: UserDecider.Decision, _ facts: LinkFacts) throws -> UserDecider.Decision {
            let forward = try #require(to.forwards.first?.id)
            return run(
                .answered(LinkAnswer(forward: forward, outcome: .facts(facts))), CommandID("answer to \(forward)"))
        }
        let begun = run(Command.createByLinker.value, "create")
        let cleaning = try answer(begun, Fixture.facts(4, isLinked: isLinked))
        #expect(cleaning.settled == [:])
        #expect(cleaning.forwards.first?.command as? DetachInstall == DetachInstall(installId: "i1", cause: .leftover))
        let clean = try answer(cleaning, Fixture.facts(5, user: nil, isLinked: false, isActive: false))
        #expect((clean.forwards.first?.command as? RegisterInstall)?.user == RegisterInstall.User.none)
        #expect(clean.settled == [:])
        let told = try answer(clean, Fixture.facts(5, user: nil, isLinked: false, isActive: false))
        #expect(told.settled == ["create": .pending(.linker)])
        #expect(state.install("demo", "i1")?.phase == .awaitingLink)
        // The app's linker links, and that is taken for what it is.
        let confirming = run(Command.confirmSuccess.value, "confirm")
        let done = try answer(confirming, Fixture.facts(6))
        #expect(Set(done.settled.keys) == ["create", "confirm"])
        #expect(state.install("demo", "i1")?.phase == .present)
    }
}
