// SPDX-License-Identifier: Apache-2.0

package import Apps
import Contracts
package import Logging
import Messaging
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
            logger.notice("the internal key is weak", metadata: ["problem": "\(problem)"])
        }
        let database = try configuration.database.open(service: Service.name, logger: logger)
        let isMigrated: Void? = try wait(signals, logger, "database") { problem in
            health.turned()
            health.database(problem)
        } until: {
            _ = try Service.migrator.run(on: database)
            try Salts.settle(configuration, Service.name, on: database, logger)
            if let problem = try Service.refusal(of: apps.apps, on: database) { throw apps.named(problem) }
        }
        guard isMigrated != nil, let watch = try watch(Service.self, configuration, apps.apps, health, signals, logger)
        else { return nil }
        return LoopStart(
            configuration: configuration, health: health, signals: signals, logger: logger, database: database,
            apps: apps, watch: watch, seams: try .real(configuration.kafka, signals, logger),
            trial: trial)
    }

    /// Waits for the broker and the topics, and goes on watching them.
    private static func watch<Service: CommandService>(
        _: Service.Type, _ configuration: ServiceConfiguration, _ apps: AppDirectory, _ health: LoopHealth,
        _ signals: LoopSignals, _ logger: Logger
    ) throws -> BrokerWatch? {
        let admin = try KafkaAdmin(configuration: configuration.kafka, logger: logger)
        let specs = configuration.topicSpecs(for: Service.name, reading: Service.sources)
        let topics = Set(specs.map(\.name)).sorted()
        let appTopics = configuration.replyTopicSpecs(of: apps)
        let cluster = try wait(signals, logger, "broker") { problem in
            health.turned()
            health.broker(problem)
        } until: {
            try admin.ensureTopics(specs, timeout: .seconds(10))
            try admin.make(appTopics, watching: topics + appTopics.map(\.name))
            guard let cluster = try admin.clusterID(timeout: .seconds(10)) else {
                throw KafkaError(code: KafkaError.Code.timedOut, message: "the cluster did not say its id")
            }
            return (cluster, try admin.topicStates(timeout: .seconds(10)).mapValues(\.partitions))
        }
        guard let cluster else {
            admin.close(timeout: .seconds(1))
            return nil
        }
        let watch = BrokerWatch(cluster: cluster.0, partitions: cluster.1, appTopics: appTopics)
        watch.start(admin, topics: topics, health: health, logger: logger)
        return watch
    }

    private static func wait<Value>(
        _ signals: LoopSignals, _ logger: Logger, _ what: String, report: (String?) -> Void,
        until work: () throws -> Value
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
                logger.warning("waiting for the \(what)", metadata: ["error": "\(error)"])
                report("\(error)")
                signals.sleep(backoff.nextSpread())
            }
        }
        return nil
    }
}
