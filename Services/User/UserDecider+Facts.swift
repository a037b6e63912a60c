// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime

/// What the link service says has happened, outside of our own sagas or in them.
extension UserDecider {
    /// - Parameter read: the facts of the event, given those that are known.
    static func note(
        _ installID: String, _ state: UserState, _ context: DecisionContext, _ read: (LinkFacts) -> LinkFacts
    ) -> Decision {
        // An install without a record is nobody's here: what it went through is asked for when it creates a user.
        guard let install = state.install(context.app.id, installID) else { return Decision(.noted) }
        let facts = read(install.facts)
        guard facts.version > install.facts.version else { return Decision(.noted) }
        return note(facts, of: install, state)
    }

    static func note(_ facts: LinkFacts, of install: Installation, _ state: UserState) -> Decision {
        var changed = install
        let events = absorb(facts, into: &changed)
        if let loss = loss(of: changed, state) { return end(changed, for: loss, state) }
        return Decision(.noted, changes: put(changed), events: events)
    }

    /// Takes facts in if they are newer than those that are known.
    /// - Returns: what has changed for the SDK.
    static func absorb(_ facts: LinkFacts, into install: inout Installation) -> [any EventMessage] {
        let before = install.facts
        guard facts.version > before.version else { return [] }
        install.facts = facts
        guard install.hasUser, let userID = facts.userID else { return [] }
        var events: [any EventMessage] = []
        if facts.isLinked, !before.isLinked { events.append(UserLinked(installId: install.id, userId: userID)) }
        if before.isRemoteEnabled, !facts.isRemoteEnabled {
            let cause: UserDeactivated.Cause =
                switch facts.status {
                case .enabled: .superseded
                case .disabled: .disabled
                case .deleted: .deleted
                }
            events.append(UserDeactivated(installId: install.id, userId: userID, cause: cause))
        }
        if !before.isRemoteEnabled, facts.isRemoteEnabled {
            events.append(UserActivated(installId: install.id, userId: userID))
        }
        return events
    }

    /// Why the install can have no user any more, if it cannot. Not looked at while the link service's answer to a
    /// creation or a reset is awaited: that will tell.
    static func loss(of install: Installation, _ state: UserState) -> ReasonCode? {
        if install.phase == .creating || install.phase == .resetting { return nil }
        guard let userID = install.facts.userID else { return install.hasUser ? .noUser : nil }
        return state.isErased(userID) ? .userErased : nil
    }
}
