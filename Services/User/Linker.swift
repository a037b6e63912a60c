// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime

/// The app's linker: its turn, its word, and what it comes to (docs/user.md "Creating and restoring"). What the link
/// service has recorded decides, not the app's word.
extension UserDecider {
    /// Until when a linker may take that begins now.
    var linkersDeadline: Timestamp {
        let end = Timestamp(milliseconds: now.milliseconds + app.sdk.linkerTimeout)
        return min(end, context.expiry ?? end)
    }

    /// The link service knows the install now, so that the app's backend may link it.
    func registered(
        _ answer: LinkAnswer.Outcome, _ question: Creation.Question, _ deadline: Timestamp, _ creation: Creation,
        _ waiting: Installation
    ) -> Decision {
        switch answer {
        case .facts(let facts):
            // The linker is to bring the user; one that is there was left from an earlier life.
            if facts.user != nil, question.attempt == .first { return detachFirst(question, creation, waiting) }
            return awaitLinker(until: deadline, knowing: facts, creation, waiting)
        case .rejected(let rejection): return fail(Failure(rejection), creation, waiting)
        case .expired, .pending:
            // An install that was known from before may have been linked meanwhile.
            let (install, forward) = detach(creation, because: .expired, waiting)
            return Decision(.noted, changes: put(install), forwards: [forward])
        }
    }

    private func awaitLinker(
        until deadline: Timestamp, knowing facts: LinkFacts, _ creation: Creation, _ waiting: Installation
    ) -> Decision {
        var creation = creation
        creation.step = .awaitingLinker(deadline: deadline)
        creation.facts = creation.facts.updated(by: facts)
        let install = waiting.with(.creating(creation))
        if isErased(install) { return close(install, .userErased) }
        return Decision(.noted, changes: put(install), settlements: answer(install.waiting, pending(install)))
    }

    // MARK: The app's word

    func confirm(_ command: ConfirmLink) throws(Rejection) -> Decision {
        guard let install = install(command.installId) else { throw Rejection(.noUser) }
        switch install.state {
        case .creating(let creation): return try confirm(command, creation, install)
        case .present(let account), .electing(let account, _):
            guard command.success, account.user.isLinked else { throw Rejection(.noLinkingInProgress) }
            return Decision(user(account, install.id))
        case .linking(let account, let link): return try confirm(command, account, link, install)
        case .resetting: throw Rejection(.sdkResetInProgress)
        }
    }

    private func confirm(
        _ command: ConfirmLink, _ creation: Creation, _ install: Installation
    ) throws(Rejection) -> Decision {
        var creation = creation
        if case .confirming(var confirmation) = creation.step {
            try waitAlong(&confirmation, command)
            creation.step = .confirming(confirmation)
            return later(install.with(.creating(creation)))
        }
        guard creation.deadline != nil else { throw Rejection(.noLinkingInProgress) }
        guard command.success else {
            let (failed, forward) = detach(
                creation, confirmedBy: [Waiting(context.command)], because: .appSideLinkingFailed, install)
            return later(failed, forwards: [forward])
        }
        creation.step = .confirming(confirmation(of: command))
        return later(install.with(.creating(creation)), forwards: [forward(QueryInstall(installId: install.id))])
    }

    private func confirm(
        _ command: ConfirmLink, _ account: Account, _ link: PendingLink, _ install: Installation
    ) throws(Rejection) -> Decision {
        var link = link
        switch link.step {
        case .asking: throw Rejection(.noLinkingInProgress)
        case .confirming(var confirmation):
            try waitAlong(&confirmation, command)
            link.step = .confirming(confirmation)
            return later(install.with(.linking(account, link)))
        case .awaitingLinker:
            guard command.success else {
                let failed = Failure.appSideLinkingFailed.outcome
                return Decision(
                    failed, changes: put(install.with(.present(account))), settlements: answer(link.waiting, failed))
            }
            link.step = .confirming(confirmation(of: command))
            return later(
                install.with(.linking(account, link)), forwards: [forward(QueryInstall(installId: install.id))])
        }
    }

    private func confirmation(of command: ConfirmLink) -> Confirmation {
        Confirmation(
            commands: [Waiting(context.command)], externalIDs: command.externalId.map { [$0] } ?? [],
            forward: forwardID)
    }

    private func waitAlong(_ confirmation: inout Confirmation, _ command: ConfirmLink) throws(Rejection) {
        try waitAlong(&confirmation.commands)
        if let externalID = command.externalId, !confirmation.externalIDs.contains(externalID) {
            confirmation.externalIDs.append(externalID)
        }
    }

    // MARK: What it comes to

    func confirmed(
        _ answer: LinkAnswer, _ confirmation: Confirmation, _ creation: Creation, _ waiting: Installation
    ) -> Decision {
        let failure: Failure
        switch answer.outcome {
        case .facts(let facts) where confirmation.isConfirmed(by: answer): return arrive(facts, creation, waiting)
        case .facts: failure = .appSideLinkingFailed
        case .rejected(let rejection): failure = Failure(rejection)
        case .expired, .pending: failure = .expired
        }
        guard confirmation.resets.isEmpty else { return fail(failure, creation, waiting) }
        // A link may be there, or on its way still. It must not come to stay behind a creation that failed.
        let (install, forward) = detach(creation, confirmedBy: confirmation.commands, because: failure, waiting)
        return Decision(.noted, changes: put(install), forwards: [forward])
    }

    func confirmed(
        _ answer: LinkAnswer, _ confirmation: Confirmation, _ account: Account, _ link: PendingLink,
        _ waiting: Installation
    ) -> Decision {
        switch answer.outcome {
        case .facts(let facts) where confirmation.isConfirmed(by: answer): finish(nil, facts, account, waiting)
        case .facts: fail(.appSideLinkingFailed, account, waiting)
        case .rejected(let rejection): fail(Failure(rejection), account, waiting)
        case .expired, .pending: fail(.expired, account, waiting)
        }
    }

    /// The linker has taken too long, unless nobody waits for it any more (U20).
    func expire(_ command: ExpireLinker) -> Decision {
        let isOverdue = { (waiting: Waiting, deadline: Timestamp?) in
            deadline != nil && waiting.source == command.commandSource
                && waiting.id == command.commandId
        }
        guard let install = install(command.installId) else { return Decision(.noted) }
        switch install.state {
        case .creating(let creation) where isOverdue(creation.commands.first, creation.deadline):
            let (failed, forward) = detach(creation, because: .expired, install)
            return Decision(.noted, changes: put(failed), forwards: [forward])
        case .linking(let account, let link) where isOverdue(link.commands.first, link.deadline):
            return Decision(
                .noted, changes: put(install.with(.present(account))), settlements: answer(link.waiting, .expired))
        case .creating, .present, .linking, .electing, .resetting: return Decision(.noted)
        }
    }
}

extension DerivedID {
    /// The id of the command that the linker has taken too long, by the command that waits for it. Numbered far behind
    /// what that command sends on, so that it is none of those.
    static func linkerExpiry(app: AppID, _ waiting: Waiting) -> CommandID {
        forward(of: CommandKey(app: app, source: waiting.source, id: waiting.id), number: 1_000_000)
    }
}
