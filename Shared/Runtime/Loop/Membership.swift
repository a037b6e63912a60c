// SPDX-License-Identifier: Apache-2.0

/// Where a replica stands with its consumer groups.
enum Membership {
    /// Can become `member`, `unfit`.
    case outside
    /// Can become `leaving`, `unfit`; `outside` when the replica is stopped.
    case member
    /// The replica was fenced, or cannot know what it owns: it joins anew. Can become `outside`, `unfit`.
    case leaving
    /// The store is no longer one that the replica may work on: a later version has migrated it, or another replica holds it
    /// to another apps file. Or another replica has this one's name in the groups. The replica leaves and ends with this error.
    case unfit(any Error)

    /// Whether nothing more is decided before the groups are joined again.
    var isLeaving: Bool {
        switch self {
        case .outside, .member: false
        case .leaving, .unfit: true
        }
    }

    mutating func leave() {
        switch self {
        case .outside, .unfit: break
        case .member, .leaving: self = .leaving
        }
    }
}
