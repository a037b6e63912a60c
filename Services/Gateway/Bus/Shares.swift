// SPDX-License-Identifier: Apache-2.0

import Contracts

/// How many requests wait for a reply, and whose: what is slow holds up no other (docs/gateway.md#limits). Pure.
///
/// Requests belong together when the same services have to answer them: a creation that link has its part in takes
/// nothing from the calls that user answers alone. Nobody holds more than what is free: no such group of all places, and,
/// where there are several apps, no app of all places, and of the half that an app can have no one group. So one stalled
/// group has half of the places at most, two have a third each, and there is always room for the next one.
struct Shares {
    struct Owner: Sendable, Hashable {
        var app: AppID
        /// Those that have to answer.
        var services: Set<String>
        /// Whether there are other apps.
        var isOneOfSeveral: Bool
    }

    private struct Pair: Hashable {
        var app: AppID
        var services: Set<String>
    }

    private let limit: Int
    private(set) var count = 0
    private var groups: [Set<String>: Int] = [:]
    private var apps: [AppID: Int] = [:]
    private var pairs: [Pair: Int] = [:]

    init(limit: Int) { self.limit = limit }

    func count(waitingFor services: Set<String>) -> Int { groups[services, default: 0] }

    /// Takes a place, if there is one for this owner.
    mutating func take(_ owner: Owner) -> Bool {
        let pair = Pair(app: owner.app, services: owner.services)
        let (free, ofApp) = (limit - count, apps[owner.app, default: 0])
        guard groups[owner.services, default: 0] < free else { return false }
        if owner.isOneOfSeveral {
            guard ofApp < free, pairs[pair, default: 0] < max(1, limit / 2) - ofApp else { return false }
        }
        add(1, owner.app, pair)
        return true
    }

    mutating func giveBack(_ owner: Owner) {
        add(-1, owner.app, Pair(app: owner.app, services: owner.services))
    }

    private mutating func add(_ change: Int, _ app: AppID, _ pair: Pair) {
        count += change
        Self.add(change, to: &groups, pair.services)
        Self.add(change, to: &apps, app)
        Self.add(change, to: &pairs, pair)
    }

    /// What is not there counts nothing.
    private static func add<Key>(_ change: Int, to counts: inout [Key: Int], _ key: Key) {
        let count = counts[key, default: 0] + change
        counts[key] = count == 0 ? nil : count
    }
}
