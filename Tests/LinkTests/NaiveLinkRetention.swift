// SPDX-License-Identifier: Apache-2.0

import Contracts

@testable import Link

extension NaiveLinkModel {
    /// L200, L201: whoever was never anything but a guest leaves, and is nobody when that was the last place.
    mutating func expire(_ command: ExpirePerson) -> Told {
        let id = command.installId
        guard let row = installs[id] else { return (.rejected(unknown(id)), []) }
        let user = command.userId
        let isGuest =
            persons[user].map { person in
                person.externalID == nil && person.named == nil && person.past.isEmpty && person.barred.isEmpty
                    && !person.isErased && !person.words.values.contains(where: \.isFrozen)
            } ?? false
        guard row.user == user, isGuest else { return (.install(result(id)), []) }
        var left = row
        (left.user, left.activity, left.since, left.arrived) = (nil, .none, nil, nil)
        (left.isUsersFirst, left.isOpen, left.isBrought) = (false, false, false)
        left.version += 1
        installs[id] = left
        takeovers[user]?.removeAll { $0.winner == id }
        var told: [AnyHashable] = [InstallDetached(installId: id, userId: user, version: left.version)]
        if !installs.values.contains(where: { $0.user == user }) {
            persons[user] = nil
            takeovers[user] = nil
            told.append(UserExpired(userId: user, installId: id))
        }
        return (.install(result(id)), told)
    }
}
