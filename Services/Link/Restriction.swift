// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

/// A person of whom what is known is kept and not used, by what the sync service tells (docs/link.md "Restriction").
///
/// It lies over what elections come to and changes nothing about that: who is active when it ends is who was elected.
extension LinkDecider {
    /// L82, L83; of an erased person nothing (L84).
    func restricted(_ event: UserRestrictionChanged) -> Decision {
        guard let person = state.person(userID: event.userId), person.app == app.id, !person.isErased,
            let changed = person.told(event)
        else { return Decision(.noted) }
        guard changed.isRestricted != person.isRestricted else {
            return Decision(.noted, changes: [.person(changed)])
        }
        let installs = Self.stirred(state.installs(of: person.userID)) { _ in }
        let cause: InstallStatusChanged.Cause = changed.isRestricted ? .restricted : .unrestricted
        return Decision(
            .noted, changes: [.person(changed)] + installs.map { .install($0) },
            events: installs.map { told(of: $0, changed, cause) })
    }
}

/// What a profile of the sync service last said of a person.
struct Restriction: Stored, Sendable, Hashable {
    var mpid: MPID
    var isRestricted: Bool
    /// In milliseconds since 1970.
    var changedAt: Int64
}

extension Person {
    /// More profiles that say nothing any more are not remembered.
    private static let mostEnded = 16

    /// Whether a profile says so (L82).
    public var isRestricted: Bool { restrictions.contains(where: \.isRestricted) }

    /// - Returns: `nil` when something later is known of this profile.
    fileprivate func told(_ event: UserRestrictionChanged) -> Person? {
        let at = event.changedAt.milliseconds
        guard restrictions.first(where: { $0.mpid == event.mpid }).map({ $0.changedAt < at }) != false else {
            return nil
        }
        var person = self
        person.restrictions.removeAll { $0.mpid == event.mpid }
        person.restrictions.append(Restriction(mpid: event.mpid, isRestricted: event.isRestricted, changedAt: at))
        let ended = person.restrictions.filter { !$0.isRestricted }
        if ended.count > Self.mostEnded, let oldest = ended.first {
            person.restrictions.removeAll { $0 == oldest }
        }
        return person
    }
}
