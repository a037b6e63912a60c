// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Dispatch
import Logging
import Messaging
import Metrics
import Runtime
import Synchronization

/// Owns the producer. Also the place for what must not block a request: re-reading the apps file, asking whether the
/// broker is there. Everything in it is confined to one thread.
final class SendThread {
    private let configuration: ServiceConfiguration
    private let queue: SendQueue
    private let waiters: Waiters
    private let health: BusHealth
    private let publishApps: (AppDirectory) -> Void
    private let publishTopics: (Set<String>) -> Void
    private let logger: Logger
    private let apps: AppsSource
    private var producer: KafkaProducer
    private let admin: KafkaAdmin
    /// Messages on their way, by token.
    private var sent: [Int: (id: CommandID, span: CommandSpan?)] = [:]
    /// `nil` where nobody asks for metrics of OpenTelemetry's names.
    private let metrics: MessagingMetrics?
    /// When messages on their way were handed over, where that is measured.
    private var since: [Int: ContinuousClock.Instant] = [:]
    private var nextToken = 0
    private var nextReload = ContinuousClock.now
    private var nextProbe = ContinuousClock.now
    private var rights = WriteRights()
    private var keys = KeyExpiry()
    private var nextRenewal = ContinuousClock.now
    private var status = GatewayStatus()
    /// When it was last said that the producer failed.
    private var saidFailed: ContinuousClock.Instant?

    /// Half of the time within which a change of the apps file has to be in force.
    private static let reloadEvery = Duration.seconds(5)
    private static let probeEvery = Duration.seconds(5)
    private static let renewEvery = Duration.seconds(1)

    init(
        configuration: ServiceConfiguration, queue: SendQueue, waiters: Waiters, health: BusHealth, logger: Logger,
        publishApps: @escaping (AppDirectory) -> Void, publishTopics: @escaping (Set<String>) -> Void
    ) throws {
        self.configuration = configuration
        self.queue = queue
        self.waiters = waiters
        self.health = health
        self.logger = logger
        self.publishApps = publishApps
        self.publishTopics = publishTopics
        metrics = configuration.messagingMetrics
        apps = try AppsSource(
            path: configuration.appsPath, reading: .gateway, keys: configuration.keys,
            weakSecrets: configuration.weakSecrets, logger: logger)
        producer = try Self.makeProducer(configuration, logger)
        admin = try KafkaAdmin(configuration: configuration.kafka, logger: logger)
    }

    /// Runs until the health says stop and everything that was taken has been handed over.
    func run() {
        while !health.isStopping {
            turn()
            health.turned(.sender)
        }
        turn()
        settle(producer.close(timeout: configuration.drainTimeout))
        admin.close(timeout: .seconds(1))
    }

    private func turn() {
        // With messages on their way, look for their reports soon: a failure must reach the one who waits.
        for item in queue.take(timeout: .milliseconds(producer.outstanding > 0 ? 20 : 250)) { send(item) }
        settle(producer.poll(timeout: .zero))
        if producer.fatalError != nil { renewProducer() }
        let now = ContinuousClock.now
        if now >= nextReload {
            nextReload = now + Self.reloadEvery
            if apps.reload() { publishApps(apps.apps) }
            health.apps(apps.problem)
            keys.tell(apps.apps, now: .now, logger)
            Gauge(label: "identity_apps_file_valid", dimensions: [("service", "gateway")])
                .record(apps.problem == nil ? 1 : 0)
        }
        if now >= nextProbe {
            probe()
            // A topic that is missing for a moment is there again soon, or gone.
            nextProbe = .now + (health.isMissing ? .seconds(1) : Self.probeEvery)
        }
        if let record = status.due(now, configuration, health.report, apps, waiting: waiters.count) {
            // Nobody waits for it, and the next one says it anew.
            try? hand(record)
        }
    }

    private func send(_ item: SendQueue.Item) {
        do {
            try hand(item.record)
            sent[nextToken] = (item.id, item.span)
        } catch {
            item.span?.end(topic: item.record.topic, error)
            failed(item.id, error)
        }
    }

    private func hand(_ record: Record) throws(KafkaError) {
        nextToken += 1
        let now = metrics == nil ? nil : ContinuousClock.now
        try producer.send(record, token: nextToken)
        if let now { since[nextToken] = now }
    }

    private func settle(_ reports: [DeliveryReport]) {
        if let metrics, !reports.isEmpty {
            let now = ContinuousClock.now
            metrics.sent(
                reports.compactMap { report in
                    since.removeValue(forKey: report.token).map {
                        SendAttempt(topic: report.topicPartition.topic, report.error, took: $0.duration(to: now))
                    }
                })
        }
        for report in reports { settle(report) }
    }

    private func settle(_ report: DeliveryReport) {
        guard let (id, span) = sent.removeValue(forKey: report.token) else { return }
        span?.end(topic: report.topicPartition.topic, report.error)
        if let error = report.error { failed(id, error) }
    }

    private func failed(_ id: CommandID, _ error: KafkaError) {
        logger.warning(
            "Kafka did not accept a command",
            metadata: ["event": "command.not-sent", "ref": "\(id)", "error": "\(error.words)"])
        waiters.fail(id)
    }

    private func renewProducer() {
        let now = ContinuousClock.now
        guard now >= nextRenewal else { return }
        nextRenewal = now + Self.renewEvery
        let cause = producer.fatalError.map { "\($0)" } ?? "unknown"
        settle(producer.close(timeout: .zero))
        do {
            producer = try Self.makeProducer(configuration, logger)
            // One that fails again and again is told of once a minute.
            let isNews = saidFailed.map { $0.duration(to: now) >= .seconds(60) } ?? true
            if isNews { saidFailed = now }
            logger.log(
                level: isNews ? .warning : .debug, "the Kafka producer failed permanently and was replaced",
                metadata: ["event": "producer.failed", "error": "\(cause)"])
        } catch {
            logger.error(
                "the Kafka producer failed permanently and could not be replaced",
                metadata: ["event": "producer.none", "error": "\(error)"])
        }
    }

    /// Whether the broker answers, for the readiness probe; and whether the reply topic is still as it was.
    private func probe() {
        let started = ContinuousClock.now
        do {
            let topics = try admin.existingTopics(timeout: .seconds(2))
            health.broker(nil)
            health.replyTopic(has: topics[configuration.topics.gatewayReplies] ?? 0)
            publishTopics(appTopics.intersection(topics.keys))
            status.hasTopic = topics[configuration.topics.status] != nil
            try lookAtRights(Set(topics.keys))
        } catch {
            health.broker(error.words, took: started.duration(to: .now))
        }
    }

    /// The commands topics that apps have for themselves, whether services have made them or not.
    private var appTopics: Set<String> {
        let owners = apps.apps.ownersOfCommandsTopics
        return Set(Topics.services.flatMap { service in owners.map { configuration.topics.commands(service, of: $0) } })
    }

    /// Whether commands may be written.
    private func lookAtRights(_ existing: Set<String>) throws(KafkaError) {
        let topics = Set(Topics.services.map { configuration.topics.commands($0) }).union(appTopics)
        let hidden = try hidden(topics.subtracting(existing))
        try admin.watch(topics: topics.intersection(existing))
        try rights.look(at: topics.intersection(existing), admin, timeout: .seconds(2))
        let problems = [hidden, rights.problem].compactMap { $0 }
        health.commands(problems.isEmpty ? nil : problems.joined(separator: "; "))
    }

    /// Those of these topics that there are and that may not be seen: a list of all topics leaves them out. The embedded
    /// broker would make what it is asked for.
    private func hidden(_ missing: Set<String>) throws(KafkaError) -> String? {
        guard !missing.isEmpty, try !admin.isEmbedded(timeout: .seconds(2)) else { return nil }
        try admin.watch(topics: missing)
        let hidden = try admin.topicStates(timeout: .seconds(2))
            .filter { $0.value.error?.code == KafkaError.Code.topicAuthorizationFailed }.keys.sorted()
        return hidden.isEmpty ? nil : KafkaError.noRight("see (Describe)", topics: hidden)
    }

    /// A request would rather be told at once than wait behind a full queue.
    private static func makeProducer(
        _ configuration: ServiceConfiguration, _ logger: Logger
    ) throws(KafkaConfigurationError) -> KafkaProducer {
        try KafkaProducer(configuration: configuration.kafka, logger: logger, maximumBlock: .zero)
    }
}

/// Commands on their way from the request handlers to the thread that owns the producer.
final class SendQueue: Sendable {
    struct Item: Sendable {
        var id: CommandID
        var record: Record
        var span: CommandSpan?
    }

    private let items = Mutex<[Item]>([])
    private let filled = DispatchSemaphore(value: 0)

    func add(_ item: Item) {
        let wasEmpty = items.withLock { items in
            items.append(item)
            return items.count == 1
        }
        if wasEmpty { filled.signal() }
    }

    /// Everything that is there, after waiting at most `timeout` for the first. Empty also when woken.
    func take(timeout: DispatchTimeInterval) -> [Item] {
        _ = filled.wait(timeout: .now() + timeout)
        return items.withLock { items in
            defer { items = [] }
            return items
        }
    }

    func wake() { filled.signal() }
}
