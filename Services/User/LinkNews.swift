// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime

/// What the link service says has happened: on this install, or on another one that the user has moved to. Outside of
/// what goes on here, or in it.
extension UserDecider {
    /// - Parameter read: the facts of the event, given those that are known.
    func heard(of installID: InstallID, _ read: (LinkFacts) -> LinkFacts) -> Decision {
        // We keep no record of the install: what it went through is asked for when it creates a user.
        guard let install = install(installID) else { return Decision(.noted) }
        let facts = read(install.facts)
        guard facts.version > install.facts.version else { return Decision(.noted) }  // U32
        guard let changed = install.knowing(facts) else { return close(install, .noUser) }
        // Where the link service's answer is awaited, that will tell.
        let isAwaited = [.creating, .resetting].contains(changed.phase)
        if !isAwaited, isErased(changed) { return close(changed, .userErased) }
        switch changed.state {
        case .creating, .resetting: return Decision(.noted, changes: put(changed))
        case .present, .linking:
            return Decision(
                .noted, changes: put(changed), events: changes(from: install.facts, to: facts, install.id))
        }
    }

    func isErased(_ install: Installation) -> Bool { install.facts.userID.map { state.isErased($0) } ?? false }

    /// What has changed for the SDK of an install that has a user.
    func changes(from before: LinkFacts, to after: LinkFacts, _ installID: InstallID) -> [any EventMessage] {
        guard after.version > before.version, let userID = after.userID else { return [] }
        var events: [any EventMessage] = []
        if after.isLinked, !before.isLinked { events.append(UserLinked(installId: installID, userId: userID)) }  // U28
        if before.isRemoteEnabled, !after.isRemoteEnabled {
            let cause: UserDeactivated.Cause =
                switch after.status {
                case .enabled: .superseded  // U15
                case .disabled: .disabled
                case .deleted: .deleted
                }
            events.append(UserDeactivated(installId: installID, userId: userID, cause: cause))
        }
        if !before.isRemoteEnabled, after.isRemoteEnabled {
            events.append(UserActivated(installId: installID, userId: userID))  // U31
        }
        return events
    }
}
