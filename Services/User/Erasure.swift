// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime

/// What is left of an erased user: the id, so that news of it that come late bring nothing back.
extension UserDecider {
    /// U34, U35.
    func forget(_ command: ForgetUser) -> Decision {
        let named = command.installIds.compactMap { install($0) }.filter { mayBeHers($0, command) }
        let known = state.installs(app.id, of: command.userId)
        let installs = Set(known + named).sorted { $0.key < $1.key }
        let codes = (command.externalId.map { state.codes(app.id, $0) } ?? []).filter { code in
            command.erasedAt.map { code.moment <= $0 } ?? true
        }
        var decision = Decision(
            .succeeded(
                ErasureCertificate(
                    requestId: context.command.id, erasedAt: now, completedAt: now,
                    subject: .init(userIds: [command.userId]),
                    done: .init(user: .init(installs: installs.count, codes: codes.count)),
                    remains: ErasureCertificate.Remainder.everywhere(inbox: context.inboxForgets))))
        for install in installs {
            let closed = close(install, .userErased)
            decision.changes += closed.changes
            decision.events += closed.events
            decision.settlements += closed.settlements
        }
        decision.changes += codes.map { .removeCode($0.digest) }
        decision.changes.append(.user(id: command.userId, isErased: true))  // U36
        if !state.isErased(command.userId) { decision.events.append(UserForgotten(userId: command.userId)) }
        return decision
    }

    /// Whether what goes on at an install that the link service names may be about the erased user. Whoever is known to be
    /// somebody else came since, and so did who began later (U90).
    private func mayBeHers(_ install: Installation, _ command: ForgetUser) -> Bool {
        if let userID = install.facts.userID { return userID == command.userId }
        guard case .creating(let creation) = install.state, let erasedAt = command.erasedAt else { return true }
        return creation.moment <= erasedAt
    }

    /// Why an install has no user any more.
    enum Loss {
        case noUser, userErased

        var reason: ReasonCode {
            switch self {
            case .noUser: .noUser
            case .userErased: .userErased
            }
        }
    }

    /// The user is gone, and with it all that went on.
    func close(_ install: Installation, _ whyLost: Loss, isCodeUsed: Bool = false) -> Decision {
        Decision(
            .noted,
            changes: [.remove(install.key)] + (isCodeUsed ? useCode(of: install) : freeCode(of: install)),
            events: [ending(install, whyLost)],
            settlements: answer(install.waiting, .rejected(Rejection(whyLost.reason)))
                + answer(install.resets, .succeeded(ResetResult(installId: install.id))))
    }

    private func ending(_ install: Installation, _ whyLost: Loss) -> any EventMessage {
        switch install.state {
        case .creating: UserCreationFailed(installId: install.id, reason: whyLost.reason)
        case .present, .linking, .electing:
            switch whyLost {
            case .noUser: UserReset(installId: install.id, userId: nil)
            case .userErased: UserDeactivated(installId: install.id, userId: nil, cause: .erased)
            }
        case .resetting(let reset):
            switch reset.cause {
            case .command, .commandForUnknown: UserReset(installId: install.id, userId: nil)
            case .failure: UserCreationFailed(installId: install.id, reason: whyLost.reason)
            }
        }
    }
}
