// SPDX-License-Identifier: Apache-2.0

import Observability
import Synchronization

/// How the two Kafka threads are doing, written by them and read by the health server and the request handlers.
final class BusHealth: Sendable {
    private struct State {
        var isTailing = false
        var isStopping = false
        var brokerProblem: String? = "not connected yet"
        /// Probes in a row that found no broker.
        var failedProbes = 0
        var lastTurns: [Thread: ContinuousClock.Instant] = [.sender: .now, .tail: .now]
    }

    enum Thread: String { case sender, tail }

    /// Both threads turn several times a second; a start waits at most half of this for a broker in one go.
    private static let stuckAfter = Duration.seconds(60)

    private let state = Mutex(State())

    func turned(_ thread: Thread) { state.withLock { $0.lastTurns[thread] = .now } }
    func tailing() { state.withLock { $0.isTailing = true } }
    func stop() { state.withLock { $0.isStopping = true } }

    func broker(_ problem: String?) {
        state.withLock { state in
            state.brokerProblem = problem
            state.failedProbes = problem == nil ? 0 : state.failedProbes + 1
        }
    }
    var isStopping: Bool { state.withLock(\.isStopping) }

    /// Whether a command may be sent: its reply will be seen. Without a broker, requests are refused at once instead of
    /// piling up in the producer; one probe that was late does not count.
    var canAsk: Bool { state.withLock { $0.isTailing && !$0.isStopping && $0.failedProbes < 2 } }

    var report: HealthReport {
        state.withLock { state in
            let now = ContinuousClock.now
            let stuck = state.lastTurns.filter { now - $0.value > Self.stuckAfter }.map(\.key.rawValue).sorted()
            return HealthReport(
                live: [
                    HealthCheck(
                        name: "threads", ok: stuck.isEmpty,
                        detail: stuck.isEmpty ? nil : "stuck: \(stuck.joined(separator: ", "))")
                ],
                ready: [
                    HealthCheck(
                        name: "replies", ok: state.isTailing,
                        detail: state.isTailing ? nil : "the reply topic is not read yet"),
                    HealthCheck(name: "broker", ok: state.brokerProblem == nil, detail: state.brokerProblem),
                    HealthCheck(
                        name: "running", ok: !state.isStopping, detail: state.isStopping ? "stopping" : nil),
                ])
        }
    }
}
