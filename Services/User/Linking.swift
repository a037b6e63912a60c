// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime

/// Linking the unlinked user of an install later: by an authentication code, or with the app's linker.
extension UserDecider {
    /// U25, U26.
    func link(_ command: LinkUser) throws(Rejection) -> Decision {
        guard let install = install(command.installId) else { throw Rejection(.noUser) }
        switch install.state {
        case .creating: throw Rejection(.userCreationInProgress)
        case .present(let account): return try link(command, account, install)
        case .linking(let account, var link):
            guard let digest = command.authCode.map({ CodeDigest(of: $0) }), digest == link.code?.digest else {
                throw Rejection(.userLinkingInProgress)
            }
            try waitAlong(&link.commands.repeats, beside: 1)
            return later(install.with(.linking(account, link)))
        case .electing: throw Rejection(.userAlreadyLinked)
        case .resetting: throw Rejection(.sdkResetInProgress)
        }
    }

    private func link(
        _ command: LinkUser, _ account: Account, _ install: Installation
    ) throws(Rejection) -> Decision {
        if let redeemed = account.registration.redeemed, redeemed.purpose == .link,
            redeemed.digest == command.authCode.map({ CodeDigest(of: $0) })
        {
            return Decision(user(account, install.id))
        }
        if account.user.isLinked { throw Rejection(.userAlreadyLinked) }
        if !account.facts.isRemoteEnabled { throw Rejection(.userDisabledRemotely) }
        if !app.linking.isEnabled { throw Rejection(.userLinkingNotConfigured) }
        let begun = Beginners(Waiting(context.command))
        guard let text = command.authCode else {
            let link = PendingLink(commands: begun, step: .awaitingLinker(deadline: linkersDeadline))
            return later(install.with(.linking(account, link)))
        }
        let (code, reserved) = try reserve(text, for: install.id)
        let link = PendingLink(commands: begun, step: .asking(code, forward: forwardID))
        let request = EstablishLink(code, on: install.id, account.registration.device, .linkExistingUser)
        return later(
            install.with(.linking(account, link)), changes: [reserved],
            forwards: [forward(request, expiry: context.expiry)])
    }

    func linked(
        _ answer: LinkAnswer.Outcome, _ account: Account, _ link: PendingLink, _ waiting: Installation
    ) -> Decision {
        switch answer {
        case .facts(let facts): finish(link.redeemed, facts, account, waiting)
        case .rejected(let rejection): fail(Failure(rejection), account, waiting)
        case .expired, .pending: fail(.expired, account, waiting)
        }
    }

    /// The user is linked, or active.
    /// - Parameter redeemed: the code that it came to by.
    func finish(
        _ redeemed: Registration.Redeemed?, _ facts: LinkFacts, _ before: Account, _ waiting: Installation
    ) -> Decision {
        let latest = before.facts.updated(by: facts)
        guard waiting.resets.isEmpty else {
            return yieldToReset(before.registration, waiting, knowing: latest, isCodeUsed: true)
        }
        var registration = before.registration
        if let redeemed { registration.redeemed = redeemed }
        guard let account = Account(registration, latest) else { return close(waiting, .noUser, isCodeUsed: true) }
        if state.isErased(account.user.id) { return close(waiting, .userErased, isCodeUsed: true) }
        let install = waiting.with(.present(account))
        return Decision(
            .noted, changes: put(install) + useCode(of: waiting),
            events: changes(from: before.facts, to: latest, install.id),
            settlements: answer(waiting.waiting, user(account, install.id)))
    }

    /// The link service has changed nothing: the user stays as it is (U27).
    func fail(_ failure: Failure, _ account: Account, _ waiting: Installation) -> Decision {
        guard waiting.resets.isEmpty else { return yieldToReset(account.registration, waiting) }
        return Decision(
            .noted, changes: put(waiting.with(.present(account))) + freeCode(of: waiting),
            settlements: answer(waiting.waiting, failure.outcome))
    }
}
