// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Testing

@testable import Runtime
@testable import User

/// The table in docs/user.md "States" (U50 to U59, U69 to U71, U73, U74), every state and every command of it (U50 to U67).
@Suite struct StateTableTests {
    /// The page's tables: the grid, and the words for reasons.
    struct Page {
        var grid: [[String]] = []
        var words: [String: String] = [:]

        init() throws {
            let repository = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent()
            let text = try String(contentsOf: repository.appending(path: "docs/user.md"), encoding: .utf8)
            let section = try #require(text.components(separatedBy: "\n## ").first { $0.hasPrefix("States\n") })
            for line in section.split(separator: "\n") where line.hasPrefix("|") && !line.hasPrefix("|-") {
                let cells = line.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false)
                    .map { $0.trimmingCharacters(in: .whitespaces) }
                if cells.count == 3 {
                    words[cells[1].trimmingCharacters(in: ["`"])] = cells[0]
                } else {
                    grid.append(cells)
                }
            }
        }
    }

    @Test func everyCellIsAsThePageSays() throws {
        let page = try Page()
        #expect(page.grid.first.map { Array($0.dropFirst(2)) } == Command.allCases.map(\.rawValue))
        #expect(page.grid.dropFirst().map { $0[1] } == State.allCases.map(\.rawValue))
        for (state, row) in zip(State.allCases, page.grid.dropFirst()) {
            for (command, cell) in zip(Command.allCases, row.dropFirst(2)) {
                for before in state.values {
                    let told = try cellText(command.value, before, page)
                    #expect(told == cell, "\(state.rawValue) x \(command.rawValue), \(before)")
                }
            }
        }
    }

    /// What the service does, in the words of the page.
    private func cellText(_ command: UserCommand, _ before: UserState, _ page: Page) throws -> String {
        let decision = UserDecider.decide(command, before, Fixture.context(id: "now"))
        let after = before.after(decision)
        let install = after.install("demo", "i1")
        func word(_ answer: Answer) throws -> String {
            switch answer {
            case .rejected(let reason): return page.words[reason.rawValue] ?? reason.rawValue
            case .pending(.platform): return "…"
            case .pending(.linker): return "linker"
            case .begun: return "… linker"
            case .noted: return "–"
            case .user(let id, let isLinked, let isRemoteEnabled):
                let facts = try #require(install?.facts)
                #expect(
                    id == facts.userID?.text && isLinked == facts.isLinked && isRemoteEnabled == facts.isRemoteEnabled)
                return "user"
            default: return "\(answer)"
            }
        }
        var text = try word(decision.answer)
        if install?.phase != before.install("demo", "i1")?.phase { text += " → \(install?.phase.rawValue ?? "none")" }
        if let waiting = decision.settled["begun"] { text += "; waiting: \(try word(waiting))" }
        #expect(decision.settled.keys.allSatisfy { $0 == "begun" })
        if case .rejected = decision.answer, decision.settlements.isEmpty { #expect(decision.changes.isEmpty) }
        // Whoever was told "pending" waits.
        switch decision.answer {
        case .pending, .begun:
            let waiting = try #require(install).waiting + (try #require(install).resets)
            #expect(waiting.contains(Waiting(Fixture.key("now"))))
        default: break
        }
        // Deciding twice gives the same.
        let again = UserDecider.decide(command, before, Fixture.context(id: "now"))
        #expect(again.changes == decision.changes)
        #expect(again.forwards.map(\.id) == decision.forwards.map(\.id))
        return text
    }

    /// The app's backend may link an install that the link service knows; so its linker begins then, and not before.
    @Test func theLinkerBeginsWhenTheLinkServiceKnowsTheInstall() throws {
        let before = UserState()
        let begun = UserDecider.decide(Command.createByLinker.value, before, Fixture.context(id: "now"))
        #expect(begun.answer == .begun)
        let forward = try #require(begun.forwards.first)
        let answer = LinkAnswer(forward: forward.id, outcome: .facts(Fixture.facts(user: nil, isLinked: false)))
        let told = UserDecider.decide(.answered(answer), before.after(begun), Fixture.context(id: "reply"))
        #expect(told.settled == ["now": .pending(.linker)])
    }

    /// The other dimension: everything that the link service may answer, in every state that waits for an answer.
    @Test(arguments: [
        State.creatingByCode, .creatingUnlinked, .confirmingCreation, .electing, .linking, .confirmingLink, .resetting,
    ])
    func everyAnswerEndsOrContinues(_ state: State) throws {
        let outcomes: [LinkAnswer.Outcome] =
            [.facts(Fixture.facts(9)), .facts(Fixture.facts(9, isLinked: false)), .expired]
            + ReasonCode.allCases.map { .rejected(Rejection($0)) }
        for value in state.values {
            for outcome in outcomes {
                try endsOrContinues(outcome, value)
                let reset = UserDecider.decide(Command.reset.value, value, Fixture.context(id: "r"))
                try endsOrContinues(outcome, value.after(reset))
            }
        }
    }

    private func endsOrContinues(_ outcome: LinkAnswer.Outcome, _ before: UserState) throws {
        let trace = Comment(rawValue: "\(outcome) \(before)")
        let waiting = try #require(before.install("demo", "i1"))
        let answer = UserCommand.answered(LinkAnswer(forward: "f1", outcome: outcome))
        let decision = UserDecider.decide(answer, before, Fixture.context(id: "now"))
        #expect(decision.answer == .noted)
        let after = before.after(decision).install("demo", "i1")
        let isOver = after == nil || after?.phase == .present
        // It either ends, and all who waited are told, or one more command to the link service is on its way.
        #expect(isOver != (decision.forwards.count == 1), trace)
        if isOver {
            #expect(Set(decision.settled.keys) == Set((waiting.waiting + waiting.resets).map(\.id)), trace)
        } else {
            #expect(after?.forward == decision.forwards.first?.id, trace)
            #expect(after?.resets == waiting.resets, trace)
        }
        // The same answer again is passed over.
        let second = UserDecider.decide(answer, before.after(decision), Fixture.context(id: "x"))
        #expect(second.changes.isEmpty && second.settlements.isEmpty && second.forwards.isEmpty, trace)
    }
}
