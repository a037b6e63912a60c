// SPDX-License-Identifier: Apache-2.0

import Contracts
import EmbeddedBroker
import Foundation
import Logging
import Messaging
import Runtime
import Storage
import Supervision

/// Where a run takes place: topics, schemas and a folder under names that nobody else has. Nothing else is touched.
final class ChaosGround {
    /// What every name of this run begins with.
    let name: String
    let topics: Topics
    let folder: String
    let keys = ChaosKeys()
    /// For the services, and for our own clients.
    let environment: [String: String]
    let kafka: KafkaConfiguration
    let isEmbedded: Bool
    let partitions: Int
    private let broker: EmbeddedBroker?
    private let database: PostgreSQLDatabase?
    private let schemas: String
    private let specs: [TopicSpec]
    private var hasTopics = false

    var isPostgreSQL: Bool { database != nil }
    var brokerName: String {
        isEmbedded ? "an embedded broker at \(kafka.bootstrapServers)" : "Kafka at \(kafka.bootstrapServers)"
    }
    var storeName: String { isPostgreSQL ? "PostgreSQL" : "SQLite (no DATABASE_URL)" }

    /// Nothing is made yet: ``prepare()`` does that.
    static func make(_ debugging: KafkaDebugging) throws -> ChaosGround {
        try ChaosGround(id: (0..<4).map { _ in UInt8.random(in: 0...255) }.hex, debugging)
    }

    private init(id: String, _ debugging: KafkaDebugging) throws {
        let name = "identitybus-chaos-\(id)"
        let schemas = "identitybus_chaos_\(id)_"
        let topics = Topics(prefix: "\(name).")
        let folder = NSTemporaryDirectory() + name
        var environment = Self.passedOn()
        let isEmbedded = environment["KAFKA_BOOTSTRAP_SERVERS"] == nil
        if isEmbedded {
            environment.merge(KafkaConfiguration.embeddedEnvironment) { given, _ in given }
            // The address is not known before the broker runs; any will do to read the other settings.
            environment["KAFKA_BOOTSTRAP_SERVERS"] = "127.0.0.1:1"
        }
        environment["TOPIC_PREFIX"] = topics.prefix
        environment["TOPIC_PARTITIONS"] = environment["TOPIC_PARTITIONS"] ?? "6"
        environment["DATABASE_SCHEMA_PREFIX"] = schemas
        environment["DATA_DIR"] = folder
        environment["IDENTITYBUS_APPS"] = "\(folder)/apps.yaml"
        environment["IDENTITYBUS_INTERNAL_KEY"] = keys.internalKey
        environment["IDENTITYBUS_PARENT"] = String(ProcessInfo.processInfo.processIdentifier)
        // By this PostgreSQL tells the connections of this run from all others.
        environment["PGAPPNAME"] = name
        let url = try EnvironmentSettings(environment).secret("DATABASE_URL")
        if url == nil { environment["LOOPS"] = nil }
        // What is wrong with a setting is told before anything is made.
        for name in serviceNames { _ = try ServiceConfiguration(environment: environment, service: name) }
        let plan = try TopicPlan(EnvironmentSettings(environment))
        specs = DeploymentTopics(plan).specs
        partitions = plan.partitions
        database = try url.map { try PostgreSQLDatabase(url: $0, schema: "\(schemas)control", logger: .silent) }
        broker = isEmbedded ? try EmbeddedBroker(topics: specs, logger: .quiet) : nil
        if let broker { environment["KAFKA_BOOTSTRAP_SERVERS"] = broker.bootstrapServers }
        kafka = try KafkaConfiguration(environment: debugging.begin(environment))
        self.name = name
        self.schemas = schemas
        self.topics = topics
        self.folder = folder
        self.environment = environment
        self.isEmbedded = isEmbedded
    }

    /// What of our own environment is for the services and clients of a run, too.
    private static func passedOn() -> [String: String] {
        let names = [
            "PATH", "HOME", "LD_LIBRARY_PATH", "TOPIC_PARTITIONS", "TOPIC_REPLICATION_FACTOR", "BATCH_SIZE", "LOOPS",
        ]
        let beginnings = ["KAFKA_", "PG", "SSL_", "DATABASE_URL"]
        return ProcessInfo.processInfo.environment.filter { variable, value in
            !value.isEmpty && (names.contains(variable) || beginnings.contains { variable.hasPrefix($0) })
        }
    }

    /// Makes topics and a schema, by which the rights to do so are tried.
    /// - Throws: `Problem`. What was made is to be removed then, too.
    func prepare() throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try keys.appsFile.write(toFile: "\(folder)/apps.yaml", atomically: true, encoding: .utf8)
        do {
            try makeSchema()
        } catch {
            var problem = Problem(error)
            problem.what = "PostgreSQL cannot be used: \(problem.what)"
            throw problem
        }
        if isEmbedded { return }
        let admin = try KafkaAccess(kafka).reach().admin
        defer { admin.close(timeout: .seconds(1)) }
        hasTopics = true
        do {
            try admin.ensureTopics(specs, timeout: .seconds(60))
        } catch {
            throw Problem(
                .noRight, "Kafka at \(kafka.bootstrapServers) does not let us create topics: \(error.message).")
        }
    }

    /// The first connection makes the schema of its name.
    private func makeSchema() throws {
        guard let database else { return }
        try database.transaction { _ = try $0.query("SELECT 1") }
    }

    /// Ends the database connections of this run's services.
    /// - Returns: how many.
    func disconnect() throws -> Int {
        guard let database else { return 0 }
        return try database.transaction { transaction in
            try transaction.query(
                """
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND usename = SESSION_USER AND application_name = $1
                """, [.text(name)]
            ).count
        }
    }

    /// Takes away everything that was made. Nobody uses it any more.
    /// - Returns: what is left, a line for each.
    func remove(keepingLogs: Bool = false) -> [String] {
        var left: [String] = []
        if let broker {
            broker.close()
        } else if hasTopics {
            do { try removeFromKafka() } catch { left.append("left in Kafka under \(topics.prefix): \(error)") }
        }
        do {
            for schema in serviceNames + ["control"] {
                _ = try database?.transaction { try $0.execute("DROP SCHEMA IF EXISTS \(schemas)\(schema) CASCADE") }
            }
        } catch {
            // One that never answered holds nothing either.
            if (error as? StorageError)?.kind != .unavailable {
                left.append("left in PostgreSQL, schemas \(schemas)*: \(error)")
            }
        }
        database?.close()
        for file in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        where file != "logs" || !keepingLogs {
            try? FileManager.default.removeItem(atPath: "\(folder)/\(file)")
        }
        if !keepingLogs { try? FileManager.default.removeItem(atPath: folder) }
        return left
    }

    private func removeFromKafka() throws {
        let admin = try KafkaAdmin(configuration: kafka, logger: .silent)
        defer { admin.close(timeout: .seconds(1)) }
        let mine = try admin.existingTopics(timeout: .seconds(10)).keys.filter { $0.hasPrefix(topics.prefix) }
        try admin.deleteTopics(mine.sorted(), timeout: .seconds(30))
        // Members that were killed count as members until their session is over.
        let deadline = ContinuousClock.now + kafka.sessionTimeout + .seconds(10)
        while ContinuousClock.now < deadline {
            if (try? admin.deleteGroups(prefix: topics.prefix, timeout: .seconds(10))) != nil { return }
            usleep(500_000)
        }
        try admin.deleteGroups(prefix: topics.prefix, timeout: .seconds(10))
    }
}

extension Logger {
    /// For clients whose failures are told otherwise.
    fileprivate static var silent: Logger {
        var logger = Logger(label: "identitybus.cli")
        logger.logLevel = .critical
        return logger
    }
}
