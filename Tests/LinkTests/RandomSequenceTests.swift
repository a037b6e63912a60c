// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing

@testable import Link
@testable import Runtime

/// Random command sequences through the decider and through a naive model: the same answers, events and state.
@Suite struct RandomSequenceTests {
    private static let length = 50

    @Test func deciderAndModelAgree() throws {
        var answers: [ReasonCode: Int] = [:]
        var (late, restored, freed) = (0, 0, 0)
        var brought: [String: Int] = [:]
        let reasons: Set<ReasonCode> = [
            .invalidRequest, .idReused, .userLinkingNotConfigured, .installNotFound, .installDoesNotBelongToApp,
            .installDeleted, .installDisabled, .installDeactivated, .installLinkedToOtherUser,
            .cannotLinkExistingPersonToOtherPerson, .multipleInstallsActive, .userNotFound, .userErased,
            .noLinkingInProgress, .userAlreadyExists, .externalIDTaken, .externalIDChanged, .linkBarred, .noUser,
        ]
        // What lists come to, L150 to L157.
        let verdicts: Set<String> = [
            "created", "same", "changed", "invalid", "EXTERNAL_ID_TAKEN", "VALUE_NAMES_NOBODY", "USER_ERASED",
            "USER_ID_TAKEN", "TWO_ACTIVE_INSTALLS", "INSTALL_TAKEN", "DIFFERS", "IMMUTABLE", "LIMIT_EXCEEDED",
            "BAD_TIME",
            "given",
        ]
        func isReached() -> Bool {
            reasons.isSubset(of: answers.keys) && late > 25 && restored > 5 && freed > 5
                && verdicts.isSubset(of: brought.keys)
        }
        try runSequences(500, until: isReached) { seed in
            var commands = RandomCommands(seed: seed)
            try run(&commands, breaking: seed % 4 == 3, &answers, &late, &restored, &freed, &brought)
        }
        // A test that never reaches a row proves nothing about it.
        #expect(isReached(), "\(answers), \(late) late, \(restored) restored, \(freed) freed, \(brought)")
    }

    private func run(
        _ commands: inout RandomCommands, breaking: Bool, _ answers: inout [ReasonCode: Int], _ late: inout Int,
        _ restored: inout Int, _ freed: inout Int, _ brought: inout [String: Int]
    ) throws {
        var state = LinkState()
        var model = NaiveLinkModel()
        var history = History()
        var forwards: [CommandID] = []
        var settled: Set<String> = []
        for place in 0..<Self.length {
            // From outside, something breaks "at most one active": again and again, since every election mends it.
            if breaking, place >= Self.length / 2, place % 5 == 0 { breakActivity(&state, &model) }
            let step = commands.next(users: model.persons.keys.sorted(), forwards: forwards)
            let decision = Fixture.decide(step.command, state, step.context)
            let again = Fixture.decide(step.command, state, step.context)
            #expect(decision.changes == again.changes)
            #expect(decision.told == again.told)
            #expect(decision.answer == again.answer)
            #expect(try decision.writtenOtherwise().isEmpty)
            let before = state
            state = state.after(decision)
            try checkVersions(before, state)
            forwards += decision.forwards.map(\.id)
            // Whoever has the final answer is told no other (the runtime sees to that).
            let news = decision.settled.filter { settled.insert($0.key.text).inserted }
            // Forgotten and sent again, a command is a new one to the runtime.
            if decision.answer == .pending { settled.remove(step.context.command.id.text) }
            (model.now, model.holdFor) = (step.context.now.milliseconds, RandomCommands.hold)
            let (answer, events) = model.run(
                step.command, id: step.context.command.id, app: step.context.app.id,
                linkingIsOn: step.context.app.linking.isEnabled, newUser: step.context.newUserID,
                moment: step.context.moment.milliseconds, forwardID: { step.context.forwardID($0) })
            let trace = Comment(rawValue: "seed \(testSeed), step \(place): \(step.command)")
            try #require(decision.answer == answer, trace)
            try #require(decision.told == events, trace)
            restored += decision.events.count { ($0 as? InstallStatusChanged)?.cause == .restored }
            freed += decision.events.count { ($0 as? InstallStatusChanged)?.cause == .unrestricted }
            try #require(decision.sent == model.sent, trace)
            try #require(news == model.settled, trace)
            try #require(Set(state.erasures.values.filter { !$0.isOver }.map(\.userID)) == model.unfinished, trace)
            try #require(rows(state) == model.apps, trace)
            try #require(people(state) == model.persons, trace)
            try history.check(model, answer, isBroken: breaking && place >= Self.length / 2, trace)
            if case .imported(let elements) = answer {
                for element in elements {
                    brought[element.outcome.rawValue, default: 0] += 1
                    if let reason = element.reason { brought[reason.rawValue, default: 0] += 1 }
                }
            }
            if case .registerInstall(let register) = step.command, register.user == .new, answer == decision.answer,
                before.install(step.context.app.id, register.installId)?.isImported == true
            {
                brought["given", default: 0] += 1
            }
            if case .rejected(let reason) = answer {
                answers[reason, default: 0] += 1
                let isLate = if case .late? = decision.changes.first { true } else { false }
                #expect(decision.changes.count == (isLate ? 1 : 0), trace)
                if isLate { late += 1 }
            }
        }
    }

    /// What is told of an install can be ordered: its version grows with each change of what is told, and only then.
    private func checkVersions(_ before: LinkState, _ after: LinkState) throws {
        for install in after.installs.values {
            guard let old = before.installs[install.key] else { continue }
            let isSame =
                old.userID == install.userID && old.activity == install.activity && old.status == install.status
                && isLinked(old, before) == isLinked(install, after)
                && isRestricted(old, before) == isRestricted(install, after)
            try #require(install.version == old.version + (isSame ? 0 : 1))
        }
    }

    private func isRestricted(_ install: Install, _ state: LinkState) -> Bool {
        install.userID.flatMap { state.person(userID: $0)?.isRestricted } == true
    }

    private func isLinked(_ install: Install, _ state: LinkState) -> Bool {
        install.userID.flatMap { state.person(userID: $0)?.externalID } != nil
    }

    private func breakActivity(_ state: inout LinkState, _ model: inout NaiveLinkModel) {
        for (app, rows) in model.apps {
            for (id, row) in rows where row.user != nil {
                model.apps[app]?[id]?.activity = .active
                model.apps[app]?[id]?.version += 1
                guard let install = state.install(app, id) else { continue }
                var broken = install
                broken.activity = .active
                broken.version += 1
                state.apply(.install(broken))
            }
        }
    }

    private func rows(_ state: LinkState) -> [AppID: [InstallID: NaiveLinkModel.InstallRow]] {
        state.installs.values.reduce(into: [:]) { rows, install in
            rows[install.app, default: [:]][install.id] = NaiveLinkModel.InstallRow(
                app: install.app, device: install.device, status: install.status, user: install.userID,
                activity: install.activity, isUsersFirst: install.isUsersFirst, isOpen: install.isOpen,
                since: install.turn?.milliseconds, arrived: install.personSince, version: install.version,
                erasedAt: install.erasedAt, isBrought: install.isImported)
        }
    }

    private func people(_ state: LinkState) -> [UserID: NaiveLinkModel.PersonRow] {
        state.persons.values.reduce(into: [:]) { rows, person in
            rows[person.userID] = NaiveLinkModel.PersonRow(
                app: person.app, externalID: person.externalID, isErased: person.isErased,
                named: person.linkedAt, created: person.createdAt, barred: Set(person.barred),
                past: person.former,
                words: Dictionary(
                    uniqueKeysWithValues: person.restrictions.map {
                        ($0.mpid, .init(isFrozen: $0.isRestricted, at: $0.changedAt))
                    }))
        }
    }

    /// What must hold whatever happens.
    private struct History {
        var everGiven: Set<UserID> = []
        var erased: Set<UserID> = []

        mutating func check(_ model: NaiveLinkModel, _ answer: Answer, isBroken: Bool, _ trace: Comment) throws {
            let rows = model.apps.values.flatMap(\.values)
            let active = Dictionary(grouping: rows.filter { $0.activity == .active }, by: \.user)
            if !isBroken { try #require(active.values.allSatisfy { $0.count == 1 }, trace) }
            let names = model.persons.values.compactMap { person in
                person.externalID.map { Scoped(app: person.app, id: $0) }
            }
            try #require(Set(names).count == names.count, trace)
            for user in erased { try #require(model.persons[user]?.isErased == true, trace) }
            for row in rows { try #require(row.user.map { !erased.contains($0) } ?? true, trace) }
            if case .link(let result) = answer, result.personCreated {
                try #require(everGiven.insert(result.userId).inserted, trace)
            }
            everGiven.formUnion(model.persons.keys)
            // The command that made somebody who is gone may come again when the inbox has forgotten it (L201).
            everGiven.formIntersection(model.persons.keys)
            erased.formUnion(model.persons.filter(\.value.isErased).keys)
        }
    }
}
