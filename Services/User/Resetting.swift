// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime

/// Resetting: on command, and behind a creation that failed. The link service is asked to take off whatever is on the
/// install; that does not expire, because a reset that began is done.
extension UserDecider {
    /// U29, U30.
    func reset(_ command: ResetUser) throws(Rejection) -> Decision {
        let wait = Waiting(context.command)
        guard let install = install(command.installId) else {
            return later(
                Installation(
                    app: app.id, id: command.installId,
                    .resetting(
                        Reset(cause: .commandForUnknown, facts: .nothing, resets: [wait], forward: forwardID))),
                forwards: [forward(DetachInstall(installId: command.installId, cause: .reset))])
        }
        switch install.state {
        case .creating(let creation): return try reset(creation, install)
        case .present(let account): return yieldToReset(now: install, account.registration)
        case .linking(let account, let link): return try reset(link, account, install)
        case .electing(let account, var election):
            try waitAlong(&election.resets)
            return later(install.with(.electing(account, election)))
        case .resetting(var reset):
            try waitAlong(&reset.resets, else: .sdkResetInProgress)
            return later(install.with(.resetting(reset)))
        }
    }

    /// What the link service is asked ends first; a linker's turn ends at once.
    private func reset(_ creation: Creation, _ install: Installation) throws(Rejection) -> Decision {
        var creation = creation
        switch creation.step {
        case .asking(var question):
            guard case .user(let means, var resets) = question.want else {
                return yieldToReset(now: install, creation.registration)
            }
            try waitAlong(&resets)
            question.want = .user(by: means, resets: resets)
            creation.step = .asking(question)
        case .awaitingLinker: return yieldToReset(now: install, creation.registration)
        case .confirming(var confirmation):
            try waitAlong(&confirmation.resets)
            creation.step = .confirming(confirmation)
        }
        return later(install.with(.creating(creation)))
    }

    private func reset(
        _ link: PendingLink, _ account: Account, _ install: Installation
    ) throws(Rejection) -> Decision {
        var link = link
        switch link.step {
        case .asking(let code, let forward, var resets):
            try waitAlong(&resets)
            link.step = .asking(code, forward: forward, resets: resets)
        case .awaitingLinker: return yieldToReset(now: install, account.registration)
        case .confirming(var confirmation):
            try waitAlong(&confirmation.resets)
            link.step = .confirming(confirmation)
        }
        return later(install.with(.linking(account, link)))
    }

    private func yieldToReset(now install: Installation, _ registration: Registration) -> Decision {
        let (reset, decision) = yieldToReset(
            registration, install, knowing: install.facts, resets: [Waiting(context.command)])
        var answered = decision
        answered.outcome = pending(reset)
        return answered
    }

    /// Ends what goes on in favour of those who wait to reset the install.
    func yieldToReset(
        _ registration: Registration, _ waiting: Installation, knowing facts: LinkFacts? = nil,
        isCodeUsed: Bool = false
    ) -> Decision {
        var (_, decision) = yieldToReset(
            registration, waiting, knowing: facts ?? waiting.facts, resets: waiting.resets, isCodeUsed: isCodeUsed)
        decision.changes += isCodeUsed ? useCode(of: waiting) : freeCode(of: waiting)
        return decision
    }

    private func yieldToReset(
        _ registration: Registration, _ waiting: Installation, knowing facts: LinkFacts, resets: [Waiting],
        isCodeUsed: Bool = false
    ) -> (Installation, Decision) {
        let rejection = Rejection(.sdkResetInProgress)
        let reset = Reset(
            cause: .command(registration, userID: facts.userID), facts: facts, resets: resets, forward: forwardID)
        let install = waiting.with(.resetting(reset))
        // What has not succeeded yet fails, for the person too: who had it before has it again (U77).
        let cause: DetachInstall.Cause =
            switch waiting.state {
            case .creating: .creationFailed
            // An election that was refused took the user from nobody.
            case .electing: isCodeUsed ? .creationFailed : .reset
            case .present, .linking, .resetting: .reset
            }
        var decision = Decision(
            .noted, changes: put(install), forwards: [forward(DetachInstall(installId: install.id, cause: cause))],
            settlements: answer(waiting.waiting, .rejected(rejection)))
        if case .creating = waiting.state {
            decision.events = [UserCreationFailed(installId: install.id, reason: rejection.reason)]
        }
        return (install, decision)
    }

    /// A creation fails, and must leave nothing behind: then all who wait are told of `failure` (U19).
    func detach(
        _ creation: Creation, confirmedBy confirmations: [Waiting] = [], because failure: Failure,
        _ waiting: Installation
    ) -> (Installation, Forward) {
        let failed = FailedCreation(
            registration: creation.registration, commands: creation.commands, confirmations: confirmations,
            failure: failure)
        let reset = Reset(cause: .failure(failed), facts: creation.facts, resets: [], forward: forwardID)
        return (
            waiting.with(.resetting(reset)), forward(DetachInstall(installId: waiting.id, cause: .creationFailed))
        )
    }

    /// The install is clean, or the link service refuses to say so.
    func detached(_ answer: LinkAnswer.Outcome, _ reset: Reset, _ waiting: Installation) -> Decision {
        var decision = Decision(.noted)
        if case .failure(let failed) = reset.cause {
            decision.settlements = self.answer(failed.waiting, failed.failure.outcome)
            decision.events = [UserCreationFailed(installId: waiting.id, reason: failed.failure.reason)]
        }
        if let refusal = refusal(answer) {
            decision.settlements += self.answer(reset.resets, Failure(refusal).outcome)
            // Who was there stays. Where we knew of nobody, nothing stays.
            let account = reset.registration.flatMap { Account($0, reset.facts) }
            decision.changes = account.map { put(waiting.with(.present($0))) } ?? [.remove(waiting.key)]
            return decision
        }
        decision.settlements += self.answer(reset.resets, .succeeded(ResetResult(installId: waiting.id)))
        if !reset.resets.isEmpty {
            decision.events.append(UserReset(installId: waiting.id, userId: reset.userID))
        }
        decision.changes = [.remove(waiting.key)]
        return decision
    }

    private func refusal(_ answer: LinkAnswer.Outcome) -> Rejection? {
        switch answer {
        case .facts, .pending: nil
        case .rejected(let rejection):
            [.installNotFound, .installDoesNotBelongToApp, .installDeleted].contains(rejection.reason) ? nil : rejection
        case .expired: Rejection(.serverError)
        }
    }
}
