// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
public import Runtime
import Storage

/// How many pairs of commands of each service are looked at in a run: `WRITE_SKEW_PAIRS`.
public let writeSkewPairs = ProcessInfo.processInfo.environment["WRITE_SKEW_PAIRS"].flatMap { Int($0) } ?? 10_000

/// Decision 3: two commands that are decided at the same moment on the same state either write a common row, so that the
/// database lets only one through, or come to what one of the two orders would have come to. Nothing of a database is
/// needed to search for two that do neither.
public struct WriteSkew<Service: CommandService> where Service.State.Change: Hashable {
    public typealias Step = (command: Service.Command, context: DecisionContext)

    private typealias Decision = Runtime.Decision<Service.State.Change>
    private typealias Writes = [WriteRecorder.Key: WriteRecorder.Write]
    private typealias Decided = (decision: Decision, state: Service.State, writes: Writes)

    private let service: Service
    private let recorder: WriteRecorder
    private let stored: (Service.State) -> Service.State
    private let partition: (Step) -> String?

    public private(set) var pairs = 0
    /// Pairs of which both change something.
    public private(set) var changing = 0
    /// Pairs that write a common row. A search without any has proved nothing.
    public private(set) var meeting = 0
    /// Pairs that do not, and of which one had to be the first.
    public private(set) var ordered = 0
    /// What was found, for people: the first few.
    public private(set) var found: [String] = []

    /// - Parameters:
    ///   - ignored: see ``WriteRecorder``.
    ///   - partition: what two commands share that are never decided at the same moment.
    ///   - stored: the same rows in a new state, as they stand in the database: with nothing that is yet to be written.
    public init(
        _ service: Service, ignoring ignored: Set<String> = [], partition: @escaping (Step) -> String? = { _ in nil },
        stored: @escaping (Service.State) -> Service.State
    ) {
        self.service = service
        self.partition = partition
        self.stored = stored
        recorder = WriteRecorder(Service.migrations, ignoring: ignored)
    }

    /// Each with each of the others.
    /// - Parameters:
    ///   - state: all that was ever decided, beginning with nothing.
    ///   - trace: what repeats it.
    public mutating func pair(_ steps: [Step], on state: Service.State, _ trace: @autoclosure () -> String) throws {
        let rows = try recorder.record { try service.save(state, in: $0) }.filter { $0.value.kind != .delete }
        let before = stored(state)
        let decided = try steps.map { try decide($0, before, rows) }
        for one in steps.indices {
            for other in steps.indices where other > one && mayMeet(steps[one], steps[other]) {
                pairs += 1
                guard !decided[one].writes.isEmpty, !decided[other].writes.isEmpty else { continue }
                changing += 1
                let orders = orders(decided[one].writes, decided[other].writes)
                guard !orders.isEmpty else {
                    meeting += 1
                    continue
                }
                try check(orders, steps[one], decided[one], steps[other], decided[other], rows, trace)
            }
        }
    }

    /// Two of one id meet in the inbox.
    private func mayMeet(_ one: Step, _ other: Step) -> Bool {
        guard one.context.command != other.context.command else { return false }
        return partition(one).map { $0 != partition(other) } ?? true
    }

    private mutating func check(
        _ orders: [Order], _ one: Step, _ first: Decided, _ other: Step, _ second: Decided, _ rows: Writes,
        _ trace: () -> String
    ) throws {
        var behind: [Decision] = []
        for order in orders {
            let (step, alone, before) = order == .asGiven ? (other, second, first) : (one, first, second)
            let decision = service.decide(step.command, stored(before.state), step.context)
            if try isSame(decision, alone.decision, before.state, rows) { return }
            if behind.isEmpty { ordered += 1 }
            behind.append(decision)
        }
        guard found.count < 5 else { return }
        found.append(
            """
            \(trace())
              A: \(one.command)
              B: \(other.command)
              A alone: \(first.decision)
              B alone: \(second.decision)
              behind the other, \(orders): \(behind)
            """)
    }

    /// Whether both tell the same, and leave the same rows.
    private func isSame(
        _ one: Decision, _ other: Decision, _ state: Service.State, _ rows: Writes
    ) throws -> Bool {
        guard one.tellsTheSame(as: other) else { return false }
        if one.changes == other.changes { return true }
        let (left, right) = (try writes(one, state), try writes(other, state))
        func values(_ writes: Writes, _ key: WriteRecorder.Key) -> [SQLValue] {
            (writes[key] ?? rows[key])?.values ?? []
        }
        return Set(left.keys).union(right.keys).allSatisfy { values(left, $0) == values(right, $0) }
    }

    private func writes(_ decision: Decision, _ state: Service.State) throws -> Writes {
        var next = state
        decision.changes.forEach { next.apply($0) }
        return try recorder.record { try service.save(next, in: $0) }
    }

    /// Says what was looked at.
    public func report() {
        print(
            """
            \(Service.name): \(pairs) pairs, \(changing) of two that change something, \(meeting) of two that meet, \
            \(ordered) with an order, \(found.count) found
            """)
    }

    private func decide(_ step: Step, _ state: Service.State, _ rows: Writes) throws -> Decided {
        let decision = service.decide(step.command, state, step.context)
        var next = state
        decision.changes.forEach { next.apply($0) }
        // What is not there is not deleted, and what is there is not inserted where that is no error.
        let writes = try recorder.record { try service.save(next, in: $0) }.filter { key, write in
            switch write.kind {
            case .delete: rows[key] != nil
            case .insertIfAbsent: rows[key] == nil
            case .insert, .upsert, .update: true
            }
        }
        return (decision, next, writes)
    }

    private enum Order { case asGiven, theOtherWayRound }

    /// The orders in which both can be committed: none when they write a common row. One that inserts or updates brings
    /// a row back that the other has just deleted, and PostgreSQL says nothing (`TableTests`).
    private func orders(_ one: Writes, _ other: Writes) -> [Order] {
        var orders: [Order] = [.asGiven, .theOtherWayRound]
        for (key, write) in one {
            guard let otherWrite = other[key] else { continue }
            switch (write.kind, otherWrite.kind) {
            case (.delete, .upsert): orders.removeAll { $0 == .theOtherWayRound }
            case (.upsert, .delete): orders.removeAll { $0 == .asGiven }
            default: return []
            }
        }
        return orders
    }
}

extension Decision where Change: Hashable {
    /// Whether anybody is told the same by both.
    func tellsTheSame(as other: Decision) -> Bool {
        outcome.isSame(as: other.outcome)
            && events.map { AnyHashable($0) } == other.events.map { AnyHashable($0) }
            && forwards.map(\.id) == other.forwards.map(\.id)
            && forwards.map(\.expiry) == other.forwards.map(\.expiry)
            && forwards.map { AnyHashable($0.command) } == other.forwards.map { AnyHashable($0.command) }
            && due.map(\.id) == other.due.map(\.id)
            && due.map { AnyHashable($0.command) } == other.due.map { AnyHashable($0.command) }
            && settlements.elementsEqual(other.settlements) {
                $0.command == $1.command && $0.outcome.isSame(as: $1.outcome)
            }
    }
}

extension Outcome {
    func isSame(as other: Outcome) -> Bool {
        switch (self, other) {
        case (.succeeded(let one), .succeeded(let other)): Self.told(one) == Self.told(other)
        case (.rejected(let one), .rejected(let other)): one == other
        case (.pending(let one), .pending(let other)):
            one.map { AnyHashable($0) } == other.map { AnyHashable($0) }
        case (.expired, .expired), (.begun, .begun), (.noted, .noted): true
        default: false
        }
    }

    /// L158: a list's element that is refused is refused in both orders, and which of several conflicts it is told of is that of
    /// the moment. Found with TEST_SEED=11212329459899982163.
    private static func told(_ result: any CommandResult) -> AnyHashable {
        guard var list = result as? ImportResult else { return AnyHashable(result) }
        for place in list.results.indices where list.results[place].outcome == .conflict {
            (list.results[place].reason, list.results[place].type) = (nil, nil)
        }
        return AnyHashable(list)
    }
}
