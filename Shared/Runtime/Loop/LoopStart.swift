// SPDX-License-Identifier: Apache-2.0

package import Apps
import Contracts
import Foundation
package import Logging
import Messaging
package import Observability
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
    /// By which time records are decided.
    var pastTimes: PastTimes
    /// Who is told of what is decided; `nil` for nobody.
    package var tracer: OTLPTracer?

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
        pastTimes = PastTimes(end: configuration.replayUntil, retention: configuration.journalRetention)
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
        if let problem = apps.apps.refusal(ofRetentionBelow: configuration.journalRetention) {
            throw apps.named(problem)
        }
        if let problem = configuration.weakInternalKey {
            logger.notice(
                "the internal key is weak", metadata: ["event": "settings.weak-key", "problem": "\(problem)"])
        }
        health.store(is: configuration.database.place)
        health.kafka(is: configuration.kafka.bootstrapServers)
        let database = WatchedStore(configuration.database.engine, health) {
            try configuration.database.open(service: Service.name, logger: logger)
        }
        var isMigrated = false
        let watch = try watch(Service.self, configuration, apps.apps, health, signals, logger) {
            if isMigrated { return }
            do {
                try Service.migrator.bringUpToDate(database, at: configuration.migrate)
                try Salts.settle(configuration, Service.name, on: database, logger)
                if let problem = try Service.refusal(of: apps.apps, on: database) { throw apps.named(problem) }
                isMigrated = true
                health.reads(nil)
            } catch let error as StorageError where error == .transactionPooler {
                throw ConfigurationProblem("DATABASE_URL", error.message)
            } catch {
                health.reads(error as? StorageError)
                throw error
            }
        }
        guard let watch else { return nil }
        if signals.isStopping {
            watch.watch.stop()
            return nil
        }
        tell(Service.self, configuration, database, watch, logger)
        let questions = Set(Service.inputs.filter(\.isQuestion).map(\.type))
        let past = PastDecisions(
            service: Service.name, questions: questions, configuration: configuration,
            authenticator: configuration.authenticator(for: apps.apps), database: database, health: health,
            signals: signals, logger: logger)
        let later = try past.prepare(retrying: isForOthersToMend)
        var start = LoopStart(
            configuration: configuration, health: health, signals: signals, logger: logger, database: database,
            apps: apps, watch: watch.watch, seams: try .real(configuration.kafka, signals, logger),
            trial: trial)
        start.pastTimes.later = later
        return start
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
                "event": "service.start", "version": "\(Release.version)", "commit": "\(Release.commit)",
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

    /// Waits for the store, the broker and the topics, and goes on watching these. Each of them is told of, whether the others
    /// answer or not.
    /// - Parameter prepareStore: is tried until it does not throw.
    private static func watch<Service: CommandService>(
        _: Service.Type, _ configuration: ServiceConfiguration, _ apps: AppDirectory, _ health: LoopHealth,
        _ signals: LoopSignals, _ logger: Logger, prepareStore: () throws -> Void
    ) throws -> Broker? {
        let admin = try KafkaAdmin(configuration: configuration.kafka, logger: logger)
        let (plan, traffic) = (configuration.topicPlan, ServiceTraffic(Service.self))
        let specs = plan.specs(for: traffic)
        let appTopics = plan.appTopics(apps, for: traffic)
        var backoff = Backoff(from: .milliseconds(100), upTo: .seconds(3))
        while !signals.isStopping {
            health.turned()
            let answer: Result<Found, KafkaError>
            do throws(KafkaError) {
                answer = .success(try meet(admin, specs, appTopics.specs, plan.create, health))
            } catch {
                answer = .failure(error)
            }
            do {
                try prepareStore()
                let found = try answer.get()
                let watch = BrokerWatch(
                    cluster: found.cluster, partitions: found.topics.mapValues(\.partitions), appTopics: appTopics)
                watch.start(
                    admin, configuration.kafka,
                    BrokerWatch.Topics(
                        service: Service.name, all: Set(specs.map(\.name)).sorted(), written: plan.written(by: traffic),
                        deadLetters: plan.topics.deadLetters(Service.name),
                        deadLetterActions: plan.topics.deadLetterActions(Service.name), create: plan.create),
                    health: health, logger: logger)
                let replicas = found.topics.values.map(\.replicas).min() ?? 0
                return Broker(watch: watch, count: found.brokers, replicas: replicas)
            } catch  where isForOthersToMend(error) {
                signals.sleep(backoff.nextSpread())
            }
        }
        admin.close(timeout: .seconds(1))
        return nil
    }

    private static func isForOthersToMend(_ error: any Error) -> Bool {
        switch error {
        case let error as StorageError: error.kind == .unavailable || error.kind == .conflict
        case let error as KafkaError: error.disposition != .fatal
        default: false
        }
    }

    private struct Found {
        var brokers: Int
        var cluster: String
        var topics: [String: TopicState]
    }

    /// Reaches a broker and makes the topics that are missing, and tells what keeps it from that.
    private static func meet(
        _ admin: KafkaAdmin, _ specs: [TopicSpec], _ appTopics: [TopicSpec], _ create: TopicCreate,
        _ health: LoopHealth
    ) throws(KafkaError) -> Found {
        let started = ContinuousClock.now
        do throws(KafkaError) {
            let brokers = try admin.reach(timeout: .seconds(3))
            health.broker(nil)
            try admin.ensureTopics(specs, creating: create, timeout: .seconds(10))
            try admin.make(appTopics, create, watching: (specs + appTopics).map(\.name))
            guard let cluster = try admin.clusterID(timeout: .seconds(10)) else {
                throw KafkaError(code: KafkaError.Code.timedOut, message: "the cluster did not say its id")
            }
            let found = Found(brokers: brokers, cluster: cluster, topics: try admin.topicStates(timeout: .seconds(10)))
            health.topics(nil)
            return found
        } catch {
            health.kafka(failed: error, took: started.duration(to: .now))
            throw error
        }
    }
}
