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
    let personReads: PersonReads
    let database: any SQLDatabase
    let apps: AppsSource
    let topics: Topics
    let watch: BrokerWatch
    let seams: LoopSeams
    let trial: Trial
    var clock: LoopClock
    var writer: MessageWriter
    let vault: OutboxVault
    let pastTimes: PastTimes
    /// `nil` when nobody is told of any.
    let spans: RecordSpans?
    let publisher: Publisher
    var reader: InboundReader<Service>
    var partitions: Partitions
    /// The Kafka cluster that the groups were joined in.
    var cluster: String
    var membership = Membership.outside
    var store: StoreConnection
    let migrator = Service.migrator
    var housekeeping: Housekeeping
    private(set) var consumers: Consumers?

    /// - Precondition: storage is migrated and the topics exist (`LoopStart`).
    package init(service: Service, start: LoopStart) throws {
        self.service = service
        configuration = start.configuration
        partitions = Partitions(batchSize: start.configuration.batchSize)
        health = start.health
        signals = start.signals
        logger = start.logger
        let metrics = LoopMetrics(
            service: Service.name, client: configuration.kafka.clientID, messaging: configuration.messagingMetrics)
        self.metrics = metrics
        personReads = PersonReads(service: Service.name, logger: start.logger)
        database = start.database
        apps = start.apps
        topics = configuration.topics
        watch = start.watch
        seams = start.seams
        trial = start.trial
        clock = start.seams.clock
        housekeeping = Housekeeping(start.configuration, now: start.seams.clock.now())
        cluster = start.watch.cluster ?? ""
        var writer = MessageWriter(service: Service.name, topics: topics, keys: configuration.keys)
        writer.know(start.apps.apps)
        self.writer = writer
        vault = OutboxVault(configuration.keys)
        pastTimes = start.pastTimes
        spans = start.tracer.map { RecordSpans(service: Service.name, tracer: $0) }
        store = StoreConnection(secrets: DerivedSecrets(configuration.keys))
        let hooks = Publisher.Hooks(
            makeProducer: start.seams.makeProducer,
            substitute: { [writer, clock] in writer.undeliverable($0, $1, now: clock.time()) },
            gaveUp: metrics.gaveUp, reported: metrics.messaging.map { $0.sent }, now: clock.now, pause: clock.pause)
        publisher = try Publisher(logger: logger, hooks: hooks)
        reader = InboundReader(
            authenticator: configuration.authenticator(for: start.apps.apps), topics: topics, spans: spans)
    }

    // MARK: The loop

    /// Runs until ``LoopSignals/stop()``: then what was decided is published and saved, and the groups are left.
    /// - Throws: `ConfigurationProblem`, `SchemaMismatch` or `AppsFile.Problem` when this replica must not run.
    func run() throws {
        defer { watch.stop() }
        while try step() {}
    }

    /// Joins the groups where that is to be done, then one turn; at the end leaves them.
    /// - Returns: whether there is more to do.
    /// - Throws: as ``run()``.
    package func step() throws -> Bool {
        if membership.isLeaving || signals.isStopping, let consumers {
            leave(consumers)
        }
        if case .unfit(let problem) = membership { throw problem }
        guard !signals.isStopping else {
            publisher.close(timeout: .zero)
            database.close()
            consumers = nil
            return false
        }
        if case .outside = membership { try join() }
        health.turned()
        if let consumers { try turn(consumers) }
        return true
    }

    /// One turn. A turn in which nothing is to be done ends with a wait.
    private func turn(_ consumers: Consumers) throws {
        claimAgain(consumers)
        workOffOwed(consumers)
        lookAtLanes(consumers)
        let records = poll(consumers)
        if !records.isEmpty { decide(records) }
        note(publisher.poll(timeout: .zero))
        try housekeep(consumers)
    }

    private func join() throws {
        cluster = watch.cluster ?? cluster
        let consumers =
            self.consumers
            ?? Consumers(
                sources, replayingUntil: configuration.replayUntil, decisionTimes: { [self] in decisionTimes($0) },
                make: { [self, seams] in try seams.makeConsumer($0, self) }, wait: seams.waitForRecords, now: clock.now)
        self.consumers = consumers
        try consumers.join()
        membership = .member
    }

    var sources: [Consumers.Source] {
        Service.sources.map { source in
            Consumers.Source(
                topic: source.topic(topics, of: Service.name), group: source.group(topics, of: Service.name),
                mayGather: Service.eventsCommute && source.isOfEvents)
        } + appSources
    }

    /// The commands topics that apps have for themselves.
    var appSources: [Consumers.Source] {
        apps.apps.ownersOfCommandsTopics.map { app in
            Consumers.Source(
                topic: topics.commands(Service.name, of: app), group: topics.group(Service.name, of: app))
        }
    }

    /// What was decided is published as far as it goes, then the groups are left, which calls `partitionsRevoked`.
    private func leave(_ consumers: Consumers) {
        if signals.isStopping { drain(for: configuration.drainTimeout) }
        saveProgress()
        if signals.isStopping {
            partitions.committed(consumers.commit(partitions.uncommitted, wait: true))
        }
        if !consumers.leave(timeout: .seconds(10), turned: health.turned) {
            logger.notice("a consumer did not close in time", metadata: ["event": "group.close-slow"])
        }
        forget(Array(partitions.all.keys))
        switch membership {
        case .outside, .unfit: break
        case .member: membership = .outside
        case .leaving:
            sleep(milliseconds: 100...1000)
            membership = .outside
        }
    }

    private func poll(_ consumers: Consumers) -> [KafkaRecord] {
        do {
            let records = try consumers.poll(
                limit: configuration.batchSize, timeout: pollTimeout, mayReplay: { mayReplay })
            // A service that may not read is not to be ready until somebody has time to look.
            if let unreadable = consumers.unreadable { health.unreadable(unreadable) }
            noteDisplaced(consumers)
            metrics.messaging?.consumed(records, group: consumers.group(of:))
            let taken = partitions.take(records)
            pause(taken.paused, consumers)
            return taken.decided
        } catch  where error.code == KafkaError.Code.fencedInstance {
            membership = .unfit(
                ConfigurationProblem(
                    KafkaConfiguration.instanceVariable,
                    "is '\(configuration.kafka.groupInstance ?? "")', and another replica of the \(Service.name) service has the "
                        + "same; give each replica its own, or leave it out"))
            return []
        } catch {
            logger.error(
                "a consumer failed for good; joining again", metadata: ["event": "group.failed", "error": "\(error)"])
            health.group(error.words)
            membership.leave()
            return []
        }
    }

    /// No record of a replay overtakes one that has to wait.
    private var mayReplay: Bool {
        partitions.all.values.allSatisfy { $0.state == .live && $0.held.isEmpty }
    }

    /// Short while deliveries are awaited, so that they are noted soon; none while there is something owed to hand over.
    /// A record ends the wait at once.
    private var pollTimeout: Duration {
        if hasOwedToHandOver { return .milliseconds(1) }
        return publisher.pending > 0 ? .milliseconds(20) : .milliseconds(250)
    }

    // MARK: Deciding

    /// Decides records until each is concluded, this replica is told that it no longer owns them, or it is stopped.
    /// Nothing is skipped: what is not concluded stands in the log, and the progress table still points to it.
    func decide(_ records: [KafkaRecord]) {
        let needsCare = partitions.positions.contains { $0.isSuspicious || $0.isDoubtful }
        if needsCare { decideCarefully(records) } else { run(records) }
    }

    /// Conflicts in a row after which a lone record counts as one that cannot be decided. Many: in a conflict somebody
    /// else got on, so under contention it is a matter of seconds, and only a defect conflicts for ever.
    private static var maxConflicts: Int { 200 }

    func run(_ records: [KafkaRecord]) {
        var conflicts = 0
        while true {
            health.turned()
            let mine = records.filter(partitions.mayDecide)
            guard !mine.isEmpty, !signals.isStopping, !membership.isLeaving else { return }
            do {
                try commit(mine, mine.map(read))
                return
            } catch let error as StorageError where error.kind == .conflict && conflicts < Self.maxConflicts {
                metrics.conflicted()
                if error.isLockTimeout {
                    store.heldUp()
                    heldUp(error)
                } else {
                    // Waiting for a lock that somebody keeps says nothing about the records, however often it is done.
                    conflicts += 1
                }
                if conflicts == 3, mine.count > 1 { return halve(mine) }
                sleep(milliseconds: 0...(1 << min(conflicts, 6)))
            } catch let error as StorageError where error.kind == .unavailable {
                // Whether a commit happened is not known: the next claim finds out, and says where to read on.
                doubt(Set(mine.map(\.topicPartition)))
                return waitForDatabase(error)
            } catch let error as StorageError where error.isFenced {
                return rejoin(because: error)
            } catch {
                if mine.count > 1 { return halve(mine) }
                return deadLetter(mine[0], "\(error)", attempts: 1)
            }
        }
    }

    /// A record of a log that followed another one, and that is older than what is remembered of that one, may have been
    /// decided there.
    private func read(_ record: KafkaRecord) -> Inbound<Service.Command> {
        let isTooOldToTell =
            partitions.position(record.topicPartition).map { position in
                position.claim.incarnation > 0 && record.timestampMs >= 0
                    && record.timestampMs < position.claim.forgottenBefore
            } ?? false
        let time = pastTimes.time(of: record, now: clock.time())
        return reader.read(record, now: time, isTooOldToTell: isTooOldToTell)
    }

    /// When records of the past were decided once, in milliseconds; `nil` of those of which nothing tells.
    private func decisionTimes(_ records: [KafkaRecord]) -> [Int64?] {
        guard !records.isEmpty else { return [] }
        let commands = records.map { read($0).accepted }
        let decider = batchDecider(at: clock.time())
        let past =
            persist { try database.transaction { try decider.past(of: commands.compactMap { $0 }, in: $0) } }
            ?? pastTimes
        return commands.map { command in
            guard let command, command.keyOnce != nil, past.isPast(command.record) else { return nil }
            let time = past.decidedAt(command)
            if time == nil { housekeeping.untold += 1 }
            return time
        }
    }

    private func halve(_ records: [KafkaRecord]) {
        let middle = records.count / 2
        run(Array(records[..<middle]))
        run(Array(records[middle...]))
    }

    /// One batch: progress, decisions, state and inbox in one transaction, then publish.
    ///
    /// Progress comes first: a replica that lost its partitions learns it from the epoch, before it runs into the rows
    /// that its successor wrote.
    func commit(_ records: [KafkaRecord], _ batch: [Inbound<Service.Command>]) throws {
        let started = clock.now()
        let updates = partitions.updates(for: records, now: clock.time().milliseconds)
        let published = partitions.unremoved(updates.map(\.place))
        let (entries, secrets) = try database.transaction { transaction in
            try Progress.advance(updates, in: transaction)
            // What is seen from here on was decided before, so its time is no later: a replay decides in that order.
            let now = clock.time()
            let decider = batchDecider(at: now)
            let entries = try decider.decide(batch, in: transaction, now: now)
            try Outbox.remove(published, in: transaction)
            return (entries, decider.secrets)
        }
        partitions.removed(published)
        store.committed()
        health.writes(store.obstacle)
        partitions.decided(updates)
        personReads.note(batch, entries, secrets)
        publish(entries, updates)
        let duration = clock.now() - started
        if let spans { tell(spans, records, batch, entries, took: duration) }
        let counts = metrics.committed(entries, of: batch.map { $0.accepted?.app.id }, duration: duration)
        housekeeping.tally.add(counts, took: duration)
        metrics.messaging?.processed(entries, took: duration) { [consumers] in consumers?.group(of: $0) }
    }

    func batchDecider(at now: Timestamp) -> BatchDecider<Service> {
        BatchDecider(
            service: service, reader: reader, writer: writer.at(now), vault: vault, secrets: store.secrets,
            cluster: cluster, incarnations: partitions.incarnations, number: store.decider,
            retention: configuration.journalRetention, pastTimes: pastTimes)
    }

    private func publish(_ entries: [Entry], _ updates: [ProgressUpdate]) {
        var messages: [TopicPartition: [OutboxRecord]] = [:]
        // Records of one partition come together, so a run of them is looked up once.
        var rest = entries[...]
        while let place = rest.first?.place {
            let run = rest.prefix { $0.place == place }
            messages[place, default: []].append(contentsOf: run.lazy.flatMap(\.messages))
            rest = rest[run.endIndex...]
        }
        for update in updates {
            let partition = TopicPartition(topic: update.topic, partition: update.partition)
            guard let lane = partitions.lane(partition) else { continue }
            publisher.publish(messages[partition] ?? [], in: lane, through: update.nextOffset - 1)
        }
    }

    /// Takes in how far publishing has come.
    func note(_ through: [Lane: Int64]) {
        partitions.published(through)
        if !through.isEmpty { saveSetAside() }
    }

    /// Runs storage work until it is done.
    /// - Returns: `nil` when this replica was fenced or stopped instead.
    func persist<Value>(_ work: () throws -> Value) -> Value? {
        while !signals.isStopping, !membership.isLeaving {
            health.turned()
            do {
                return try work()
            } catch let error as StorageError where error.kind == .conflict {
                heldUp(error)
                sleep(milliseconds: 1...20)
            } catch let error as StorageError where error.isFenced {
                rejoin(because: error)
            } catch let error as StorageError where error.kind == .unavailable {
                waitForDatabase(error)
            } catch {
                logger.error(
                    "storage refused a statement; this is a defect",
                    metadata: ["event": "storage.defect", "error": "\(error)"])
                health.writes(error as? StorageError ?? StorageError(kind: .invalid, message: "\(error)"))
                clock.sleep(.seconds(1))
            }
        }
        return nil
    }

    /// Waits a while after the database failed, longer each time until something was committed, and reports not ready
    /// meanwhile. A database that answers and does not write is as good as none. Being thrown out of the group for it is
    /// harmless: the epoch says so. Whether a commit happened is told by the claim that follows a new connection.
    func waitForDatabase(_ error: StorageError) {
        metrics.waited()
        logger.debug("the database is unavailable, waiting", metadata: ["error": "\(error)"])
        health.writes(error)
        health.turned()
        clock.sleep(store.failed(using: &clock.random))
    }
}

extension ServiceLoop {
    /// When somebody keeps a lock that is needed: a look may find who, and on what.
    func heldUp(_ error: StorageError) {
        guard error.isLockTimeout else { return }
        store.waitedInVain(error, now: clock.now())
        try? lookForObstacles()
        health.writes(store.obstacle)
    }
}

extension StorageError {
    var isFenced: Bool { if case .fenced = kind { true } else { false } }
}
