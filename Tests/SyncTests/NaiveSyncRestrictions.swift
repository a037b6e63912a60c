// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts

@testable import Runtime
@testable import Sync

/// Of whom nothing more is learnt, in the naive model.
extension NaiveSyncModel {
    mutating func restrict(_ command: RestrictProfile) throws(Refusal) -> RestrictResult {
        if !isBelieved { throw Refusal(reason: .verificationRequired) }
        var found = person(command.mpid).map { [$0] } ?? []
        if let id = command.identity?.identity {
            if isNobodys(id.value.text) { throw Refusal(reason: .validationError) }
            found = meant([id])
        }
        if found.count > 1 { throw Refusal(reason: .ambiguousIdentity) }
        guard let me = found.first, !me.isErased else { throw Refusal(reason: .notFoundError) }
        if me.isFrozen != command.isRestricted {
            change(me.mpid) { $0.isFrozen.toggle() }
            deeds.repair = RestrictionChanged(
                mpid: me.mpid, isRestricted: command.isRestricted, author: command.author, reason: command.reason)
        }
        return RestrictResult(mpid: me.mpid, isRestricted: command.isRestricted, userId: me.user)
    }

    /// Which user of the link service may do nothing because of whom.
    private var frozen: [MPID: UserID] {
        people.reduce(into: [:]) { frozen, person in
            if person.isFrozen, let user = person.user { frozen[person.mpid] = user }
        }
    }

    mutating func tellFreezes(since before: NaiveSyncModel, now: Int64) {
        let (old, new) = (before.frozen, frozen)
        for person in people where old[person.mpid] != new[person.mpid] && !person.isErased {
            change(person.mpid) { $0.toldFrozen = $0.toldFrozen.map { $0 < now ? now : $0 + 1 } ?? now }
        }
    }

    func freezes(since before: NaiveSyncModel) -> [UserRestrictionChanged] {
        let (old, new) = (before.frozen, frozen)
        let changed = Set(old.keys).union(new.keys).filter { old[$0] != new[$0] }.sorted()
        func told(_ mpid: MPID, _ user: UserID, _ isFrozen: Bool) -> UserRestrictionChanged {
            let was = before.person(mpid)?.toldFrozen
            let at = person(mpid)?.toldFrozen ?? was.map { $0 + 1 } ?? 0
            return UserRestrictionChanged(
                userId: user, mpid: mpid, isRestricted: isFrozen,
                changedAt: Timestamp(milliseconds: max(at, erasedAt(mpid))))
        }
        return changed.compactMap { mpid in new[mpid].map { told(mpid, $0, true) } }
            + changed.compactMap { mpid in old[mpid].map { told(mpid, $0, false) } }
    }

    /// Whoever is erased was seen last then.
    private func erasedAt(_ mpid: MPID) -> Int64 { person(mpid).flatMap { $0.isErased ? $0.last : nil } ?? .min }
}
