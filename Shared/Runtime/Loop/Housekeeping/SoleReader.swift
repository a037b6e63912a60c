// SPDX-License-Identifier: Apache-2.0

import Messaging

/// Whether a replica with a SQLite file is the only one that reads its service's topics: two with a file each would keep two
/// truths. A replica that has not got all partitions decides nothing that it has just been given, and one that stays without
/// them ends. The newcomer ends soon, so that the other one has its partitions back. Pure.
struct SoleReader {
    enum State: Equatable {
        /// Nothing is known yet. Can become `all`, `some`.
        case waiting
        /// The replica has never had all partitions. Can become `all` where its file has decisions of an earlier process:
        /// the other reader is that process then, until its session has ended. A newcomer does not become `all`, for it lacks
        /// what the other one has decided.
        case some(since: ContinuousClock.Instant, isNewcomer: Bool)
        /// The replica has all partitions. Can become `lost`.
        case all
        /// The replica had all partitions, and another one has some of them now. Can become `all`.
        case lost(since: ContinuousClock.Instant)
    }

    private(set) var state = State.waiting
    /// How long a replica that was killed remains in its groups.
    let sessionTimeout: Duration

    /// A newcomer waits so long before it ends.
    static let newcomersPatience = Duration.seconds(3)
    /// Who had all partitions waits so long: longer than every newcomer.
    static let patience = Duration.seconds(40)

    init(sessionTimeout: Duration) { self.sessionTimeout = sessionTimeout }

    /// Whether the replica has or had all partitions, and may decide.
    var mayDecide: Bool {
        switch state {
        case .waiting, .some: false
        case .all, .lost: true
        }
    }

    /// - Parameters:
    ///   - hasAll: whether everything that the service reads is assigned to this replica.
    ///   - hasDecided: whether the store holds decisions; asked where others read along.
    /// - Returns: whether the replica has to end.
    mutating func look(
        hasAll: Bool, now: ContinuousClock.Instant, hasDecided: () throws -> Bool
    ) rethrows -> Bool {
        switch state {
        case .waiting where hasAll, .lost where hasAll: state = .all
        case .waiting: state = .some(since: now, isNewcomer: true)
        case .all where !hasAll: state = .lost(since: now)
        case .all, .some, .lost: break
        }
        if case .some(let since, isNewcomer: true) = state {
            state = .some(since: since, isNewcomer: try !hasDecided())
        }
        switch state {
        case .waiting, .all: return false
        case .some(_, isNewcomer: false) where hasAll:
            state = .all
            return false
        case .some(let since, let isNewcomer):
            return now - since > (isNewcomer ? Self.newcomersPatience : sessionTimeout * 2)
        case .lost(let since): return now - since > Self.patience
        }
    }
}
