// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Storage

/// One partition of a log, from its assignment to its revocation: what is done with its records, and why. Pure: events
/// in, actions out, which the loop carries out in their order. docs/loop.md, "A partition", has the table of states and
/// events.
struct Partition {
    enum State: Equatable {
        /// By its group, and never claimed. Can become `backlog`, `shared`, `full`, `live`.
        case assigned
        /// No claim is known to hold any more: the database connection is a new one, or nobody knows whether the last
        /// commit happened. Can become `backlog`, `shared`, `full`, `live`, `displaced`.
        case unclaimed
        /// Its log is not what it was. Can become `backlog`, `shared`, `full`, `live`.
        case displaced(Displacement)
        /// What was decided before is handed to the publisher first, oldest first; never empty. Can become `shared`,
        /// `full`, `live`, `unclaimed`, `displaced`.
        case backlog([Owed])
        /// Another replica, with a store of its own, may read the topics too. Can become `full`, `live`, `unclaimed`,
        /// `displaced`.
        case shared
        /// Its lane holds as much as it may. Can become `live`, `unclaimed`, `displaced`.
        case full
        /// Its records are decided. Can become `full`, `unclaimed`, `displaced`.
        case live

        var awaitsClaim: Bool {
            switch self {
            case .assigned, .unclaimed, .displaced: true
            case .backlog, .shared, .full, .live: false
            }
        }

        var isBacklog: Bool { if case .backlog = self { true } else { false } }

        var isDisplaced: Bool { if case .displaced = self { true } else { false } }
    }

    /// What became of a log.
    enum Displacement {
        /// Its topic was missing for a moment.
        case vanished
        /// It does not have the offset to read next.
        case outOfRange
        /// It has another record at the place of the last one decided.
        case replaced
    }

    /// Messages that were decided and perhaps not published, to be read from the outbox: all behind `after`.
    struct Owed: Equatable {
        var incarnation: Int64
        var after: Int64
    }

    enum Event {
        /// The progress table has given the partition to this replica, with what is to be handed over before.
        case claimed(Position, owed: [Owed], room: Room)
        /// The claim may not hold any more.
        case doubted
        case displaced(Displacement)
        /// What an incarnation owes is with the publisher up to `through`; `isAll` when nothing is left behind it.
        case handedOver(incarnation: Int64, through: Int64, isAll: Bool, room: Room)
        /// This replica has all partitions of all topics, or a store that others share.
        case alone(room: Room)
        case filled
        case drained
        case records([KafkaRecord])
    }

    /// What the partition's lane still takes.
    enum Room {
        /// As much as it may hold is undelivered.
        case none
        /// It is not full, and fuller than where a partition goes on that had to wait.
        case little
        case enough
    }

    enum Action {
        /// Reading goes on at this offset, whatever was read before.
        case restart(at: Int64)
        case pause
        case decide([KafkaRecord])
        case resume
    }

    private(set) var state = State.assigned
    /// Absent only while it is assigned.
    var position: Position?
    /// What came while nothing may be decided, and is decided first then.
    private(set) var held: [KafkaRecord] = []
    private(set) var isPaused = false
    /// Whether nobody with another store reads along.
    private var isAlone: Bool

    init(isAlone: Bool) { self.isAlone = isAlone }

    /// - Returns: what is to be done, in this order.
    mutating func handle(_ event: Event) -> [Action] {
        switch (state, event) {
        case (_, .claimed(let position, let owed, let room)):
            self.position = position
            held = []
            state = owed.isEmpty ? ready(room) : .backlog(owed)
            // What is restarted is not paused any more.
            let resumed: [Action] = isPaused ? [.resume] : []
            isPaused = false
            return [.restart(at: position.start)] + resumed

        // It is claimed anyway; a displaced one with more said about its log.
        case (.assigned, .doubted), (.displaced, .doubted): return []
        case (_, .doubted):
            state = .unclaimed
            return letGo()

        // What was never read is not missed; and what a log was displaced by before says more.
        case (.assigned, .displaced), (.displaced, .displaced(.vanished)): return []
        case (_, .displaced(let displacement)):
            state = .displaced(displacement)
            return letGo()

        case (.backlog(var owed), .handedOver(let incarnation, let through, let isAll, let room)):
            guard let place = owed.firstIndex(where: { $0.incarnation == incarnation }) else { return [] }
            owed[place].after = through
            if isAll {
                owed.remove(at: place)
                if incarnation != position?.claim.incarnation { position?.setAsideEnds[incarnation] = through }
            }
            state = owed.isEmpty ? ready(room) : .backlog(owed)
            return goOn()

        case (_, .alone(let room)):
            isAlone = true
            if state == .shared { state = ready(room) }
            return goOn()

        case (.live, .filled):
            state = .full
            return pause()
        case (.full, .drained):
            state = .live
            return goOn()
        case (_, .handedOver), (_, .filled), (_, .drained): return []

        case (_, .records(let records)): return take(records)
        }
    }

    /// The state of a partition of which nothing is owed.
    private func ready(_ room: Room) -> State {
        if !isAlone { return .shared }
        return switch room {
        case .none: .full
        case .little: isPaused ? .full : .live
        case .enough: .live
        }
    }

    private mutating func take(_ records: [KafkaRecord]) -> [Action] {
        if position?.check(records) == .replaced { return handle(.displaced(.replaced)) }
        let wanted = records.filter { position?.wants($0) ?? false }
        switch state {
        case .live where held.isEmpty: return wanted.isEmpty ? [] : [.decide(wanted)]
        // They are read again from where the next claim says.
        case .assigned, .unclaimed, .displaced: return pause()
        case .live, .backlog, .shared, .full:
            held += wanted
            return pause()
        }
    }

    private mutating func goOn() -> [Action] {
        guard state == .live else { return [] }
        var actions: [Action] = held.isEmpty ? [] : [.decide(held)]
        if isPaused { actions.append(.resume) }
        (held, isPaused) = ([], false)
        return actions
    }

    private mutating func letGo() -> [Action] {
        held = []
        return pause()
    }

    private mutating func pause() -> [Action] {
        if isPaused { return [] }
        isPaused = true
        return [.pause]
    }
}
