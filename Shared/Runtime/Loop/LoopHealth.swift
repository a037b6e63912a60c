// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Glibc
import Messaging
public import Observability
import Storage
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
        /// How long the group has been in a rebalance that does not end: that is a cause, not a consequence.
        var groupHangs: Duration?
        /// Whether the group refuses this member: a cause, too.
        var isRefusedByGroup = false
        var store = "the database"
        var kafka = ""
        /// What is wrong with looking into the store, and with writing into it: the one says nothing of the other.
        var reading: Sight = .notYet("not asked yet")
        var writing: Sight = .well
        var asksStoreSince: ContinuousClock.Instant?
        /// How long the last answer of the store, and of the broker, was waited for.
        var storeTook = Duration.zero
        var brokerTook = Duration.zero
        var broker: Sight = .notYet("not asked yet")
        /// What is wrong with topics, with reading from them, and with writing to them.
        var topics: String?
        var unreadable: String?
        var writeRights: Sight = .notYet("not asked yet what may be written")
        var publishing: String?
        var partitions: String?
        var apps: String?
    }

    /// What is known of something outside.
    fileprivate enum Sight {
        /// Nothing; it keeps the process from being ready, and is no failure.
        case notYet(String)
        case well
        case problem(String)

        init(_ problem: String?) { self = problem.map { .problem($0) } ?? .well }

        var problem: String? {
            switch self {
            case .notYet(let text), .problem(let text): text
            case .well: nil
            }
        }

        /// What is not known yet is no failure that is worth a line.
        var patience: Duration { if case .notYet = self { .seconds(20) } else { .zero } }

        /// Whoever has begun has asked.
        var asked: Sight { if case .notYet = self { .well } else { self } }
    }

    private let state: Mutex<State>
    /// How far the loop is behind.
    let lag = LagBoard()

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
            $0.reading = $0.reading.asked
            $0.broker = $0.broker.asked
        }
    }
    /// - Parameter hangs: for how long a rebalance that does not end has lasted.
    /// - Parameter isRefused: this member has no right to be one.
    func group(_ problem: String?, hangs: Duration? = nil, isRefused: Bool = false) {
        state.withLock {
            $0.isRefusedByGroup = isRefused
            $0.group = problem
            $0.groupHangs = hangs
        }
    }
    /// Which store it is, for people.
    func store(is name: String) { state.withLock { $0.store = name } }
    /// Which Kafka it is, for people.
    func kafka(is servers: String) { state.withLock { $0.kafka = "Kafka at \(servers)" } }
    /// At the start: its tables are made or changed from now on, or somebody else who does so is waited for.
    func migrates() {
        state.withLock {
            if $0.hasStarted { return }
            // What waits for others has no end of its own by which a server that has fallen silent would be told.
            $0.reading = .notYet(
                "its tables are being migrated, a lock that this waits for is not free, or it has stopped answering")
        }
    }
    /// What came of looking into the store.
    func reads(_ problem: StorageError?) { state.withLock { $0.reading = Sight(problem?.cause) } }
    /// What came of writing into it.
    func writes(_ problem: StorageError?) {
        state.withLock {
            $0.writing = Sight(problem?.cause)
            if problem == nil { $0.reading = .well }
        }
    }
    /// An answer of the store is waited for from now on, or not any more.
    func asksStore(_ begins: Bool) {
        state.withLock { state in
            if let since = state.asksStoreSince, !begins { state.storeTook = since.duration(to: .now) }
            state.asksStoreSince = begins ? .now : nil
        }
    }
    /// - Parameter took: for how long an answer was waited for.
    func broker(_ problem: String?, took: Duration = .zero) {
        state.withLock { state in
            state.broker = Sight(problem)
            state.brokerTook = took
        }
    }
    /// A question to the broker failed. Whoever does not answer says nothing of topics.
    func kafka(failed error: KafkaError, took: Duration) {
        if error.failure != nil { broker(error.words, took: took) } else { topics(error.words) }
    }
    func topics(_ problem: String?) { state.withLock { $0.topics = problem } }
    func unreadable(_ problem: String?) { state.withLock { $0.unreadable = problem } }
    /// What came of asking what may be written.
    func unwritable(_ problem: String?) { state.withLock { $0.writeRights = Sight(problem) } }
    func publishing(_ problem: String?) { state.withLock { $0.publishing = problem } }
    func partitions(_ problem: String?) { state.withLock { $0.partitions = problem } }
    func apps(_ problem: String?) { state.withLock { $0.apps = problem } }

    public var report: HealthReport { HealthReport(of: [self]) }

    /// What keeps each part from being well, by the names that `/livez` and `/readyz` show.
    fileprivate static let live: [Check] = [
        // Before it has started it may migrate a large store, or wait for who does: a restart would begin that anew.
        Check("loop") { !$0.hasStarted || .now - $0.lastTurn < $0.stuckAfter ? nil : "the loop is stuck" }
    ]
    fileprivate static let ready: [Check] = [
        Check("started", patience: .seconds(30), after: ["database", "broker", "topics"]) {
            $0.hasStarted ? nil : "still starting"
        },
        // A group that lost all its members for want of a broker is together again after up to two sessions of 6 s; one whose
        // rebalance does not end is known as such after 21 s.
        Check(
            "group", after: ["database", "broker", "topics"], { $0.atKafka($0.group) },
            patienceNow: {
                ($0.groupHangs != nil || $0.isRefusedByGroup) && $0.broker.problem == nil ? .zero : .seconds(24)
            },
            hasLasted: { $0.groupHangs ?? .zero }),
        Check(
            "database", \.database, patienceNow: { $0.silence == nil ? $0.reading.patience : .zero },
            hasLasted: { $0.silence ?? $0.storeTook }),
        Check("broker", \.broker.problem, patienceNow: { $0.broker.patience }, hasLasted: \.brokerTook),
        // What was known of topics before the broker went.
        Check(
            "topics", after: ["broker"],
            {
                let problems = [$0.topics, $0.unreadable, $0.writeRights.problem].compactMap { $0 }
                return problems.isEmpty ? nil : $0.atKafka(problems.joined(separator: "; "))
            },
            patienceNow: {
                // It is asked last.
                $0.topics ?? $0.unreadable == nil && $0.writeRights.patience > .zero ? .seconds(30) : .zero
            }),
        Check("publishing", patience: .seconds(10), after: ["broker", "topics"], { $0.atKafka($0.publishing) }),
        Check("partitions", patience: .seconds(10), after: ["database", "broker", "topics"], \.partitions),
        Check("turns", patience: .seconds(10), after: ["database"]) { state in
            let lasts = ContinuousClock.now - state.lastTurn
            // Whoever waits for the store does not stand still for a reason of its own.
            if !state.hasStarted || state.asksStoreSince != nil || lasts < state.waitsAfter { return nil }
            return "the loop has stood still for \(lasts.inWords)"
        },
        Check("apps", isRequired: false) { $0.apps.map(HealthCheck.refusedApps) },
    ]

    fileprivate struct Check: Sendable {
        var name: String
        var isRequired = true
        var after: [String]
        var problem: @Sendable (State) -> String?
        var patience: @Sendable (State) -> Duration
        var hasLasted: @Sendable (State) -> Duration

        init(
            _ name: String, isRequired: Bool = true, patience: Duration = .zero, after: [String] = [],
            _ problem: @escaping @Sendable (State) -> String?, patienceNow: (@Sendable (State) -> Duration)? = nil,
            hasLasted: @escaping @Sendable (State) -> Duration = { _ in .zero }
        ) {
            self.name = name
            self.isRequired = isRequired
            self.after = after
            self.problem = problem
            self.patience = patienceNow ?? { _ in patience }
            self.hasLasted = hasLasted
        }
    }
    fileprivate var now: State { state.withLock { $0 } }
}

extension LoopHealth.State {
    fileprivate var database: String? {
        let silence = silence.map { "no answer for \($0.inWords)" }
        let problem: String? =
            switch reading {
            // That it keeps silent is more than that nothing is known.
            case .notYet(let text): writing.problem ?? silence ?? text
            case .problem, .well: writing.problem ?? reading.problem ?? silence
            }
        return problem.map { "\(store): \($0)" }
    }

    /// What a broker said, with where it was asked; a failure to reach one names it itself.
    fileprivate func atKafka(_ problem: String?) -> String? {
        problem.map { kafka.isEmpty || $0.contains("Kafka at ") ? $0 : "\(kafka): \($0)" }
    }

    /// For how long an answer of the store is overdue.
    fileprivate var silence: Duration? {
        guard let since = asksStoreSince, .now - since >= waitsAfter else { return nil }
        return .now - since
    }
}

extension HealthReport {
    /// What a process that runs these loops says: of each part the first problem that a loop has.
    init(of loops: [LoopHealth]) {
        let states = loops.map(\.now)
        func check(_ check: LoopHealth.Check) -> HealthCheck {
            let failing = states.first { check.problem($0) != nil }
            return HealthCheck(
                name: check.name, ok: failing == nil, detail: failing.flatMap(check.problem),
                isRequired: check.isRequired, patience: failing.map(check.patience) ?? .zero,
                hasLasted: failing.map(check.hasLasted) ?? .zero, after: check.after)
        }
        self.init(live: LoopHealth.live.map(check), ready: LoopHealth.ready.map(check))
    }
}

extension HealthWatch.Backlog {
    /// What waits for these loops together; `nil` where that is not known of each.
    init?(of loops: [LoopHealth]) {
        let all = loops.map(\.lag.backlog)
        guard !all.contains(nil) else { return nil }
        let known = all.compactMap { $0 }
        self.init(count: known.map(\.count).reduce(0, +), oldest: known.compactMap(\.oldest).max())
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
