// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime

/// Making a user active on an install that it is on already: by a code of its own external id (docs/user.md "Creating and
/// restoring"). The link service knows whose external id that is.
extension UserDecider {
    /// U79.
    func electAnew(
        _ command: CreateUser, _ account: Account, _ install: Installation
    ) throws(Rejection) -> Decision {
        let isTaken = account.facts.inactiveBecause == .superseded || account.facts.inactiveBecause == .waitsForPhone
        guard let text = command.authCode, account.user.isLinked, isTaken else { throw Rejection(.userAlreadyExists) }
        let (code, reserved) = try reserve(text, for: install.id)
        let election = Election(commands: Beginners(Waiting(context.command)), code: code, forward: forwardID)
        let request = EstablishLink(code, on: install.id, account.registration.device, .create)
        return later(
            install.with(.electing(account, election)), changes: [reserved],
            forwards: [forward(request, expiry: context.expiry)])
    }

    func elected(
        _ answer: LinkAnswer.Outcome, _ account: Account, _ election: Election, _ waiting: Installation
    ) -> Decision {
        switch answer {
        case .facts(let facts):
            return finish(.init(digest: election.code.digest, purpose: .create), facts, account, waiting)
        case .rejected(let rejection) where rejection.reason == .installLinkedToOtherUser:
            return fail(Failure(Rejection(.userAlreadyExists)), account, waiting)  // U12
        case .rejected(let rejection): return fail(Failure(rejection), account, waiting)
        case .expired, .pending: return fail(.expired, account, waiting)
        }
    }
}
