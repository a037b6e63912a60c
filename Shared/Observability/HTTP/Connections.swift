// SPDX-License-Identifier: Apache-2.0

import Metrics
package import NIOCore
import Synchronization

/// The connections of one server, and which of them goes when there are too many: the one that is idle for the longest.
/// Safe from any thread.
///
/// So nobody is refused because others hold connections without using them. A connection is idle while no answer is
/// owed to its client: also while a request drips in.
package final class Connections: Sendable {
    /// One connection. Its handler says when it is busy.
    package final class Place: Sendable {
        fileprivate let close: @Sendable () -> Void
        /// Whose connections are counted together; `nil` when those of its client are not counted.
        fileprivate let owner: String?
        /// At which turn it became idle; `busy` while an answer is owed.
        fileprivate let idleSince: Atomic<Int>

        fileprivate static let busy = Int.max

        fileprivate init(owner: String?, turn: Int, close: @escaping @Sendable () -> Void) {
            self.close = close
            self.owner = owner
            idleSince = Atomic(turn)
        }
    }

    private struct State {
        var places: [ObjectIdentifier: Place] = [:]
        var counts: [String: Int] = [:]

        mutating func remove(_ place: Place) {
            guard places.removeValue(forKey: ObjectIdentifier(place)) != nil, let owner = place.owner else { return }
            counts[owner] = counts[owner].flatMap { $0 > 1 ? $0 - 1 : nil }
        }

        func longestIdle(of owner: String? = nil) -> Place? {
            let idle = places.values.lazy.map { (place: $0, since: $0.idleSince.load(ordering: .relaxed)) }
                .filter { $0.since != Place.busy && (owner == nil || $0.place.owner == owner) }
            return idle.min { $0.since < $1.since }?.place
        }
    }

    /// In metrics.
    private let server: String
    private let limit: Int
    private let limitOfOwner: Int
    /// Whose a connection from an address is.
    let owner: @Sendable (SocketAddress?) -> String?
    private let state = Mutex(State())
    /// Orders what becomes idle; no clock is needed for that.
    private let turns = Atomic(0)

    /// - Parameters:
    ///   - server: its name in metrics.
    ///   - limit: connections at once.
    ///   - limitOfOwner: connections of one owner at once.
    ///   - owner: whose connections are counted together, by the address at the other end; `nil`: not counted.
    package init(
        server: String, limit: Int, limitOfOwner: Int = .max,
        owner: @escaping @Sendable (SocketAddress?) -> String? = { _ in nil }
    ) {
        self.server = server
        self.limit = limit
        self.limitOfOwner = limitOfOwner
        self.owner = owner
    }

    package var count: Int { state.withLock { $0.places.count } }

    /// Takes a place for a new connection. Where that is one too many, the longest idle connection is closed: of the same
    /// owner, when the owner has too many. When none is idle, the new one is.
    func enter(of owner: String?, close: @escaping @Sendable () -> Void) -> Place {
        let place = Place(owner: owner, turn: nextTurn(), close: close)
        let surplus: Place? = state.withLock { state in
            state.places[ObjectIdentifier(place)] = place
            if let owner = place.owner { state.counts[owner, default: 0] += 1 }
            var surplus: Place?
            if let owner = place.owner, state.counts[owner, default: 0] > limitOfOwner {
                surplus = state.longestIdle(of: owner) ?? place
            } else if state.places.count > limit {
                surplus = state.longestIdle() ?? place
            }
            // It holds its place no longer, whenever its event loop gets round to closing it.
            if let surplus { state.remove(surplus) }
            return surplus
        }
        if let surplus {
            Counter(label: "process_connections_given_up", dimensions: [("server", server)]).increment()
            surplus.close()
        }
        return place
    }

    func leave(_ place: Place) { state.withLock { $0.remove(place) } }

    func isBusy(_ place: Place) { place.idleSince.store(Place.busy, ordering: .relaxed) }

    func isIdle(_ place: Place) { place.idleSince.store(nextTurn(), ordering: .relaxed) }

    private func nextTurn() -> Int { turns.add(1, ordering: .relaxed).newValue }
}
