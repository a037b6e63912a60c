// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime
import Storage

extension Person {
    /// Nobody but the installs that it is on ever knew it: whoever was linked once may be again (L67).
    var wasNeverLinked: Bool { externalID == nil && !isErased && linkedAt == nil && former.isEmpty && barred.isEmpty }
}

/// Persons who do not come back (docs/link.md "Retention").
extension LinkDecider {
    /// L200, L201.
    func expire(_ command: ExpirePerson) throws(Rejection) -> Decision {
        let install = try found(command.installId)
        guard install.userID == command.userId, let person = person(on: install), person.wasNeverLinked,
            !person.isRestricted
        else { return Decision(.succeeded(result(install))) }
        let detached = install.with(nil, .none)
        let isLast = !state.installs(of: person.userID).contains { $0.key != install.key }
        var events: [any EventMessage] = [
            InstallDetached(installId: install.id, userId: person.userID, version: detached.version)
        ]
        if isLast { events.append(UserExpired(userId: person.userID, installId: install.id)) }
        return Decision(
            .succeeded(
                InstallResult(
                    installId: detached.id, appId: detached.app, userId: nil, externalId: nil,
                    status: detached.status, isActive: false, inactiveBecause: nil, isUsersFirst: false,
                    version: detached.version)),
            changes: [.install(detached), isLast ? .expired(person.userID) : .person(person)], events: events)
    }
}
