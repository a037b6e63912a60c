// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime

/// What is left of an erased user: the id, so that news of it that come late bring nothing back.
extension UserDecider {
    static func forget(_ command: ForgetUser, _ state: UserState, _ context: DecisionContext) -> Decision {
        let app = context.app.id
        // The link service has deleted these installs: nothing that goes on there can end otherwise.
        let named = command.installIds.compactMap { state.install(app, $0) }
        let known = state.installs(app, of: command.userId)
        let installs = Set(known + named).sorted { $0.key < $1.key }
        var decision = Decision(.succeeded(ForgottenUserResult(installsRemoved: installs.count)))
        for install in installs {
            let ended = end(install, for: .userErased, state)
            decision.changes += ended.changes
            decision.events += ended.events
            decision.settlements += ended.settlements
        }
        decision.changes += (command.externalId.map { state.codes(app, $0) } ?? []).map { .removeCode($0) }
        decision.changes.append(.user(id: command.userId, isErased: true))
        if !state.isErased(command.userId) { decision.events.append(UserForgotten(userId: command.userId)) }
        return decision
    }
}
