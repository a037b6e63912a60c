// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Runtime
@testable import User

/// The table in ``UserDecider``'s documentation, every state and every command of it.
@Suite struct StateTableTests {
    /// The table's rows.
    enum State: String, CaseIterable, Sendable {
        case none, creatingByCode, creatingUnlinked, awaitingCreation, confirmingCreation, presentUnlinked,
            presentLinked, presentDisabled, linking, awaitingLink, confirmingLink, resetting, failing
    }

    /// The table's columns; each command in all of its variants.
    enum Command: String, CaseIterable, Sendable {
        case createByCode, createByTheCodeAgain, createUnlinked, createByLinker, linkByCode, linkByTheCodeAgain,
            linkByLinker, confirmSuccess, confirmFailure, reset, get, expire
    }

    struct Cell: Sendable, CustomTestStringConvertible {
        var state: State
        var command: Command
        var testDescription: String { "\(state) x \(command)" }
    }

    static let cells = State.allCases.flatMap { state in Command.allCases.map { Cell(state: state, command: $0) } }

    // MARK: What stands in the table

    private static let user = Answer.user(Fixture.userID, isLinked: true, isRemoteEnabled: true)
    private static let unlinked = Answer.user(Fixture.userID, isLinked: false, isRemoteEnabled: true)
    private static let disabled = Answer.user(Fixture.userID, isLinked: false, isRemoteEnabled: false)

    /// The answer given at once, the phase after it, and what is settled at once. `nil`: the phase stays.
    struct Expected {
        var answer: Answer
        var phase: Installation.Phase?
        var settled: [String: Answer]
        init(_ answer: Answer, _ phase: Installation.Phase? = nil, settled: [String: Answer] = [:]) {
            self.answer = answer
            self.phase = phase
            self.settled = settled
        }
        static func no(_ reason: ReasonCode) -> Expected { Expected(.rejected(reason)) }
    }

    static func expected(_ state: State, _ command: Command) -> Expected {
        let begun = Expected(.pending(.platform))
        let givesWay = ["begun": Answer.rejected(.sdkResetInProgress)]
        switch (state, command) {
        case (.none, .createByCode), (.none, .createUnlinked): return Expected(.pending(.platform), .creating)
        case (.none, .createByLinker): return Expected(.begun, .awaitingLink)
        case (.none, .createByTheCodeAgain): return .no(.authCodeUsed)
        case (.none, .reset): return Expected(.pending(.platform), .resetting)
        case (.none, .expire): return Expected(.noted)
        case (.none, _): return .no(.noUser)

        case (.creatingByCode, .createByTheCodeAgain), (.linking, .linkByTheCodeAgain): return begun
        case (.creatingByCode, .reset), (.creatingUnlinked, .reset), (.confirmingCreation, .reset), (.linking, .reset),
            (.confirmingLink, .reset), (.resetting, .reset), (.failing, .reset):
            return begun
        case (.presentUnlinked, .reset), (.presentLinked, .reset), (.presentDisabled, .reset):
            return Expected(.pending(.platform), .resetting)
        case (.awaitingCreation, .reset), (.awaitingLink, .reset):
            return Expected(.pending(.platform), .resetting, settled: givesWay)

        case (.awaitingCreation, .confirmSuccess), (.awaitingLink, .confirmSuccess):
            return Expected(.pending(.platform), .confirming)
        case (.awaitingCreation, .confirmFailure): return Expected(.pending(.platform), .resetting)
        case (.awaitingLink, .confirmFailure):
            return Expected(
                .rejected(.appSideLinkingFailed), .present, settled: ["begun": .rejected(.appSideLinkingFailed)])
        case (.confirmingCreation, .confirmSuccess), (.confirmingCreation, .confirmFailure),
            (.confirmingLink, .confirmSuccess), (.confirmingLink, .confirmFailure):
            return begun
        case (.presentLinked, .confirmSuccess): return Expected(user)
        case (.resetting, .confirmSuccess), (.resetting, .confirmFailure), (.failing, .confirmSuccess),
            (.failing, .confirmFailure):
            return .no(.sdkResetInProgress)
        case (_, .confirmSuccess), (_, .confirmFailure): return .no(.noLinkingInProgress)

        case (.awaitingCreation, .expire): return Expected(.noted, .resetting)
        case (.awaitingLink, .expire): return Expected(.noted, .present, settled: ["begun": .expired])
        case (_, .expire): return Expected(.noted)

        case (.resetting, _), (.failing, _): return .no(.sdkResetInProgress)
        case (.creatingByCode, _), (.creatingUnlinked, _), (.awaitingCreation, _), (.confirmingCreation, _):
            return .no(.userCreationInProgress)

        case (.presentLinked, .get), (.presentLinked, .createByTheCodeAgain): return Expected(user)
        case (.presentDisabled, .get): return Expected(disabled)
        case (_, .get): return Expected(unlinked)
        case (_, .createByCode), (_, .createByTheCodeAgain), (_, .createUnlinked), (_, .createByLinker):
            return .no(.userAlreadyExists)

        case (.presentUnlinked, .linkByCode): return Expected(.pending(.platform), .linking)
        case (.presentUnlinked, .linkByTheCodeAgain): return .no(.authCodeUsed)
        case (.presentUnlinked, .linkByLinker): return Expected(.pending(.linker), .awaitingLink)
        case (.presentLinked, _): return .no(.userAlreadyLinked)
        case (.presentDisabled, _): return .no(.userDisabledRemotely)
        case (.linking, _), (.awaitingLink, _), (.confirmingLink, _): return .no(.userLinkingInProgress)
        }
    }

    // MARK: The states and commands, as values

    static func state(_ state: State) -> UserState {
        let digest = CodeDigest(of: "held")
        let byCode = InstallSaga.Means.code(externalID: "anna", digest: digest)
        func install(_ phase: Installation.Phase, _ facts: LinkFacts, _ saga: InstallSaga? = nil) -> Installation {
            var install = Installation(
                app: "demo", id: "i1", phase: phase, device: Fixture.phone, facts: facts, saga: saga)
            install.saga?.commands = [.init(Fixture.key("begun"))]
            if phase != .awaitingLink, saga != nil { install.saga?.forward = "f1" }
            return install
        }
        let create = InstallSaga(.create, by: .linker)
        let link = InstallSaga(.link, by: .linker)
        let unlinked = Fixture.facts(isLinked: false)
        var installation: Installation?
        switch state {
        case .none: break
        case .creatingByCode: installation = install(.creating, .nothing, InstallSaga(.create, by: byCode))
        case .creatingUnlinked: installation = install(.creating, .nothing, InstallSaga(.create, by: .unlinked))
        case .awaitingCreation: installation = install(.awaitingLink, .nothing, create)
        case .confirmingCreation: installation = install(.confirming, .nothing, create)
        case .presentUnlinked: installation = install(.present, unlinked)
        case .presentLinked:
            installation = install(.present, Fixture.facts())
            installation?.redeemed = .init(digest: digest, purpose: .create)
        case .presentDisabled: installation = install(.present, Fixture.facts(isLinked: false, status: .disabled))
        case .linking: installation = install(.linking, unlinked, InstallSaga(.link, by: byCode))
        case .awaitingLink: installation = install(.awaitingLink, unlinked, link)
        case .confirmingLink: installation = install(.confirming, unlinked, link)
        case .resetting: installation = install(.resetting, Fixture.facts(), InstallSaga(.reset))
        case .failing:
            installation = install(.resetting, .nothing, create)
            installation?.saga?.failure = .expired
        }
        let isHeld = installation?.saga?.digest != nil
        let held = Fixture.code("held", use: isHeld ? .reserved(installID: "i1") : .used(installID: "i1"))
        return UserState(installs: installation.map { [$0] } ?? [], codes: [held, Fixture.code("fresh", "bert")])
    }

    static func command(_ command: Command) -> UserCommand {
        func create(code: String? = nil, linking: Linking? = nil) -> UserCommand {
            .create(
                CreateUser(
                    installId: "i1", device: Fixture.phone, authCode: code,
                    appSecret: linking == nil ? nil : Fixture.secret, linking: linking))
        }
        switch command {
        case .createByCode: return create(code: "fresh")
        case .createByTheCodeAgain: return create(code: "held")
        case .createUnlinked: return create(linking: Linking.none)
        case .createByLinker: return create(linking: .linker)
        case .linkByCode: return .link(LinkUser(installId: "i1", authCode: "fresh"))
        case .linkByTheCodeAgain: return .link(LinkUser(installId: "i1", authCode: "held"))
        case .linkByLinker: return .link(LinkUser(installId: "i1", linking: .linker))
        case .confirmSuccess: return .confirmLink(ConfirmLink(installId: "i1", success: true))
        case .confirmFailure: return .confirmLink(ConfirmLink(installId: "i1", success: false))
        case .reset: return .reset(ResetUser(installId: "i1"))
        case .get: return .get(GetUser(installId: "i1"))
        case .expire:
            return .expireLinker(ExpireLinker(installId: "i1", commandSource: "test", commandId: "begun"))
        }
    }

    @Test(arguments: cells) func answersAsTheTableSays(_ cell: Cell) throws {
        #expect(Self.cells.count == 13 * 12)
        let before = Self.state(cell.state)
        let expected = Self.expected(cell.state, cell.command)
        let decision = UserDecider.decide(Self.command(cell.command), before, Fixture.context(id: "now"))
        #expect(decision.answer == expected.answer)
        #expect(decision.settled == expected.settled)
        let after = before.after(decision)
        #expect(after.install("demo", "i1")?.phase == expected.phase ?? before.install("demo", "i1")?.phase)
        if case .rejected = expected.answer, expected.phase == nil { #expect(decision.changes.isEmpty) }
        // Whoever was told "pending" waits in the install's saga.
        if case .pending = expected.answer {
            let saga = try #require(after.install("demo", "i1")?.saga)
            #expect((saga.commands + saga.confirmations + saga.resets).contains(.init(Fixture.key("now"))))
        }
        // Nothing waits for an answer that nobody was asked for.
        if let install = after.install("demo", "i1"), install.phase != .present, install.phase != .awaitingLink {
            #expect(install.saga?.forward != nil)
        }
        // Deciding twice gives the same.
        let again = UserDecider.decide(Self.command(cell.command), before, Fixture.context(id: "now"))
        #expect(again.changes == decision.changes)
        #expect(again.forwards.map(\.id) == decision.forwards.map(\.id))
    }

    /// The app's backend may link an install that the link service knows; so its linker begins then, and not before.
    @Test func theLinkerBeginsWhenTheLinkServiceKnowsTheInstall() throws {
        let before = UserState()
        let begun = UserDecider.decide(Self.command(.createByLinker), before, Fixture.context(id: "now"))
        #expect(begun.answer == .begun)
        let forward = try #require(begun.forwards.first)
        let answer = LinkAnswer(forward: forward.id, outcome: .facts(Fixture.facts(user: nil, isLinked: false)))
        let told = UserDecider.decide(.answered(answer), before.after(begun), Fixture.context(id: "reply"))
        #expect(told.settled == ["now": .pending(.linker)])
    }

    /// The other dimension: everything that the link service may answer, in every state that waits for an answer.
    @Test(arguments: [
        State.creatingByCode, .creatingUnlinked, .confirmingCreation, .linking, .confirmingLink, .resetting, .failing,
    ])
    func everyAnswerEndsOrContinues(_ state: State) throws {
        let answers: [LinkAnswer.Outcome] =
            [.facts(Fixture.facts(9)), .facts(Fixture.facts(9, isLinked: false)), .expired]
            + ReasonCode.allCases.map { .rejected(Rejection($0)) }
        for answer in answers {
            for isReset in [false, true] {
                var before = Self.state(state)
                if isReset {
                    before = before.after(UserDecider.decide(Self.command(.reset), before, Fixture.context(id: "r")))
                }
                let decision = UserDecider.decide(
                    .answered(LinkAnswer(forward: "f1", outcome: answer)), before, Fixture.context(id: "now"))
                #expect(decision.answer == .noted)
                let after = before.after(decision).install("demo", "i1")
                let isOver = after == nil || after?.phase == .present
                let settled = Set(decision.settled.keys)
                // It either ends, and all who waited are told, or one more command to the link service is on its way.
                #expect(isOver != (decision.forwards.count == 1), "\(state) \(answer)")
                if isOver {
                    #expect(settled.contains("begun") || state == .resetting, "\(state) \(answer)")
                    #expect(settled.contains("r") == isReset, "\(state) \(answer)")
                } else {
                    #expect(after?.saga?.forward == decision.forwards.first?.id)
                }
                // The same answer again is passed over.
                let second = UserDecider.decide(
                    .answered(LinkAnswer(forward: "f1", outcome: answer)), before.after(decision),
                    Fixture.context(id: "x"))
                #expect(second.changes.isEmpty && second.settlements.isEmpty && second.forwards.isEmpty)
            }
        }
    }
}
