// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Foundation
import Logging
import Messaging
import Storage

/// The loop that every replica of a service runs (docs/loop.md): consume, decode, decide, commit, publish, mark. One
/// thread, blocking calls, nothing shared: the only ways in are ``LoopSignals``.
final class ServiceLoop<Service: CommandService> {
    let service: Service
    let configuration: ServiceConfiguration
    let health: LoopHealth
    let signals: LoopSignals
    let logger: Logger
    let metrics: LoopMetrics
    let database: any SQLDatabase
    let apps: AppsSource
    let topics: Topics
    let watch: BrokerWatch
    private(set) var writer: MessageWriter
    let vault: OutboxVault
    /// With the salt of the store that the partitions were claimed in.
    var secrets: DerivedSecrets
    let publisher: Publisher
    var reader: IntakeReader<Service>
    var ownership: Ownership
    /// The Kafka cluster that the groups were joined in.
    var cluster: String
    /// Set when the groups must be joined anew: this replica was fenced, or cannot know what it owns.
    var mustRejoin = false
    /// Partitions that are assigned and have to be claimed, for the first time or again.
    var unclaimed: Set<TopicPartition> = []
    /// Partitions that have to be claimed again because their log is not what it was.
    var displaced: [TopicPartition: Displacement] = [:]

    /// What became of a log.
    enum Displacement {
        /// Its topic was missing for a moment.
        case vanished
        /// It does not have the offset to read next.
        case outOfRange
        /// It has another record at the place of the last one decided.
        case replaced
    }
    /// Records that came while nothing new of their partition may be decided. Their partitions are paused.
    var held: [TopicPartition: [KafkaRecord]] = [:]
    var paused: Set<TopicPartition> = []
    /// How long to wait when the database fails again although it answered; starts anew with a decided batch.
    var databasePause = Backoff(from: .milliseconds(50), upTo: .seconds(3))
    /// The last batch could not be decided for the database's sake. That it answers something else says nothing then.
    var isDecidingFailing = false
    /// The database connection that everything owned was claimed on.
    var claimedConnection = 0

    private(set) var inputs: Inputs?
    private var lastHousekeeping = ContinuousClock.now
    private var lastReload = ContinuousClock.now
    private var lastPrune = ContinuousClock.now
    private var lastCommit = ContinuousClock.now
    private var hasMoreToPrune = false
    /// Since when this SQLite replica has had less than all partitions.
    private var partialSince: ContinuousClock.Instant?
    private var wasComplete = false

    /// - Precondition: storage is migrated and the topics exist (`LoopStart`).
    init(service: Service, start: LoopStart) throws {
        self.service = service
        configuration = start.configuration
        ownership = Ownership(batchSize: start.configuration.batchSize)
        health = start.health
        signals = start.signals
        logger = start.logger
        let metrics = LoopMetrics(service: Service.name)
        self.metrics = metrics
        database = start.database
        apps = start.apps
        topics = configuration.topics
        watch = start.watch
        cluster = start.watch.cluster ?? ""
        var writer = MessageWriter(service: Service.name, topics: topics, keys: configuration.keys)
        writer.appReplyTopics = Set(configuration.replyTopicSpecs(of: start.apps.apps).map(\.name))
        self.writer = writer
        vault = OutboxVault(configuration.keys)
        secrets = DerivedSecrets(configuration.keys)
        let kafka = configuration.kafka
        let logger = start.logger
        let hooks = Publisher.Hooks(
            makeProducer: {
                try KafkaProducer(configuration: kafka, logger: logger, maximumBlock: .zero, batching: $0)
            },
            substitute: { [writer] in writer.undeliverable($0, $1) }, gaveUp: metrics.gaveUp)
        publisher = try Publisher(logger: logger, hooks: hooks)
        reader = IntakeReader(authenticator: configuration.authenticator(for: start.apps.apps), topics: topics)
    }

    // MARK: The loop

    /// Runs until ``LoopSignals/stop()``: then what was decided is published and saved, and the groups are left.
    /// - Throws: `ConfigurationProblem` when this replica must not run.
    func run() throws {
        defer { watch.stop() }
        while !signals.isStopping {
            let inputs = try join()
            while !signals.isStopping, !mustRejoin {
                health.turned()
                try turn(inputs)
            }
            leave(inputs)
        }
        publisher.close(timeout: .zero)
        database.close()
    }

    /// One turn. A turn in which nothing is to be done ends with a wait.
    private func turn(_ inputs: Inputs) throws {
        claimAgain(inputs)
        workOffOwed()
        goOn(inputs)
        let records = poll(inputs)
        if !records.isEmpty { decide(records) }
        note(publisher.poll(timeout: .zero))
        try housekeep(inputs)
    }

    private func join() throws -> Inputs {
        mustRejoin = false
        cluster = watch.cluster ?? cluster
        let inputs: Inputs
        if let known = self.inputs {
            inputs = known
        } else {
            inputs = try Inputs(inputTopics) { [self, configuration, logger] input, wakeUp in
                try KafkaConsumer(
                    configuration: configuration.kafka, groupID: input.group, topics: [input.topic], handler: self,
                    wakeUp: wakeUp, logger: logger)
            }
            self.inputs = inputs
        }
        try inputs.join()
        return inputs
    }

    private var inputTopics: [Inputs.Input] {
        Service.sources.map { source in
            Inputs.Input(topic: source.topic(topics, of: Service.name), group: source.group(topics, of: Service.name))
        }
    }

    /// What was decided is published as far as it goes, then the groups are left, which calls `partitionsRevoked`.
    private func leave(_ inputs: Inputs) {
        if signals.isStopping { drain(for: configuration.drainTimeout) }
        saveProgress()
        if signals.isStopping {
            inputs.commit(ownership.uncommitted, wait: true)
            ownership.committed()
        }
        if !inputs.leave(timeout: .seconds(10)) { logger.warning("a consumer did not close in time") }
        forget(Array(ownership.partitions.keys))
        // What was assigned and never claimed is somebody else's now.
        (unclaimed, displaced, held, paused) = ([], [:], [:], [])
        if mustRejoin { signals.sleep(.milliseconds(Int.random(in: 100...1000))) }
    }

    private func poll(_ inputs: Inputs) -> [KafkaRecord] {
        do {
            let records = try inputs.poll(limit: configuration.batchSize, timeout: pollTimeout)
            noteDisplaced(inputs, records)
            let wanted = records.filter { ownership.wants($0) && displaced[$0.topicPartition] == nil }
            let waiting = Set(ownership.partitions.keys.filter { !isLive($0) })
            guard !waiting.isEmpty else { return wanted }
            for record in wanted where waiting.contains(record.topicPartition) { hold(record) }
            return wanted.filter { !waiting.contains($0.topicPartition) }
        } catch {
            logger.error("a consumer failed for good, joining anew", metadata: ["error": "\(error)"])
            health.group("\(error)")
            mustRejoin = true
            return []
        }
    }

    /// Short while deliveries are awaited, so that they are noted soon; none while there is something owed to hand over.
    /// A record ends the wait at once.
    private var pollTimeout: Duration {
        if hasOwedToHandOver { return .milliseconds(1) }
        return publisher.pending > 0 ? .milliseconds(20) : .milliseconds(250)
    }

    // MARK: Now and then

    private func housekeep(_ inputs: Inputs) throws {
        let now = ContinuousClock.now
        if hasMoreToPrune { prune() }
        guard now - lastHousekeeping >= .seconds(1) else { return }
        lastHousekeeping = now
        metrics.outbox(publisher.pending)
        health.publishing(publisher.problem)
        health.group(inputs.problem)
        saveProgress()
        if let joined = watch.cluster, joined != cluster {
            logger.warning(
                "Kafka is another cluster than before", metadata: ["before": "\(cluster)", "now": "\(joined)"])
            mustRejoin = true
        }
        if now - lastCommit >= .seconds(30) {
            lastCommit = now
            inputs.commit(ownership.uncommitted, wait: false)
            ownership.committed()
        }
        try checkCompleteness(inputs, now)
        if isKeeper { sendDue() }
        if now - lastReload >= .seconds(2) {
            lastReload = now
            if apps.reload() {
                reader = IntakeReader(authenticator: configuration.authenticator(for: apps.apps), topics: topics)
                let appTopics = configuration.replyTopicSpecs(of: apps.apps)
                writer.appReplyTopics = Set(appTopics.map(\.name))
                watch.want(appTopics: appTopics)
            }
        }
        if now - lastPrune >= .seconds(5) {
            lastPrune = now
            prune()
        }
    }

    /// One replica does what is to be done once: the owner of the first partition of the commands topic.
    private var isKeeper: Bool {
        ownership[TopicPartition(topic: topics.commands(Service.name), partition: 0)] != nil
    }

    /// Two replicas with a SQLite file each would keep two truths. Whoever has not got all partitions decides nothing
    /// that it has just been given, and leaves: the newcomer soon, so that the other one has them back.
    private func checkCompleteness(_ inputs: Inputs, _ now: ContinuousClock.Instant) throws {
        guard case .sqlite = configuration.database else { return }
        guard inputs.problem == nil else { return }
        if hasAllPartitions {
            partialSince = nil
            wasComplete = true
            return
        }
        let since = partialSince ?? now
        partialSince = since
        guard now - since > (wasComplete ? .seconds(40) : .seconds(3)) else { return }
        throw ConfigurationProblem(
            "DATABASE_URL",
            "is not set, and another replica of the \(Service.name) service reads the same topics. With SQLite there can be "
                + "one; give all of them the URL of one PostgreSQL database, or stop the other one")
    }

    /// Whether everything that the service reads is assigned to this replica.
    private var hasAllPartitions: Bool {
        guard let inputs else { return false }
        return inputs.all.allSatisfy { inputs.assigned($0.topic) >= watch.partitions(of: $0.topic) ?? 1 }
    }

    /// Whether records of a partition may be decided now: nothing is owed of it, its lane has room, and no replica with
    /// another store reads along.
    func isLive(_ partition: TopicPartition) -> Bool {
        guard let owned = ownership[partition], owned.owed.isEmpty, !unclaimed.contains(partition),
            displaced[partition] == nil, let lane = ownership.lane(partition), !publisher.isFull(lane)
        else { return false }
        if case .sqlite = configuration.database, !wasComplete, !hasAllPartitions { return false }
        return true
    }

    /// Writes down how far publishing came. What cannot be written now is written later.
    func saveProgress() {
        let unsaved = ownership.unsaved
        guard !unsaved.isEmpty else { return }
        do {
            try database.transaction { try Storage.Progress.markPublished(unsaved, in: $0) }
            ownership.saved(unsaved)
            databaseWorks()
        } catch {
            note(error)
        }
    }

    /// Sends the service the commands whose time has come, and asks again for what was not answered. A crash in between
    /// loses nothing: they stay due.
    private func sendDue() {
        guard publisher.problem == nil, publisher.unbound < configuration.batchSize else { return }
        let now = Timestamp.now
        do {
            if Service.hasDueCommands {
                let due = try database.transaction {
                    try service.due(now: now, limit: configuration.batchSize, apps: apps.apps, in: $0)
                }
                publisher.publish(try due.map { try writer.due($0, now: now) })
            }
            let forwards = try database.transaction {
                try Forwards.due(now: now.milliseconds, limit: configuration.batchSize, in: $0)
            }
            if !forwards.isEmpty {
                metrics.askedAgain(forwards.count)
                publisher.publish(try forwards.flatMap { try vault.open($0.message).map(writer.signedAgain) })
            }
        } catch {
            note(error)
        }
    }

    /// Small steps between batches. While there is more to prune, every turn takes twice as much as a batch can add, so
    /// the journal cannot outgrow it.
    private func prune() {
        let limit = 2 * configuration.batchSize
        let retention = configuration.journalRetention.inMilliseconds
        let held = ownership.partitions.values.map(\.claim.held).sorted {
            ($0.topic, $0.partition) < ($1.topic, $1.partition)
        }
        guard !held.isEmpty else { return }
        // What a saga's own log knows to be old. An idle log makes nothing old.
        let horizon = (ownership.partitions.values.map(\.logTime).max() ?? -1) - retention
        do {
            let count = try database.transaction {
                let count = try Journal.prune(partitions: held, retention: retention, limit: limit, in: $0)
                if count > 0, horizon > 0 { _ = try Sagas.prune(olderThan: horizon, limit: limit, in: $0) }
                return count
            }
            hasMoreToPrune = count >= limit
            databaseWorks()
        } catch {
            hasMoreToPrune = false
            note(error)
        }
    }

    /// An error of the work that goes on beside deciding: the next turn tries again.
    func note(_ error: any Error) {
        guard let error = error as? StorageError else {
            logger.error("housekeeping failed", metadata: ["error": "\(error)"])
            return
        }
        switch error.kind {
        case .conflict: break
        case .fenced: rejoin(because: error)
        case .unavailable: health.database(error.description)
        case .invalid: logger.error("housekeeping failed", metadata: ["error": "\(error)"])
        }
    }

    /// Something was written or looked up.
    func databaseWorks() {
        if !isDecidingFailing { health.database(nil) }
    }

    func rejoin(because error: StorageError) {
        metrics.fenced()
        logger.warning("letting go of all partitions and joining again", metadata: ["cause": "\(error)"])
        mustRejoin = true
    }
}
