// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
import Logging
import Messaging
import Storage

/// Everything the loop needs before its first turn: a migrated database, topics that exist, an apps file that is
/// valid. What is merely not there yet (database or broker down) is waited for; what is wrong ends the start.
struct LoopStart {
    let configuration: ServiceConfiguration
    let health: LoopHealth
    let signals: LoopSignals
    let logger: Logger
    let database: any SQLDatabase
    let apps: AppsSource
    let clusterID: String

    /// - Returns: `nil` when it was asked to stop while waiting.
    /// - Throws: `ConfigurationProblem` and whatever else only an operator can mend.
    static func prepare<Service: CommandService>(
        _: Service.Type, configuration: ServiceConfiguration, health: LoopHealth, signals: LoopSignals, logger: Logger
    ) throws -> LoopStart? {
        let apps = try AppsSource(path: configuration.appsPath, logger: logger)
        let database = try configuration.database.open(service: Service.name, logger: logger)
        let migrator = Migrator(StorageSchema.migrations + Service.migrations)
        let isMigrated: Void? = try wait(signals, logger, "database") { problem in
            health.turned()
            health.database(problem)
        } until: {
            _ = try migrator.run(on: database)
        }
        guard isMigrated != nil else { return nil }
        let admin = try KafkaAdmin(configuration: configuration.kafka, logger: logger)
        defer { admin.close(timeout: .seconds(2)) }
        let specs = configuration.topicSpecs(for: Service.name, reading: Service.subscriptions)
        let cluster = try wait(signals, logger, "broker") { problem in
            health.turned()
            health.broker(problem)
        } until: {
            try admin.ensureTopics(specs, timeout: .seconds(10))
            return try admin.clusterID(timeout: .seconds(10)) ?? ""
        }
        guard let cluster else { return nil }
        return LoopStart(
            configuration: configuration, health: health, signals: signals, logger: logger, database: database,
            apps: apps, clusterID: cluster)
    }

    private static func wait<Value>(
        _ signals: LoopSignals, _ logger: Logger, _ what: String, report: (String?) -> Void,
        until work: () throws -> Value
    ) throws -> Value? {
        var delay = Duration.milliseconds(100)
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
                signals.sleep(delay * Double.random(in: 0.5...1))
                delay = min(delay * 2, .seconds(3))
            }
        }
        return nil
    }
}
