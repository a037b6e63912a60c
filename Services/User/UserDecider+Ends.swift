// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime

/// How a saga ends.
extension UserDecider {
    /// The link service has done its part: there is a user, or its link.
    static func succeed(
        _ waiting: Installation, _ facts: LinkFacts, _ state: UserState, _ context: DecisionContext
    ) -> Decision {
        guard let saga = waiting.saga else { return Decision(.noted) }
        var install = waiting
        guard saga.resets.isEmpty else {
            if facts.version > install.facts.version { install.facts = facts }
            return giveWay(install, isCodeUsed: true, state, context)
        }
        install.phase = .present
        install.saga = nil
        if let digest = saga.digest { install.redeemed = .init(digest: digest, purpose: saga.purpose) }
        var events: [any EventMessage] = []
        if saga.purpose == .create {
            // An event may have told of later things already: they happened behind the arrival.
            install.facts = facts
            events = arrival(install) + absorb(waiting.facts, into: &install)
        } else {
            events = absorb(facts, into: &install)
        }
        let codes = settleCode(of: waiting, isUsed: true, state)
        if let loss = loss(of: install, state) {
            var decision = end(waiting, for: loss, state)
            decision.changes += codes
            return decision
        }
        return Decision(
            .noted, changes: put(install) + codes, events: events,
            settlements: settle(waiting, outcome(install, context)))
    }

    private static func arrival(_ install: Installation) -> [any EventMessage] {
        let facts = install.facts
        guard let userID = facts.userID else { return [] }
        return facts.isUsersFirst
            ? [
                UserCreated(
                    installId: install.id, userId: userID, isLinked: facts.isLinked,
                    isRemoteEnabled: facts.isRemoteEnabled)
            ]
            : [UserRestored(installId: install.id, userId: userID, isRemoteEnabled: facts.isRemoteEnabled)]
    }

    /// The link service has changed nothing: a creation leaves no trace, a user stays unlinked, a code is free again.
    static func fail(
        _ waiting: Installation, _ failure: InstallSaga.Failure, _ state: UserState, _ context: DecisionContext
    ) -> Decision {
        guard waiting.saga?.resets.isEmpty == true else { return giveWay(waiting, isCodeUsed: false, state, context) }
        var decision = Decision(.noted, settlements: settle(waiting, outcome(failure)))
        if waiting.saga?.purpose == .create {
            decision.events = [UserCreationFailed(installId: waiting.id, reason: failure.reason)]
            decision.changes = [.remove(waiting.key)]
        } else {
            var install = waiting
            install.phase = .present
            install.saga = nil
            decision.changes = put(install)
        }
        decision.changes += settleCode(of: waiting, isUsed: false, state)
        return decision
    }

    /// Somebody waits to reset the install: that is next.
    static func giveWay(
        _ waiting: Installation, isCodeUsed: Bool, _ state: UserState, _ context: DecisionContext
    ) -> Decision {
        var install = waiting
        var decision = interrupt(&install, context)
        decision.changes = put(install) + settleCode(of: waiting, isUsed: isCodeUsed, state)
        return decision
    }

    /// The install is clean, or the link service refuses to say so.
    static func cleaned(_ waiting: Installation, _ answer: LinkAnswer) -> Decision {
        var refusal: Rejection?
        switch answer.outcome {
        case .facts, .pending: break
        case .rejected(let rejection) where [.installNotFound, .installDeleted].contains(rejection.reason): break
        case .rejected(let rejection): refusal = rejection
        case .expired: refusal = Rejection(.serverError)
        }
        var decision = Decision(.noted)
        if let failure = waiting.saga?.failure {
            decision.settlements = settle(waiting, outcome(failure))
            decision.events = [UserCreationFailed(installId: waiting.id, reason: failure.reason)]
        }
        if let refusal {
            decision.settlements += settleResets(waiting, outcome(failure(refusal)))
            var install = waiting
            install.phase = .present
            install.saga = nil
            decision.changes = install.facts.userID == nil ? [.remove(install.key)] : put(install)
        } else {
            decision.settlements += settleResets(waiting, .succeeded(ResetResult(installId: waiting.id)))
            if waiting.saga?.resets.isEmpty == false {
                decision.events.append(UserReset(installId: waiting.id, userId: waiting.saga?.userID))
            }
            decision.changes = [.remove(waiting.key)]
        }
        return decision
    }

    /// The user is gone, and with it all that went on.
    static func end(_ install: Installation, for loss: ReasonCode, _ state: UserState) -> Decision {
        let event: any EventMessage =
            if install.saga?.purpose == .reset {
                UserReset(installId: install.id, userId: loss == .userErased ? nil : install.facts.userID)
            } else if !install.hasUser {
                UserCreationFailed(installId: install.id, reason: loss)
            } else if loss == .userErased {
                UserDeactivated(installId: install.id, userId: nil, cause: .erased)
            } else {
                UserReset(installId: install.id, userId: install.facts.userID)
            }
        return Decision(
            .noted, changes: [.remove(install.key)] + settleCode(of: install, isUsed: false, state), events: [event],
            settlements: settle(install, .rejected(Rejection(loss)))
                + settleResets(install, .succeeded(ResetResult(installId: install.id))))
    }
}
