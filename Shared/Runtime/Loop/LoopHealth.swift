// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

public import Observability
import Synchronization

/// How the loop is doing, written by its thread and read by the health server.
public final class LoopHealth: Sendable {
    private struct State {
        var lastTurn = ContinuousClock.now
        var hasStarted = false
        var hasJoined = false
        var databaseProblem: String?
        var brokerProblem: String?
    }

    private let state = Mutex(State())
    /// A loop that has not turned for this long is stuck: it turns at least four times a second, also while it waits for the
    /// database.
    private static let stuckAfter = Duration.seconds(60)

    public init() {}

    func turned() { state.withLock { $0.lastTurn = .now } }
    func started() { state.withLock { $0.hasStarted = true } }
    func joined() { state.withLock { $0.hasJoined = true } }
    func database(_ problem: String?) { state.withLock { $0.databaseProblem = problem } }
    func broker(_ problem: String?) { state.withLock { $0.brokerProblem = problem } }

    public var report: HealthReport {
        state.withLock { state in
            let isTurning = ContinuousClock.now - state.lastTurn < Self.stuckAfter
            return HealthReport(
                live: [HealthCheck(name: "loop", ok: isTurning, detail: isTurning ? nil : "the loop is stuck")],
                ready: [
                    HealthCheck(
                        name: "started", ok: state.hasStarted, detail: state.hasStarted ? nil : "still starting"),
                    HealthCheck(
                        name: "group", ok: state.hasJoined, detail: state.hasJoined ? nil : "not yet in the group"),
                    HealthCheck(name: "database", ok: state.databaseProblem == nil, detail: state.databaseProblem),
                    HealthCheck(name: "broker", ok: state.brokerProblem == nil, detail: state.brokerProblem),
                ])
        }
    }
}
