// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime

/// What the link service answers, and with it how a saga goes on or ends. An answer that nobody waits for any more is
/// passed over.
extension UserDecider {
    static func take(_ answer: LinkAnswer, _ state: UserState, _ context: DecisionContext) -> Decision {
        guard let install = state.install(context.app.id, awaiting: answer.forward), let saga = install.saga else {
            return Decision(.noted)
        }
        if case .pending = answer.outcome { return Decision(.noted) }
        switch install.phase {
        case .present: return Decision(.noted)
        case .creating where saga.isCleaning: return createOnClean(install, answer, state, context)
        case .creating: return created(install, answer, state, context)
        case .awaitingLink where saga.isCleaning: return createOnClean(install, answer, state, context)
        case .awaitingLink: return registered(install, answer, state, context)
        case .confirming: return confirmed(install, answer, state, context)
        case .linking: return linked(install, answer, state, context)
        case .resetting: return cleaned(install, answer)
        }
    }

    // MARK: Creation

    private static func created(
        _ install: Installation, _ answer: LinkAnswer, _ state: UserState, _ context: DecisionContext
    ) -> Decision {
        switch answer.outcome {
        case .facts(let facts):
            // A user without a code is a new one; what is linked was left from an earlier life.
            if install.saga?.means == .unlinked, facts.isLinked, install.saga?.wasCleaned == false {
                return cleanFirst(install, state, context)
            }
            return succeed(install, facts, state, context)
        case .rejected(let rejection):
            let leftovers: [ReasonCode] = [
                .installLinkedToOtherUser, .installDeactivated, .cannotLinkExistingPersonToOtherPerson,
            ]
            if leftovers.contains(rejection.reason), install.saga?.wasCleaned == false {
                return cleanFirst(install, state, context)
            }
            return fail(install, failure(rejection), state, context)
        case .expired, .pending: return fail(install, .expired, state, context)
        }
    }

    /// No creation starts from what an earlier life left on the install.
    private static func cleanFirst(
        _ waiting: Installation, _ state: UserState, _ context: DecisionContext
    ) -> Decision {
        guard waiting.saga?.resets.isEmpty == true else { return giveWay(waiting, isCodeUsed: false, state, context) }
        var install = waiting
        install.saga?.isCleaning = true
        let forward = send(
            DetachInstall(installId: install.id), &install, context, expiry: install.saga?.expiry)
        return Decision(.noted, changes: put(install), forwards: [forward])
    }

    private static func createOnClean(
        _ waiting: Installation, _ answer: LinkAnswer, _ state: UserState, _ context: DecisionContext
    ) -> Decision {
        if case .expired = answer.outcome { return fail(waiting, .expired, state, context) }
        guard waiting.saga?.resets.isEmpty == true else { return giveWay(waiting, isCodeUsed: false, state, context) }
        var install = waiting
        install.saga?.isCleaning = false
        install.saga?.wasCleaned = true
        let forward = askForUser(&install, context)
        return Decision(.noted, changes: put(install), forwards: forward.map { [$0] } ?? [])
    }

    /// The link service knows the install now, so that the app's backend may link it.
    private static func registered(
        _ waiting: Installation, _ answer: LinkAnswer, _ state: UserState, _ context: DecisionContext
    ) -> Decision {
        var install = waiting
        switch answer.outcome {
        case .facts(let facts):
            // The linker is to bring the user; one that is there was left from an earlier life.
            if facts.userID != nil, install.saga?.wasCleaned == false { return cleanFirst(install, state, context) }
            install.saga?.forward = nil
            var decision = note(facts, of: install, state)
            if decision.settlements.isEmpty { decision.settlements = settle(install, pending(install, context)) }
            return decision
        case .rejected(let rejection): return fail(install, failure(rejection), state, context)
        case .expired, .pending:
            // An install that was known from before may have been linked meanwhile.
            let forward = clean(&install, .expired, context)
            return Decision(.noted, changes: put(install), forwards: [forward])
        }
    }

    // MARK: Links

    private static func confirmed(
        _ waiting: Installation, _ answer: LinkAnswer, _ state: UserState, _ context: DecisionContext
    ) -> Decision {
        let failed = InstallSaga.Failure.rejected(.appSideLinkingFailed, ReasonCode.appSideLinkingFailed.defaultMessage)
        switch answer.outcome {
        case .facts(let facts) where facts.isLinked: return succeed(waiting, facts, state, context)
        case .facts where waiting.saga?.purpose == .create && waiting.saga?.resets.isEmpty == true:
            // The link may be on its way still. It must not come to stay behind a creation that failed.
            var install = waiting
            let forward = clean(&install, failed, context)
            return Decision(.noted, changes: put(install), forwards: [forward])
        case .facts: return fail(waiting, failed, state, context)
        case .rejected(let rejection): return fail(waiting, failure(rejection), state, context)
        case .expired, .pending: return fail(waiting, .expired, state, context)
        }
    }

    private static func linked(
        _ waiting: Installation, _ answer: LinkAnswer, _ state: UserState, _ context: DecisionContext
    ) -> Decision {
        switch answer.outcome {
        case .facts(let facts): succeed(waiting, facts, state, context)
        case .rejected(let rejection): fail(waiting, failure(rejection), state, context)
        case .expired, .pending: fail(waiting, .expired, state, context)
        }
    }
}
