// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

public import Contracts
import Crypto
import Foundation
import Logging
import Messaging
import Storage

/// The loop that every replica of a service runs (architecture.md section 3): consume, decode, decide, commit,
/// publish, mark. One thread, blocking calls, nothing shared: the only ways in are ``LoopSignals``.
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
    let cluster: String
    let writer: MessageWriter
    let vault: OutboxVault
    let secrets: DerivedSecrets
    let publisher: Publisher
    var reader: IntakeReader<Service>
    var ownership: Ownership
    /// Set when the group must be joined anew: this replica was fenced, or cannot know what it owns.
    var mustRejoin = false

    private var consumer: KafkaConsumer?
    var currentConsumer: KafkaConsumer? { consumer }
    private var lastHousekeeping = ContinuousClock.now
    private var lastReload = ContinuousClock.now
    private var lastPrune = ContinuousClock.now
    private var hasMoreToPrune = false

    /// Messages that may wait for delivery before deciding pauses.
    private static var maxPending: Int { 20_000 }

    /// - Precondition: storage is migrated and the topics exist (`LoopStart`).
    init(service: Service, start: LoopStart) throws {
        self.service = service
        configuration = start.configuration
        ownership = Ownership(batchSize: start.configuration.batchSize)
        health = start.health
        signals = start.signals
        logger = start.logger
        metrics = LoopMetrics(service: Service.name)
        database = start.database
        apps = start.apps
        topics = configuration.topics
        cluster = start.clusterID
        let writer = MessageWriter(service: Service.name, topics: topics, internalKey: configuration.internalKey)
        self.writer = writer
        vault = OutboxVault(internalKey: configuration.internalKey)
        secrets = configuration.internalKey.map { DerivedSecrets(internalKey: $0) } ?? .none
        let kafka = configuration.kafka
        let logger = start.logger
        publisher = try Publisher(logger: logger, undeliverable: writer.undeliverable) {
            try KafkaProducer(configuration: kafka, logger: logger, maximumBlock: .seconds(1))
        }
        reader = IntakeReader(authenticator: configuration.authenticator(for: start.apps.apps), topics: topics)
    }

    // MARK: The loop

    /// Runs until ``LoopSignals/stop()``: then what was decided is published and saved, and the group is left.
    func run() throws {
        while !signals.isStopping {
            let consumer = try join()
            while !signals.isStopping, !mustRejoin {
                health.turned()
                let records = try poll(consumer)
                if !records.isEmpty { decide(records) }
                publisherTurn()
                housekeep(consumer)
            }
            leave(consumer)
        }
        publisher.close(timeout: configuration.drainTimeout)
        database.close()
    }

    private func join() throws -> KafkaConsumer {
        if let consumer { return consumer }
        let consumer = try KafkaConsumer(
            configuration: configuration.kafka, groupID: topics.group(Service.name),
            topics: inputTopics, handler: self, logger: logger)
        self.consumer = consumer
        mustRejoin = false
        return consumer
    }

    private var inputTopics: [String] {
        [topics.commands(Service.name)] + Service.subscriptions.map { $0.topic(topics, of: Service.name) }
    }

    /// Leaving calls `partitionsRevoked`, which saves what is published.
    private func leave(_ consumer: KafkaConsumer) {
        if !consumer.close(timeout: .seconds(10)) { logger.warning("the consumer did not close in time") }
        publisher.forgetProgress(of: Set(ownership.partitions.keys))
        ownership = Ownership(batchSize: configuration.batchSize)
        self.consumer = nil
        if mustRejoin { signals.sleep(.milliseconds(Int.random(in: 100...1000))) }
    }

    private func poll(_ consumer: KafkaConsumer) throws -> [KafkaRecord] {
        do {
            let records = try consumer.poll(maxRecords: configuration.batchSize, timeout: pollTimeout)
            health.broker(consumer.lastError.map(\.description))
            return records.filter(ownership.wants)
        } catch {
            logger.error("the consumer failed for good, making a new one", metadata: ["error": "\(error)"])
            health.broker("\(error)")
            mustRejoin = true
            return []
        }
    }

    /// Short while deliveries are awaited, so that they are noted soon. A record ends the wait at once.
    private var pollTimeout: Duration { publisher.pending > 0 ? .milliseconds(20) : .milliseconds(250) }

    private func publisherTurn() {
        ownership.published(publisher.poll(timeout: .zero))
        while publisher.pending > Self.maxPending, !signals.isStopping {  // the broker is slower than we, or away
            health.turned()
            health.broker("\(publisher.pending) messages wait for delivery")
            ownership.published(publisher.poll(timeout: .milliseconds(100)))
        }
    }

    // MARK: Now and then

    private func housekeep(_ consumer: KafkaConsumer) {
        let now = ContinuousClock.now
        if hasMoreToPrune { prune() }
        guard now - lastHousekeeping >= .seconds(1) else { return }
        lastHousekeeping = now
        metrics.outbox(publisher.pending)
        saveProgress(wait: false, consumer)
        if Service.hasDueCommands { sendDueCommands() }
        if now - lastReload >= .seconds(2) {
            lastReload = now
            if apps.reload() {
                reader = IntakeReader(authenticator: configuration.authenticator(for: apps.apps), topics: topics)
            }
        }
        if now - lastPrune >= .seconds(5) {
            lastPrune = now
            prune()
        }
    }

    /// Writes down how far publishing came, and tells the group.
    func saveProgress(wait: Bool, _ consumer: KafkaConsumer?) {
        let unsaved = ownership.unsaved
        if !unsaved.isEmpty {
            do {
                try database.transaction { try Storage.Progress.markPublished(unsaved, in: $0) }
                ownership.saved()
                health.database(nil)
            } catch {
                note(error)
            }
        }
        let uncommitted = ownership.uncommitted
        if !uncommitted.isEmpty, let consumer {
            consumer.commit(uncommitted, wait: wait)
            ownership.committed()
        }
    }

    /// Sends the service the commands whose time has come. A crash in between loses nothing: they stay due.
    private func sendDueCommands() {
        guard !ownership.isEmpty, publisher.pending < Self.maxPending else { return }
        let now = Timestamp.now
        do {
            let due = try database.transaction {
                try service.due(now: now, limit: configuration.batchSize, in: $0)
            }
            publisher.publish(try due.map { try writer.due($0, now: now) }, through: [:])
        } catch {
            note(error)
        }
    }

    /// Small steps between batches. While there is more to prune, every turn takes twice as much as a batch can add, so
    /// the journal cannot outgrow it.
    private func prune() {
        let horizon = Timestamp.now.milliseconds - configuration.journalRetention.milliseconds
        let limit = 2 * configuration.batchSize
        do {
            let count = try database.transaction {
                _ = try Sagas.prune(olderThan: horizon, limit: limit, in: $0)
                return try Journal.prune(
                    partitions: ownership.held, retention: configuration.journalRetention.milliseconds, limit: limit,
                    in: $0)
            }
            hasMoreToPrune = count >= limit
            health.database(nil)
        } catch {
            hasMoreToPrune = false
            note(error)
        }
    }

    /// An error of the work that goes on beside deciding: the next turn tries again.
    private func note(_ error: any Error) {
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

    func rejoin(because error: StorageError) {
        metrics.fenced()
        logger.warning("letting go of all partitions and joining again", metadata: ["cause": "\(error)"])
        mustRejoin = true
    }
}

extension MessageWriter {
    /// What takes the place of a message that its topic will never accept: a dead letter that holds it. Nothing takes
    /// the place of a dead letter.
    func undeliverable(_ message: OutboundMessage, _ error: KafkaError) -> OutboundMessage? {
        guard message.role != .deadLetter else { return nil }
        let letter = DeadLetter(
            reason: "UNDELIVERABLE", step: .publish, error: error.description, topic: message.topic, partition: -1,
            offset: -1, timestampMs: -1, group: topics.group(service))
        return OutboundMessage(
            role: .deadLetter, topic: topics.deadLetters(service), key: message.key,
            headers: message.headers + letter.headers(now: .now), value: message.value)
    }
}

extension Timestamp {
    /// The system's clock.
    public static var now: Timestamp {
        Timestamp(milliseconds: Int64((Date.now.timeIntervalSince1970 * 1000).rounded(.down)))
    }
}
