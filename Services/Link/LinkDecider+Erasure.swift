// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime

/// How a person goes: here at once, and from the user and the sync service before the final answer.
///
/// Every decision about an erasure that is under way writes the person's tombstone too, so that two of them meet although
/// the erasure's row goes in the end (docs/decisions/0003-isolation.md).
extension LinkDecider {
    static func erase(_ command: EraseUser, _ state: LinkState, _ context: DecisionContext) -> Decision {
        // Another app's user is not found, rather than refused: its existence is nobody else's business.
        guard let person = state.person(userID: command.userId), person.app == context.app.id else {
            return .rejected(.userNotFound)
        }
        var removal = Removal(person, state)
        guard var erasure = removal.erasure else {
            return Decision(.succeeded(ErasureResult(userId: person.userID, installsRemoved: 0)))
        }
        guard erasure.waiting.count < Erasure.maxWaiting else { return .rejected(.throttled) }
        erasure.waiting.append(
            .init(context.command, .erased(installs: person.isErased ? 0 : erasure.installIDs.count)))
        removal.tellUser(&erasure, context.forwardID(0))
        removal.tellSync(&erasure, context.forwardID(1))
        removal.decision.changes.append(.erasure(erasure))
        return removal.decision
    }

    /// The sync service, which asks, need not be told.
    static func forget(_ command: ForgetPerson, _ state: LinkState, _ context: DecisionContext) -> Decision {
        let app = context.app.id
        let byUserID = command.userId.flatMap { state.person(userID: $0) }.flatMap { $0.app == app ? $0 : nil }
        let byExternalID = command.externalId.flatMap { state.person(app: app, externalID: $0) }
        var persons = byUserID.map { [$0] } ?? []
        if let byExternalID, byExternalID != byUserID { persons.append(byExternalID) }
        var decision = Decision(.pending(nil))
        var erasures: [Erasure] = []
        for (number, person) in persons.enumerated() {
            var removal = Removal(person, state)
            guard var erasure = removal.erasure, erasure.user != .done else { continue }
            guard erasure.waiting.count < Erasure.maxWaiting else { return .rejected(.throttled) }
            removal.tellUser(&erasure, context.forwardID(number))
            decision.changes += removal.decision.changes
            decision.events += removal.decision.events
            decision.forwards += removal.decision.forwards
            erasures.append(erasure)
        }
        guard let first = erasures.first else {
            return Decision(.succeeded(ForgottenPersonResult(userId: persons.first?.userID)))
        }
        for (number, erasure) in erasures.enumerated() {
            var erasure = erasure
            let other = erasures.count == 2 ? erasures[1 - number].userID : nil
            erasure.waiting.append(.init(context.command, .forgotten(userID: first.userID, also: other)))
            decision.changes.append(.erasure(erasure))
        }
        return decision
    }

    /// What takes one person away.
    private struct Removal {
        /// `nil` when the person was erased before, and all have answered.
        var erasure: Erasure?
        var decision = Decision(.pending(nil))

        init(_ person: Person, _ state: LinkState) {
            decision.changes = [.person(person.tombstone)]
            guard !person.isErased else {
                erasure = state.erasure(of: person.userID)
                return
            }
            let installs = state.installs(of: person.userID)
            erasure = Erasure(
                app: person.app, userID: person.userID, externalID: person.externalID, installIDs: installs.map(\.id))
            decision.changes += installs.map { .install($0.tombstone) }
            decision.events = [UserErased(userId: person.userID)]
        }

        /// Once, and again when it refused. Does not expire: the person is gone here.
        mutating func tellUser(_ erasure: inout Erasure, _ forward: String) {
            guard erasure.user == .untold || erasure.user == .refused else { return }
            let command = ForgetUser(
                userId: erasure.userID, externalId: erasure.externalID, installIds: erasure.installIDs)
            decision.forwards.append(Forward(id: forward, command: command))
            erasure.user = .asked(forward: forward)
        }

        mutating func tellSync(_ erasure: inout Erasure, _ forward: String) {
            guard erasure.sync == .untold || erasure.sync == .refused else { return }
            let command = ForgetProfiles(userId: erasure.userID, externalId: erasure.externalID)
            decision.forwards.append(Forward(id: forward, command: command))
            erasure.sync = .asked(forward: forward)
        }
    }

    // MARK: The others' answers

    static func take(_ answer: ForgetAnswer, _ state: LinkState, _ context: DecisionContext) -> Decision {
        guard var erasure = state.erasure(context.app.id, awaiting: answer.forward),
            let person = state.person(userID: erasure.userID)
        else { return Decision(.noted) }
        let part =
            erasure.user.forward.map { ExactText($0) } == ExactText(answer.forward)
            ? \Erasure.user : \Erasure.sync
        var decision = Decision(.noted, changes: [.person(person)])
        switch answer.outcome {
        case .pending: return Decision(.noted)
        case .refused(let why):
            erasure[keyPath: part] = .refused
            decision.settlements = erasure.waiting.filter { $0.waits(for: part) }.map {
                Settlement($0.key(app: erasure.app), .rejected(Rejection(.serverError, why)))
            }
            erasure.waiting.removeAll { $0.waits(for: part) }
        case .done:
            erasure[keyPath: part] = .done
            let done = erasure.waiting.filter { waiting in
                [\Erasure.user, \.sync].allSatisfy { !waiting.waits(for: $0) || erasure[keyPath: $0].isOver }
            }
            decision.settlements = done.filter { !isElsewhere($0, state) }.map {
                Settlement($0.key(app: erasure.app), .succeeded(result($0, erasure)))
            }
            erasure.waiting.removeAll { done.contains($0) }
        }
        decision.changes.append(erasure.isOver ? .erasureOver(userID: erasure.userID) : .erasure(erasure))
        return decision
    }

    private static func result(_ waiting: Erasure.Waiting, _ erasure: Erasure) -> any CommandResult {
        switch waiting.answer {
        case .erased(let installs): ErasureResult(userId: erasure.userID, installsRemoved: installs)
        case .forgotten(let userID, _): ForgottenPersonResult(userId: userID)
        }
    }

    /// Whether the command still waits for the other person that it erased.
    private static func isElsewhere(_ waiting: Erasure.Waiting, _ state: LinkState) -> Bool {
        guard let other = waiting.also.flatMap({ state.erasure(of: $0) }) else { return false }
        return other.waiting.contains {
            ExactText($0.source) == ExactText(waiting.source) && ExactText($0.id) == ExactText(waiting.id)
        }
    }
}
