// SPDX-License-Identifier: Apache-2.0

package import Apps
import Contracts
import Foundation
package import Logging
import Messaging
import Observability
package import Storage

/// Everything the loop needs before its first turn: a migrated database, topics that exist and have leaders, an apps
/// file that is valid. What is merely not there yet (database or broker down) is waited for; what is wrong ends the
/// start.
package struct LoopStart {
    let configuration: ServiceConfiguration
    let health: LoopHealth
    let signals: LoopSignals
    let logger: Logger
    let database: any SQLDatabase
    let apps: AppsSource
    let watch: BrokerWatch
    let seams: LoopSeams
    let trial: Trial

    package init(
        configuration: ServiceConfiguration, health: LoopHealth, signals: LoopSignals, logger: Logger,
        database: any SQLDatabase, apps: AppsSource, watch: BrokerWatch, seams: LoopSeams, trial: Trial
    ) {
        self.configuration = configuration
        self.health = health
        self.signals = signals
        self.logger = logger
        self.database = database
        self.apps = apps
        self.watch = watch
        self.seams = seams
        self.trial = trial
    }

    /// - Returns: `nil` when it was asked to stop while waiting.
    /// - Throws: `ConfigurationProblem` and whatever else only an operator can mend.
    static func prepare<Service: CommandService>(
        _: Service.Type, configuration: ServiceConfiguration, health: LoopHealth, signals: LoopSignals, trial: Trial,
        logger: Logger
    ) throws -> LoopStart? {
        let apps = try AppsSource(
            path: configuration.appsPath, keys: configuration.keys, weakSecrets: configuration.weakSecrets,
            logger: logger)
        apps.logWarnings()
        if let problem = configuration.weakInternalKey {
            logger.notice(
                "the internal key is weak", metadata: ["event": "settings.weak-key", "problem": "\(problem)"])
        }
        health.store(is: configuration.database.place)
        let database = WatchedStore(
            try configuration.database.open(service: Service.name, logger: logger), health)
        let isMigrated: Void? = try wait(signals) { problem in
            health.turned()
            health.reads(problem as? StorageError)
        } until: {
            _ = try Service.migrator.run(on: database)
            try Salts.settle(configuration, Service.name, on: database, logger)
            if let problem = try Service.refusal(of: apps.apps, on: database) { throw apps.named(problem) }
        }
        guard isMigrated != nil, let watch = try watch(Service.self, configuration, apps.apps, health, signals, logger)
        else { return nil }
        tell(Service.self, configuration, database, watch, logger)
        return LoopStart(
            configuration: configuration, health: health, signals: signals, logger: logger, database: database,
            apps: apps, watch: watch.watch, seams: try .real(configuration.kafka, signals, logger),
            trial: trial)
    }

    /// What runs here, on what: the first lines of a report of a fault.
    private static func tell<Service: CommandService>(
        _: Service.Type, _ configuration: ServiceConfiguration, _ database: any SQLDatabase, _ broker: Broker,
        _ logger: Logger
    ) {
        let version = try? database.transaction { transaction in
            try transaction.query(transaction.engine == .sqlite ? "SELECT sqlite_version()" : "SHOW server_version")
                .first?.text(0)
        }
        logger.info(
            "service starts",
            metadata: [
                "event": "service.start", "version": "\(Release.version)",
                "process": .stringConvertible(ProcessInfo.processInfo.processIdentifier),
                "schema": .stringConvertible(Service.migrator.newest),
                "database": "\(configuration.database.place)",
                "database_version": "\(version.flatMap { $0 } ?? "unknown")",
                "kafka": "\(configuration.kafka.bootstrapServers)", "cluster": "\(broker.watch.cluster ?? "unknown")",
                "brokers": .stringConvertible(broker.count),
                "replicas": .stringConvertible(broker.replicas), "librdkafka": "\(KafkaLibrary.version)",
            ])
    }

    /// What was found when the broker answered first.
    private struct Broker {
        var watch: BrokerWatch
        /// How many there are, and the fewest copies that a topic of the service has.
        var count: Int
        var replicas: Int
    }

    /// Waits for the broker and the topics, and goes on watching them.
    private static func watch<Service: CommandService>(
        _: Service.Type, _ configuration: ServiceConfiguration, _ apps: AppDirectory, _ health: LoopHealth,
        _ signals: LoopSignals, _ logger: Logger
    ) throws -> Broker? {
        let admin = try KafkaAdmin(configuration: configuration.kafka, logger: logger)
        let specs = configuration.topicSpecs(for: Service.name, reading: Service.sources)
        let topics = Set(specs.map(\.name)).sorted()
        let appTopics = configuration.replyTopicSpecs(of: apps)
        var count = 0
        let cluster = try wait(signals) { problem in
            health.turned()
            let isOfBroker = (problem as? KafkaError)?.failure != nil
            health.broker(isOfBroker ? problem.map { "\($0)" } : nil)
            // Whoever does not answer says nothing of topics.
            if !isOfBroker { health.topics(problem.map { "\($0)" }) }
        } until: {
            count = try admin.reach(timeout: .seconds(3))
            health.broker(nil)
            try admin.ensureTopics(specs, timeout: .seconds(10))
            try admin.make(appTopics, watching: topics + appTopics.map(\.name))
            guard let cluster = try admin.clusterID(timeout: .seconds(10)) else {
                throw KafkaError(code: KafkaError.Code.timedOut, message: "the cluster did not say its id")
            }
            return (cluster, try admin.topicStates(timeout: .seconds(10)))
        }
        guard let cluster else {
            admin.close(timeout: .seconds(1))
            return nil
        }
        let watch = BrokerWatch(
            cluster: cluster.0, partitions: cluster.1.mapValues(\.partitions), appTopics: appTopics)
        watch.start(admin, configuration.kafka, topics: topics, health: health, logger: logger)
        return Broker(watch: watch, count: count, replicas: cluster.1.values.map(\.replicas).min() ?? 0)
    }

    /// Waits for what others have to mend.
    /// - Parameter report: is told what is wrong; `nil` when all is well.
    private static func wait<Value>(
        _ signals: LoopSignals, report: ((any Error)?) -> Void, until work: () throws -> Value
    ) throws -> Value? {
        var backoff = Backoff(from: .milliseconds(100), upTo: .seconds(3))
        while !signals.isStopping {
            do {
                let value = try work()
                report(nil)
                return value
            } catch let error as StorageError where error.kind != .unavailable && error.kind != .conflict {
                throw error
            } catch let error as KafkaError where error.disposition == .fatal {
                throw error
            } catch  where error is StorageError || error is KafkaError {
                report(error)
                signals.sleep(backoff.nextSpread())
            }
        }
        return nil
    }
}
