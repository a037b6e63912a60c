// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
public import Storage

/// What keeps two profiles apart: one of them may not have what the other had (S127). Each of the two has it, so that every
/// decision that gives either a value has read it.
public struct Barrier: Stored, Sendable, Hashable {
    public var identity: Identity
    /// Who may not have the identity.
    public var mpid: MPID
    public var other: MPID

    public init(_ identity: Identity, from mpid: MPID, for other: MPID) {
        self.identity = identity
        self.mpid = mpid
        self.other = other
    }

    func isAbout(_ identity: Identity, _ settings: SyncSettings) -> Bool {
        self.identity.type == identity.type && settings.folded(self.identity) == settings.folded(identity)
    }

    /// As it is told.
    var told: MergeBarrier { MergeBarrier(mpid: mpid, identity: identity, otherMPID: other) }
}

extension Profile {
    /// Whether it may not have the identity.
    func isBarred(_ identity: Identity, _ settings: SyncSettings) -> Bool {
        barriers.contains { $0.mpid == mpid && $0.isAbout(identity, settings) }
    }

    func isApart(from other: MPID) -> Bool { barriers.contains { $0.mpid == other || $0.other == other } }
}

extension Resolver {
    /// S128. Whoever names what a profile may not have means somebody else by it: not that profile, unless a higher-ranked
    /// identity leads there. A login does not make an anonymous profile the person from whom it was taken.
    func isKeptApart(_ profile: Profile, _ identities: [Identity]) -> Bool {
        let barred = profile.barriers.isEmpty ? [] : identities.filter { profile.isBarred($0, settings) }
        guard !barred.isEmpty else { return false }
        if !profile.isKnown(settings), !settings.logins(barred).isEmpty { return true }
        let best = identities.filter { profile.holds($0, settings) }.map { settings.rank($0.type) }.min()
        return best.map { best in barred.contains { settings.rank($0.type) < best } } == true
    }
}

extension Draft {
    /// What was left out is told.
    /// - Returns: the types; `nil` when nothing was.
    mutating func tellBarred(from mpid: MPID, on device: DeviceID) -> [IdentityType]? {
        guard !barred.isEmpty else { return nil }
        tell(MergeBarred(mpid: mpid, deviceId: device, cause: cause, types: barred.sorted()))
        return barred.sorted()
    }

    mutating func put(_ barriers: [Barrier]) {
        for barrier in barriers {
            for mpid in [barrier.mpid, barrier.other] {
                guard var profile = profile(mpid), !profile.barriers.contains(barrier) else { continue }
                profile.barriers.append(barrier)
                put(profile)
            }
        }
    }

    mutating func lift(_ barriers: [Barrier]) {
        for barrier in barriers {
            for mpid in [barrier.mpid, barrier.other] {
                guard var profile = profile(mpid), profile.barriers.contains(barrier) else { continue }
                profile.barriers.removeAll { $0 == barrier }
                put(profile)
            }
        }
    }
}
