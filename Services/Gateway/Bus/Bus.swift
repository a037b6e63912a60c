// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Foundation
import Logging
import Messaging
import Metrics
import Observability
import Runtime
import ServiceLifecycle
import Synchronization

/// Commands out, replies back. The request handlers call ``ask(_:acceptsPending:)``; two threads of its own do the
/// Kafka work, one for each client, so that neither waits for the other (docs/decisions/0008-gateway-replies.md).
final class Bus: CommandBus, Service, Sendable {
    let health: BusHealth

    private let configuration: GatewayConfiguration
    private let writer: CommandWriter
    private let queue = SendQueue()
    private let waiters: Waiters
    private let currentApps: Mutex<AppDirectory>
    /// The commands topics that apps have for themselves, and that are there.
    private let appTopics = Mutex<Set<String>>([])
    /// When a service's silence was last said.
    private let silent = Mutex<[String: ContinuousClock.Instant]>([:])
    /// `nil` when nobody is told of spans.
    private let tracer: OTLPTracer?
    private let logger: Logger

    init(configuration: GatewayConfiguration, apps: AppDirectory, tracer: OTLPTracer? = nil, logger: Logger) {
        self.tracer = tracer
        self.configuration = configuration
        self.logger = logger
        health = BusHealth(
            configuration.service.kafka.bootstrapServers,
            replyTopic: configuration.service.topics.gatewayReplies)
        writer = CommandWriter(topics: configuration.service.topics, keys: configuration.service.keys)
        waiters = Waiters(limit: configuration.maxInFlight, timeout: configuration.replyTimeout)
        currentApps = Mutex(apps)
    }

    /// The version of the apps file that is in force.
    var apps: AppDirectory { currentApps.withLock { $0 } }

    /// Requests that wait for a reply.
    var inFlight: Int { waiters.count }

    var load: Double { Double(waiters.count) / Double(configuration.maxInFlight) }

    /// Sends a command and waits for its reply, at most until the reply time-out.
    /// - Parameter acceptsPending: whether "pending" is an answer; otherwise the final reply is waited for.
    /// - Throws: `CommandTooLarge`, `UnknownCommand`.
    func ask(_ command: OutgoingCommand, acceptsPending: Bool) async throws -> Answer {
        guard let address = health.askable else { return .unavailable }
        var command = command
        let span = tracer.map { CommandSpan(&command, $0) }
        let record = try writer.record(
            command, ownKey: address.ownKey, appTopics: appTopics.withLock { $0 }, now: .now)
        let service = CommandType.service(of: command.type.name) ?? ""
        let question = Waiters.Question(
            id: command.id,
            owner: Shares.Owner(
                app: command.caller.app.id, services: command.others.union([service]), isOneOfSeveral: apps.count > 1),
            digest: command.digest, acceptsPending: acceptsPending,
            isDryRun: command.isDryRun)
        let item = SendQueue.Item(id: command.id, record: record, span: span)
        let answer = await waiters.wait(for: question, until: .now + configuration.replyTimeout) { queue.add(item) }
        if case .timedOut = answer { noAnswer(of: service, to: command.id) }
        if case .full = answer {
            Counter(label: "gateway_full", dimensions: [("service", service)]).increment()
        }
        return answer
    }

    /// Said at most once in ten seconds of a service: the metric counts them all.
    private func noAnswer(of service: String, to id: CommandID) {
        Counter(label: "gateway_reply_timeouts", dimensions: [("service", service)]).increment()
        let now = ContinuousClock.now
        let isNew = silent.withLock { silent in
            if let last = silent[service], last.duration(to: now) < .seconds(10) { return false }
            silent[service] = now
            return true
        }
        // Who hears no replies must not call others silent.
        guard isNew, health.hearsReplies else { return }
        logger.warning(
            "the \(service) service has not answered within \(configuration.replyTimeout.inSeconds) s",
            metadata: ["event": "service.silent", "service": "\(service)", "ref": "\(id)"])
    }

    func run() async throws {
        try await withTaskCancellationHandler {
            try await withGracefulShutdownHandler {
                async let sender: Void = onThread("gateway-send") { [self] in
                    try SendThread(
                        configuration: configuration.service, queue: queue, waiters: waiters, health: health,
                        logger: logger, publishApps: { apps in self.currentApps.withLock { $0 = apps } },
                        publishTopics: { topics in self.appTopics.withLock { $0 = topics } }
                    ).run()
                }
                async let tail: Void = onThread("gateway-replies") { [self] in
                    ReplyThread(
                        configuration: configuration.service, topic: writer.replyTopic, waiters: waiters,
                        health: health, logger: logger
                    ).run()
                }
                _ = try await (sender, tail)
            } onGracefulShutdown: {
                self.stop()
            }
        } onCancel: {
            self.stop()
        }
        waiters.failAll()
    }

    private func stop() {
        health.stop()
        queue.wake()
    }

    private func onThread(_ name: String, _ work: @escaping @Sendable () throws -> Void) async throws {
        try await withCheckedThrowingContinuation { continuation in
            let thread = Thread { continuation.resume(with: Result(catching: work)) }
            thread.name = name
            thread.start()
        }
    }
}

/// How the two Kafka threads are doing, written by them and read by the health server and the request handlers.
final class BusHealth: Sendable {
    private struct State {
        /// Where replies come, while they are read.
        var address: ReplyAddress?
        /// How many partitions the reply topic had when the broker was last asked, since it is read.
        var partitions: Int?
        /// Whether a signal has come, and whether nothing is asked any more.
        var isDraining = false
        var isStopping = false
        var isEnding: Bool { isDraining || isStopping }
        var brokerProblem: String? = "not asked yet"
        var hasAskedBroker = false
        /// How long the last answer of the broker was waited for.
        var brokerTook = Duration.zero
        var appsProblem: String?
        /// Why the reply topic cannot be had, why it cannot be read, and what may not be written, though a broker answers.
        var topicProblem: String?
        var unreadable: String?
        var unwritable: String?
        /// How often in a row the reply topic was not there.
        var misses = 0
        /// Probes in a row that found no broker.
        var failedProbes = 0
        var lastTurns: [Thread: ContinuousClock.Instant] = [.sender: .now, .tail: .now]
    }

    enum Thread: String { case sender, tail }

    /// Both threads turn several times a second; a start waits at most half of this for a broker in one go.
    private static let stuckAfter = Duration.seconds(60)

    private let state = Mutex(State())
    private let kafka: String
    private let replyTopic: String

    /// - Parameter servers: where the brokers are.
    init(_ servers: String, replyTopic: String) {
        kafka = "Kafka at \(servers)"
        self.replyTopic = replyTopic
    }

    func turned(_ thread: Thread) { state.withLock { $0.lastTurns[thread] = .now } }
    /// Who distributes requests is told that this gateway goes. What comes all the same is still asked.
    func drain() { state.withLock { $0.isDraining = true } }
    func stop() { state.withLock { $0.isStopping = true } }

    /// Replies are read there from now on; `nil`: nowhere.
    func tailing(_ address: ReplyAddress?) {
        state.withLock { state in
            state.address = address
            state.partitions = nil
            state.unreadable = nil
            if address != nil { state.topicProblem = nil }
        }
    }

    /// Whether the reply topic was not there when the broker was last asked.
    var isMissing: Bool { state.withLock { $0.misses > 0 } }

    /// How many partitions the reply topic has now, as the broker says. One that is missing for a moment is none yet: that is
    /// what a rolling restart of a cluster looks like.
    func replyTopic(has partitions: Int) {
        state.withLock { state in
            state.misses = partitions == 0 ? state.misses + 1 : 0
            if state.misses != 1 { state.partitions = partitions }
        }
    }

    /// Why replies are not read, though they may come; `nil` when they are.
    func replies(_ problem: String?) { state.withLock { $0.unreadable = problem } }

    /// What may not be written.
    func commands(_ problem: String?) { state.withLock { $0.unwritable = problem } }

    /// Whether a reply that came would have been seen, as far as is known: only then is a service silent.
    var hearsReplies: Bool {
        state.withLock { $0.address != nil && $0.misses == 0 && $0.unreadable == nil && $0.brokerProblem == nil }
    }

    /// Whether the reply topic has another number of partitions than the one that is read, or is gone: its keys mean others
    /// then.
    var hasMoved: Bool {
        state.withLock { state in
            guard let address = state.address, let partitions = state.partitions else { return false }
            return partitions != address.count
        }
    }

    /// The replies cannot be read yet: for want of a broker, or of the topic.
    func cannotRead(_ error: any Error) {
        let known = error as? KafkaError
        if let known, known.failure != nil { return broker(known.words) }
        let isMissing = [KafkaError.Code.unknownTopic, KafkaError.Code.unknownTopicOrPartition].contains(known?.code)
        let problem = isMissing ? known?.unusable(replyTopic) : known?.words
        state.withLock { $0.topicProblem = problem ?? "\(error)" }
    }

    /// Why the apps file as it is now is not in force.
    func apps(_ problem: String?) { state.withLock { $0.appsProblem = problem } }

    /// - Parameter took: for how long an answer was waited for.
    func broker(_ problem: String?, took: Duration = .zero) {
        state.withLock { state in
            state.hasAskedBroker = true
            state.brokerTook = took
            state.brokerProblem = problem
            state.failedProbes = problem == nil ? 0 : state.failedProbes + 1
        }
    }
    var isStopping: Bool { state.withLock(\.isStopping) }

    /// Whether a signal has come: whoever keeps a connection is sent to another gateway.
    var isEnding: Bool { state.withLock(\.isEnding) }

    /// Where the reply to a command that is sent now will be seen; `nil` when none may be sent. Without a broker, requests
    /// are refused at once instead of piling up in the producer; one probe that was late does not count.
    var askable: ReplyAddress? {
        state.withLock { $0.isStopping || $0.failedProbes >= 2 || $0.unreadable != nil ? nil : $0.address }
    }

    var report: HealthReport {
        state.withLock { state in
            let now = ContinuousClock.now
            let topics = [state.topicProblem, state.unreadable, state.unwritable].compactMap { $0 }
            let stuck = state.lastTurns.filter { now - $0.value > Self.stuckAfter }.map(\.key.rawValue).sorted()
            return HealthReport(
                live: [
                    HealthCheck(
                        name: "threads", ok: stuck.isEmpty,
                        detail: stuck.isEmpty ? nil : "stuck: \(stuck.joined(separator: ", "))")
                ],
                ready: [
                    HealthCheck(
                        name: "replies", ok: state.address != nil,
                        detail: state.address == nil ? "the reply topic \(replyTopic) is not read yet" : nil,
                        patience: .seconds(10),
                        after: ["broker", "topics"]),
                    HealthCheck(
                        name: "broker", ok: state.brokerProblem == nil, detail: state.brokerProblem,
                        patience: state.hasAskedBroker ? .zero : .seconds(30), hasLasted: state.brokerTook),
                    HealthCheck(
                        name: "topics", ok: topics.isEmpty, detail: topics.first.map { "\(kafka): \($0)" },
                        after: ["broker"]),
                    HealthCheck(
                        name: "running", ok: !state.isEnding, detail: state.isEnding ? "stopping" : nil, patience: nil),
                    HealthCheck(
                        name: "apps", ok: state.appsProblem == nil,
                        detail: state.appsProblem.map(HealthCheck.refusedApps), isRequired: false),
                ])
        }
    }
}
