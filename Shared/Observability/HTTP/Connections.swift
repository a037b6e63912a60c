// SPDX-License-Identifier: Apache-2.0

import Metrics
package import NIOCore
import Synchronization

/// The connections of one server, and which of them goes when there are too many: the one that is idle for the longest.
/// Safe from any thread.
///
/// So nobody is refused because others hold connections without using them. A connection is idle while it is its client's
/// turn: also while a request drips in, while an answer waits to be read, and while its client has asked for more than
/// one. Where answers never take long, more make room, in the order of ``Activity``, but none that waits for its first
/// answer: so whoever comes gets one, however many are busy.
package final class Connections: Sendable {
    /// What a connection does, in the order in which they make room where answers never take long.
    enum Activity: Int, CaseIterable {
        /// It is its client's turn.
        case idle
        /// Its client has asked for more than one answer.
        case insistent
        /// It is answered, and has been before.
        case served
        /// It has just come, and its client asks any moment, or has begun to.
        case new
        /// It waits for its first answer, or nobody has looked yet at what it sent. It makes no room.
        case unanswered
    }

    /// One connection. Its handler says what it does.
    package final class Place: Sendable {
        fileprivate let close: @Sendable () -> Void
        /// Whose connections are counted together; `nil` when those of its client are not counted.
        fileprivate let owner: String?

        fileprivate init(owner: String?, close: @escaping @Sendable () -> Void) {
            self.close = close
            self.owner = owner
        }
    }

    /// Those that make room, a line for each activity: in the order in which they began to do the same. Under a flood of
    /// connections each new one asks for the first.
    private struct Lines {
        private var lines = Array(repeating: Line<Place>(), count: Activity.unanswered.rawValue)

        mutating func join(_ place: Place, _ activity: Activity) -> Int { lines[activity.rawValue].join(place) }

        mutating func leave(_ number: Int, _ activity: Activity) { lines[activity.rawValue].leave(number) }

        mutating func first() -> Place? {
            for index in lines.indices {
                if let place = lines[index].longest()?.element { return place }
            }
            return nil
        }
    }

    /// Those of an owner.
    private struct Owned {
        var count = 0
        var lines = Lines()
    }

    /// Where a connection stands in a line of all, and in its owner's: nowhere while it makes no room.
    private struct Standing {
        let place: Place
        var line = Activity.idle
        var ofAll: Int?
        var ofOwner: Int?
    }

    private struct State {
        let limit: Int
        let limitOfOwner: Int
        let keepsBusy: Bool
        var places: [ObjectIdentifier: Standing] = [:]
        private var lines = Lines()
        private var owned: [String: Owned] = [:]

        init(limit: Int, limitOfOwner: Int, keepsBusy: Bool) {
            self.limit = limit
            self.limitOfOwner = limitOfOwner
            self.keepsBusy = keepsBusy
        }

        mutating func add(_ place: Place) {
            places[ObjectIdentifier(place)] = Standing(place: place)
            if let owner = place.owner { owned[owner, default: Owned()].count += 1 }
        }

        mutating func remove(_ place: Place) {
            leaveLines(place)
            guard places.removeValue(forKey: ObjectIdentifier(place)) != nil, let owner = place.owner else { return }
            owned[owner]?.count -= 1
            if owned[owner]?.count == 0 { owned[owner] = nil }
        }

        /// Goes to the end of its lines, unless it has lost its place.
        mutating func note(_ place: Place, _ activity: Activity) {
            leaveLines(place)
            guard places[ObjectIdentifier(place)] != nil else { return }
            guard let line = line(of: activity) else { return }
            places[ObjectIdentifier(place)] = Standing(
                place: place, line: line, ofAll: lines.join(place, line),
                ofOwner: place.owner.flatMap { owned[$0]?.lines.join(place, line) })
        }

        /// `nil` for those that make no room.
        private func line(of activity: Activity) -> Activity? {
            switch activity {
            case .idle, .insistent, .new: keepsBusy ? .idle : activity
            case .served: keepsBusy ? nil : activity
            case .unanswered: nil
            }
        }

        /// Where there is one too many after a connection has come or done something, somebody loses the place.
        mutating func makeRoom(beside place: Place) -> Place? {
            guard places[ObjectIdentifier(place)] != nil else { return nil }
            let isOwnersFault = place.owner.flatMap { owned[$0]?.count } ?? 0 > limitOfOwner
            guard isOwnersFault || places.count > limit else { return nil }
            let first = isOwnersFault ? place.owner.flatMap { owned[$0]?.lines.first() } : lines.first()
            guard let surplus = first ?? (keepsBusy ? place : nil) else { return nil }
            // Whenever its event loop gets round to closing it.
            remove(surplus)
            return surplus
        }

        private mutating func leaveLines(_ place: Place) {
            guard let standing = places[ObjectIdentifier(place)] else { return }
            if let number = standing.ofAll { lines.leave(number, standing.line) }
            if let number = standing.ofOwner, let owner = place.owner {
                owned[owner]?.lines.leave(number, standing.line)
            }
            places[ObjectIdentifier(place)] = Standing(place: place)
        }
    }

    /// Connections that the kernel has made and the server has not accepted yet; the kernel cuts it to its own limit. Where
    /// they are one too many, it drops the client's first packet, which is sent again after a whole second.
    package static let backlog = 4096

    /// In metrics.
    private let server: String
    /// Whose a connection from an address is.
    let owner: @Sendable (SocketAddress?) -> String?
    private let state: Mutex<State>

    /// - Parameters:
    ///   - server: its name in metrics.
    ///   - limit: connections at once.
    ///   - limitOfOwner: connections of one owner at once.
    ///   - keepsBusy: whether a connection that is answered makes no room; then a new one is closed where nobody does.
    ///     Otherwise, answers never take long: the new one stays, and whoever makes room next goes.
    ///   - owner: whose connections are counted together, by the address at the other end; `nil`: not counted.
    package init(
        server: String, limit: Int, limitOfOwner: Int = .max, keepsBusy: Bool = true,
        owner: @escaping @Sendable (SocketAddress?) -> String? = { _ in nil }
    ) {
        self.server = server
        self.owner = owner
        state = Mutex(State(limit: limit, limitOfOwner: limitOfOwner, keepsBusy: keepsBusy))
    }

    package var count: Int { state.withLock { $0.places.count } }

    /// Takes a place for a new connection. Where that is one too many, the first that makes room is closed: of the same
    /// owner, when the owner has too many.
    func enter(of owner: String?, close: @escaping @Sendable () -> Void) -> Place {
        let place = Place(owner: owner, close: close)
        giveUp(
            state.withLock { state in
                state.add(place)
                return state.makeRoom(beside: place)
            })
        return place
    }

    func leave(_ place: Place) { state.withLock { $0.remove(place) } }

    /// What a connection does from now on.
    func note(_ place: Place, _ activity: Activity) {
        giveUp(
            state.withLock { state in
                state.note(place, activity)
                return state.makeRoom(beside: place)
            })
    }

    private func giveUp(_ surplus: Place?) {
        guard let surplus else { return }
        Counter(label: "process_connections_given_up", dimensions: [("server", server)]).increment()
        surplus.close()
    }
}
