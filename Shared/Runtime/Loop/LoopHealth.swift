// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Glibc
public import Observability
import Synchronization

/// How the loop is doing now, written by its thread and the ``BrokerWatch``, read by the health server. What is over
/// is forgotten: every part is told anew again and again, with or without traffic.
public final class LoopHealth: Sendable {
    fileprivate struct State {
        let stuckAfter: Duration
        let waitsAfter: Duration
        var lastTurn = ContinuousClock.now
        var hasStarted = false
        var group: String? = "not yet in the group"
        var database: String?
        var broker: String?
        var publishing: String?
        var partitions: String?
    }

    private let state: Mutex<State>

    /// - Parameters:
    ///   - stuckAfter: a loop that has begun and has not turned for this long is stuck: it turns at least four times a
    ///     second, also while it waits for the database.
    ///   - waitsAfter: one that waits this long in one turn answers nobody. Below the 10 s in which readiness tells the
    ///     truth.
    public init(stuckAfter: Duration = .seconds(60), waitsAfter: Duration = .seconds(7)) {
        state = Mutex(State(stuckAfter: stuckAfter, waitsAfter: waitsAfter))
    }

    func turned() { state.withLock { $0.lastTurn = .now } }
    func started() {
        state.withLock {
            $0.lastTurn = .now
            $0.hasStarted = true
        }
    }
    func group(_ problem: String?) { state.withLock { $0.group = problem } }
    func database(_ problem: String?) { state.withLock { $0.database = problem } }
    func broker(_ problem: String?) { state.withLock { $0.broker = problem } }
    func publishing(_ problem: String?) { state.withLock { $0.publishing = problem } }
    func partitions(_ problem: String?) { state.withLock { $0.partitions = problem } }

    public var report: HealthReport { HealthReport(of: [self]) }

    /// What keeps each part from being well, by the names that `/healthz` and `/readyz` show.
    fileprivate static let live: [Check] = [
        // Before it has started it may migrate a large store, or wait for who does: a restart would begin that anew.
        ("loop", { !$0.hasStarted || .now - $0.lastTurn < $0.stuckAfter ? nil : "the loop is stuck" })
    ]
    fileprivate static let ready: [Check] = [
        ("started", { $0.hasStarted ? nil : "still starting" }), ("group", \.group), ("database", \.database),
        ("broker", \.broker), ("publishing", \.publishing), ("partitions", \.partitions),
        ("turns", { .now - $0.lastTurn < $0.waitsAfter ? nil : "the loop waits: does the database answer?" }),
    ]
    fileprivate typealias Check = (name: String, problem: @Sendable (State) -> String?)
    fileprivate var now: State { state.withLock { $0 } }
}

extension HealthReport {
    /// What a process that runs these loops says: of each part the first problem that a loop has.
    init(of loops: [LoopHealth]) {
        let states = loops.map(\.now)
        func check(_ check: LoopHealth.Check) -> HealthCheck {
            let problem = states.lazy.compactMap(check.problem).first
            return HealthCheck(name: check.name, ok: problem == nil, detail: problem)
        }
        self.init(live: LoopHealth.live.map(check), ready: LoopHealth.ready.map(check))
    }
}

/// What other threads may tell the loop.
public final class LoopSignals: Sendable {
    private let stopping = Atomic(false)
    private let stoppingAtOnce = Atomic(false)

    public init() {}

    /// Asks the loop to finish its batch, publish, leave the group and end.
    public func stop() { stopping.store(true, ordering: .releasing) }

    /// Asks it not to wait for anything any more.
    public func stopAtOnce() {
        stoppingAtOnce.store(true, ordering: .releasing)
        stop()
    }

    var isStopping: Bool { stopping.load(ordering: .acquiring) }
    var isStoppingAtOnce: Bool { stoppingAtOnce.load(ordering: .acquiring) }

    /// Blocks the loop's thread, at most until it is asked to stop.
    func sleep(_ duration: Duration) {
        let deadline = ContinuousClock.now + duration
        while !isStopping {
            let left = deadline - .now
            guard left > .zero else { return }
            Self.pause(min(left, .milliseconds(50)))
        }
    }

    /// Blocks the thread for some milliseconds.
    static func pause(_ duration: Duration) { usleep(UInt32(duration.inMicroseconds)) }
}
