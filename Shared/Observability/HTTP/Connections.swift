// SPDX-License-Identifier: Apache-2.0

import Metrics
package import NIOCore
import Synchronization

/// The connections of one server, and which of them goes when there are too many: the one that is idle for the longest.
/// Safe from any thread.
///
/// So nobody is refused because others hold connections without using them. A connection is idle while it is its client's
/// turn: also while a request drips in, and while an answer waits to be read. Where answers never take long, it is so
/// while one is owed as well: then whoever comes is served, however many are busy.
package final class Connections: Sendable {
    /// One connection. Its handler says when it is busy.
    package final class Place: Sendable {
        fileprivate let close: @Sendable () -> Void
        /// Whose connections are counted together; `nil` when those of its client are not counted.
        fileprivate let owner: String?

        fileprivate init(owner: String?, close: @escaping @Sendable () -> Void) {
            self.close = close
            self.owner = owner
        }
    }

    /// Idle connections in the order in which they became idle. Nothing is looked through: under a flood of connections
    /// each new one asks for the first.
    private struct Line {
        private var places: [Int: Place] = [:]
        /// Nobody stands before this number.
        private var first = 0
        private var next = 0

        /// - Returns: the number in the line.
        mutating func join(_ place: Place) -> Int {
            if places.isEmpty { first = next }
            places[next] = place
            next += 1
            return next - 1
        }

        mutating func leave(_ number: Int) { places[number] = nil }

        /// Who is idle for the longest. Each number is passed once.
        mutating func longest() -> Place? {
            if places.isEmpty { return nil }
            while places[first] == nil { first += 1 }
            return places[first]
        }
    }

    /// Those of an owner.
    private struct Owned {
        var count = 0
        var idle = Line()
    }

    /// Where a connection stands in the line of all, and in its owner's: nowhere while an answer is owed.
    private struct Standing {
        let place: Place
        var ofAll: Int?
        var ofOwner: Int?
    }

    private struct State {
        var places: [ObjectIdentifier: Standing] = [:]
        var idle = Line()
        var owned: [String: Owned] = [:]

        mutating func add(_ place: Place) {
            places[ObjectIdentifier(place)] = Standing(place: place)
            if let owner = place.owner { owned[owner, default: Owned()].count += 1 }
            isIdle(place)
        }

        mutating func remove(_ place: Place) {
            leaveLines(place)
            guard places.removeValue(forKey: ObjectIdentifier(place)) != nil, let owner = place.owner else { return }
            owned[owner]?.count -= 1
            if owned[owner]?.count == 0 { owned[owner] = nil }
        }

        /// Goes to the end of the lines, unless it has lost its place.
        mutating func isIdle(_ place: Place) {
            leaveLines(place)
            guard places[ObjectIdentifier(place)] != nil else { return }
            places[ObjectIdentifier(place)] = Standing(
                place: place, ofAll: idle.join(place), ofOwner: place.owner.flatMap { owned[$0]?.idle.join(place) })
        }

        mutating func leaveLines(_ place: Place) {
            guard let standing = places[ObjectIdentifier(place)] else { return }
            if let number = standing.ofAll { idle.leave(number) }
            if let number = standing.ofOwner, let owner = place.owner { owned[owner]?.idle.leave(number) }
            places[ObjectIdentifier(place)] = Standing(place: place)
        }
    }

    /// Connections that the kernel has made and the server has not accepted yet; the kernel cuts it to its own limit. Where
    /// they are one too many, it drops the client's first packet, which is sent again after a whole second.
    package static let backlog = 4096

    /// In metrics.
    private let server: String
    private let limit: Int
    private let limitOfOwner: Int
    private let keepsBusy: Bool
    /// Whose a connection from an address is.
    let owner: @Sendable (SocketAddress?) -> String?
    private let state = Mutex(State())

    /// - Parameters:
    ///   - server: its name in metrics.
    ///   - limit: connections at once.
    ///   - limitOfOwner: connections of one owner at once.
    ///   - keepsBusy: whether a connection whose client is owed an answer makes no room.
    ///   - owner: whose connections are counted together, by the address at the other end; `nil`: not counted.
    package init(
        server: String, limit: Int, limitOfOwner: Int = .max, keepsBusy: Bool = true,
        owner: @escaping @Sendable (SocketAddress?) -> String? = { _ in nil }
    ) {
        self.server = server
        self.limit = limit
        self.limitOfOwner = limitOfOwner
        self.keepsBusy = keepsBusy
        self.owner = owner
    }

    package var count: Int { state.withLock { $0.places.count } }

    /// Takes a place for a new connection. Where that is one too many, the longest idle connection is closed: of the same
    /// owner, when the owner has too many. When none is idle, the new one is.
    func enter(of owner: String?, close: @escaping @Sendable () -> Void) -> Place {
        let place = Place(owner: owner, close: close)
        let surplus: Place? = state.withLock { state in
            state.add(place)
            var surplus: Place?
            // The new one counts as idle, and goes where nobody else is.
            if let owner, state.owned[owner]?.count ?? 0 > limitOfOwner {
                surplus = state.owned[owner]?.idle.longest()
            } else if state.places.count > limit {
                surplus = state.idle.longest()
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

    func isBusy(_ place: Place) { state.withLock { keepsBusy ? $0.leaveLines(place) : $0.isIdle(place) } }

    func isIdle(_ place: Place) { state.withLock { $0.isIdle(place) } }
}
