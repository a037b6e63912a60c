// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Foundation
import Logging
import Messaging
import Storage

/// The loop that every replica of a service runs (docs/loop.md): consume, decode, decide, commit, publish, mark. One
/// thread, blocking calls, nothing shared: the only ways in are ``LoopSignals``.
package final class ServiceLoop<Service: CommandService> {
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
    let seams: LoopSeams
    let trial: Trial
    var clock: LoopClock
    var writer: MessageWriter
    let vault: OutboxVault
    /// With the salt of the store that the partitions were claimed in.
    var secrets: DerivedSecrets
    let publisher: Publisher
    var reader: InboundReader<Service>
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
    let migrator = Service.migrator
    /// A later version has migrated the store: this replica has to go.
    var mismatch: SchemaMismatch?

    private(set) var consumers: Consumers?
    /// Whether the groups were joined and not left since.
    private var isMember = false
    var lastHousekeeping: ContinuousClock.Instant
    var lastReload: ContinuousClock.Instant
    var lastPrune: ContinuousClock.Instant
    var lastCommit: ContinuousClock.Instant
    var hasMoreToPrune = false
    /// The oldest generation of the inbox on its way out.
    var sweep: InboxSweep?
    /// A generation has gone, and perhaps sagas whose commands it knew have not.
    var hasOldSagas = false
    /// The number of the apps file and the version by which is decided, see ``Deciders``.
    var deciderNumber: Int64 = 0
    /// Since when this SQLite replica has had less than all partitions.
    var partialSince: ContinuousClock.Instant?
    var wasComplete = false
    /// Whether this replica has decided in its store before, which it looks up when it shares the topics.
    var hasBegun = false

    /// - Precondition: storage is migrated and the topics exist (`LoopStart`).
    package init(service: Service, start: LoopStart) throws {
        self.service = service
        configuration = start.configuration
        ownership = Ownership(batchSize: start.configuration.batchSize)
        health = start.health
        signals = start.signals
        logger = start.logger
        let metrics = LoopMetrics(service: Service.name, client: configuration.kafka.clientID)
        self.metrics = metrics
        database = start.database
        apps = start.apps
        topics = configuration.topics
        watch = start.watch
        seams = start.seams
        trial = start.trial
        clock = start.seams.clock
        let now = start.seams.clock.now()
        (lastHousekeeping, lastReload, lastPrune, lastCommit) = (now, now, now, now)
        cluster = start.watch.cluster ?? ""
        var writer = MessageWriter(service: Service.name, topics: topics, keys: configuration.keys)
        writer.appReplyTopics = Set(configuration.replyTopicSpecs(of: start.apps.apps).map(\.name))
        self.writer = writer
        vault = OutboxVault(configuration.keys)
        secrets = DerivedSecrets(configuration.keys)
        let hooks = Publisher.Hooks(
            makeProducer: start.seams.makeProducer,
            substitute: { [writer, clock] in writer.undeliverable($0, $1, now: clock.time()) },
            gaveUp: metrics.gaveUp, now: clock.now, pause: clock.pause)
        publisher = try Publisher(logger: logger, hooks: hooks)
        reader = InboundReader(authenticator: configuration.authenticator(for: start.apps.apps), topics: topics)
    }

    // MARK: The loop

    /// Runs until ``LoopSignals/stop()``: then what was decided is published and saved, and the groups are left.
    /// - Throws: `ConfigurationProblem` or `SchemaMismatch` when this replica must not run.
    func run() throws {
        defer { watch.stop() }
        while try step() {}
    }

    /// Joins the groups where that is to be done, then one turn; at the end leaves them.
    /// - Returns: whether there is more to do.
    /// - Throws: as ``run()``.
    package func step() throws -> Bool {
        if isMember, signals.isStopping || mustRejoin || mismatch != nil, let consumers {
            isMember = false
            leave(consumers)
        }
        if let mismatch { throw mismatch }
        guard !signals.isStopping else {
            publisher.close(timeout: .zero)
            database.close()
            consumers = nil
            return false
        }
        if !isMember {
            try join()
            isMember = true
        }
        health.turned()
        if let consumers { try turn(consumers) }
        return true
    }

    /// One turn. A turn in which nothing is to be done ends with a wait.
    private func turn(_ consumers: Consumers) throws {
        claimAgain(consumers)
        workOffOwed()
        goOn(consumers)
        let records = poll(consumers)
        if !records.isEmpty { decide(records) }
        note(publisher.poll(timeout: .zero))
        try housekeep(consumers)
    }

    private func join() throws {
        mustRejoin = false
        cluster = watch.cluster ?? cluster
        let consumers =
            self.consumers
            ?? Consumers(
                sources, make: { [self, seams] in try seams.makeConsumer($0, self) }, wait: seams.waitForRecords)
        self.consumers = consumers
        try consumers.join()
    }

    private var sources: [Consumers.Source] {
        Service.sources.map { source in
            Consumers.Source(
                topic: source.topic(topics, of: Service.name), group: source.group(topics, of: Service.name))
        }
    }

    /// What was decided is published as far as it goes, then the groups are left, which calls `partitionsRevoked`.
    private func leave(_ consumers: Consumers) {
        if signals.isStopping { drain(for: configuration.drainTimeout) }
        saveProgress()
        if signals.isStopping {
            consumers.commit(ownership.uncommitted, wait: true)
            ownership.committed()
        }
        if !consumers.leave(timeout: .seconds(10)) { logger.warning("a consumer did not close in time") }
        forget(Array(ownership.partitions.keys))
        // What was assigned and never claimed is somebody else's now.
        (unclaimed, displaced, held, paused) = ([], [:], [:], [])
        if mustRejoin { sleep(milliseconds: 100...1000) }
    }

    private func poll(_ consumers: Consumers) -> [KafkaRecord] {
        do {
            let records = try consumers.poll(limit: configuration.batchSize, timeout: pollTimeout)
            noteDisplaced(consumers, records)
            let wanted = records.filter { ownership.wants($0) && displaced[$0.topicPartition] == nil }
            let waiting = Set(ownership.partitions.keys.filter { !isLive($0) })
            guard !waiting.isEmpty else { return wanted }
            for record in wanted where waiting.contains(record.topicPartition) { hold(record) }
            return wanted.filter { !waiting.contains($0.topicPartition) }
        } catch {
            logger.error("a consumer failed for good; joining again", metadata: ["error": "\(error)"])
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
}
