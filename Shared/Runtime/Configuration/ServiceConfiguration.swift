// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
import Crypto
import Foundation
public import Logging
public import Messaging
public import Observability
public import Storage

/// A service's settings, read from the environment once at start (docs/operations.md lists the variables).
public struct ServiceConfiguration: Sendable {
    public var kafka: KafkaConfiguration
    public var topics: Topics
    /// Partitions of the topics that this service creates when they are missing.
    public var partitions: Int
    /// -1: the broker's default.
    public var replicationFactor: Int
    public var database: DatabaseConfiguration
    public var appsPath: String
    public var weakSecrets: WeakSecrets
    public var trust: Authenticator.Trust
    /// What it signs and checks with; none only where ``trust`` is `cluster`.
    public var keys: DeploymentKeys
    /// What is to be said of an internal key that is shorter than it should be.
    var weakInternalKey: ConfigurationProblem?
    /// The salts of the deployment's stores, by service, where they are taken along.
    public var salts: [String: [UInt8]]?
    /// What is older is read in the order of its times, and decided by them; `nil` for nothing.
    public var replayUntil: Timestamp?
    /// Records decided in one transaction at most.
    public var batchSize: Int
    /// How many loops this process runs, each with clients and a connection of its own; 1 with SQLite, which has one
    /// writer.
    public var loops: Int
    /// How long the inbox remembers a command; longer than the topics keep it.
    public var journalRetention: Duration
    /// How long a dead letter is kept.
    public var deadLetterRetention: Duration
    /// How long a stop waits for deliveries.
    public var drainTimeout: Duration
    public var httpHost: String
    /// 0: chosen by the kernel and logged.
    public var httpPort: Int
    public var logLevel: Logger.Level
    public var logFormat: LogFormat
    /// Names this replica in the progress table.
    public var owner: String

    /// - Parameter derived: a variable that may stand in the place of the internal keys.
    /// - Throws: `ConfigurationProblem`, `KafkaConfigurationError`.
    public init(environment: [String: String], service: String, derived: DeploymentKeys.Derived? = nil) throws {
        let settings = EnvironmentSettings(environment)
        var kafkaEnvironment = environment
        if settings.text("KAFKA_CLIENT_ID") == nil { kafkaEnvironment["KAFKA_CLIENT_ID"] = "identity.\(service)" }
        kafka = try KafkaConfiguration(environment: kafkaEnvironment)
        topics = Topics(prefix: try Self.prefix(settings))
        partitions = try settings.integer("TOPIC_PARTITIONS", default: 12, in: 1...1000)
        replicationFactor = try settings.integer("TOPIC_REPLICATION_FACTOR", default: -1, in: -1...100)
        database = try Self.database(settings)
        appsPath = settings.text("IDENTITYBUS_APPS") ?? "config/apps.yaml"
        weakSecrets = try settings.choice("IDENTITYBUS_WEAK_SECRETS", default: .refuse)
        trust = try settings.choice("IDENTITYBUS_TRUST", default: .signed)
        keys = try DeploymentKeys(environment: settings, derived: derived)
        weakInternalKey = Self.weakness(of: keys)
        guard trust == .cluster || !keys.isEmpty else {
            throw ConfigurationProblem(
                DeploymentKeys.internalKeyVariable,
                "is not set; the services sign what they send to each other with it")
        }
        salts = try settings.secret(Salts.variable).map { try Salts.read($0) }
        replayUntil = try Self.replayUntil(settings)
        kafka.reportsEnds = replayUntil != nil
        batchSize = try settings.integer("BATCH_SIZE", default: 1000, in: 1...10_000)
        loops = try settings.integer("LOOPS", default: 1, in: 1...64)
        journalRetention =
            .seconds(3600) * (try settings.integer("JOURNAL_RETENTION_HOURS", default: 336, in: 1...87_600))
        deadLetterRetention =
            .seconds(3600) * (try settings.integer("DEAD_LETTER_RETENTION_HOURS", default: 720, in: 1...87_600))
        drainTimeout = .seconds(try settings.integer("DRAIN_TIMEOUT_SECONDS", default: 10, in: 0...600))
        httpHost = settings.text("HTTP_HOST") ?? "127.0.0.1"
        httpPort = try settings.integer("HTTP_PORT", default: 0, in: 0...65_535)
        logLevel = try settings.choice("LOG_LEVEL", default: .info)
        logFormat = try settings.choice("LOG_FORMAT", default: .json)
        owner = "\(ProcessInfo.processInfo.hostName):\(ProcessInfo.processInfo.processIdentifier)"
    }

    private static func replayUntil(_ settings: EnvironmentSettings) throws(ConfigurationProblem) -> Timestamp? {
        guard let text = settings.text("REPLAY_UNTIL") else { return nil }
        guard let time = Timestamp(rfc3339: text) else {
            throw ConfigurationProblem("REPLAY_UNTIL", "is not a time such as 2030-01-31T12:00:00Z")
        }
        guard time <= .now else {
            throw ConfigurationProblem(
                "REPLAY_UNTIL", "is in the future; set it to the moment of the start, or leave it out")
        }
        return time
    }

    /// By which time records are decided.
    var pastTimes: PastTimes { PastTimes(end: replayUntil) }

    private static func weakness(of keys: DeploymentKeys) -> ConfigurationProblem? {
        guard let key = keys.internalKeys.first(where: { $0.bitCount < SecretUse.goodLength * 8 }) else { return nil }
        return ConfigurationProblem(
            DeploymentKeys.internalKeyVariable,
            "or a previous one has \(key.bitCount / 8) bytes, fewer than \(SecretUse.goodLength); "
                + "make one with: openssl rand -hex 32")
    }

    /// The topics that a service reads and writes.
    ///
    /// The commands topic takes messages well over our own limit, so that we, not the broker, tell the sender of a
    /// message that is too large; a dead letter is larger than what it holds by its headers.
    /// - Parameter sources: what it reads.
    public func topicSpecs(for service: String, reading sources: [InputSource] = []) -> [TopicSpec] {
        let own = [
            commands(topics.commands(service)), input(topics.events(service)), spec(topics.replies),
            spec(
                topics.deadLetters(service),
                ["max.message.bytes": "3000000", "retention.ms": String(deadLetterRetention.inMilliseconds)]),
            deadLetterActions(service),
        ]
        return own
            + sources.flatMap { source -> [TopicSpec] in
                switch source {
                case .commands: []
                case .events: [input(source.topic(topics, of: service))]
                case .replies(let services):
                    [input(source.topic(topics, of: service))]
                        + services.sorted().map { commands(topics.commands($0)) }
                }
            }
    }

    /// The topics that a service writes to, but for the apps' own.
    /// - Parameter sources: what it reads.
    func writtenTopics(by service: String, reading sources: [InputSource]) -> Set<String> {
        Set(
            [topics.events(service), topics.replies, topics.deadLetters(service)]
                + asked(by: sources).map { topics.commands($0) })
    }

    /// The topics that apps have for themselves: for their replies, and for their commands to this service and to those that
    /// it asks.
    /// - Parameter sources: what it reads.
    func appTopics(_ apps: AppDirectory, for service: String, reading sources: [InputSource]) -> AppTopics {
        let replies = apps.replyTopics.keys.sorted().map { spec(topics.prefix + $0) }
        let owners = apps.ownersOfCommandsTopics
        func own(_ service: String) -> [TopicSpec] { owners.map { commands(topics.commands(service, of: $0)) } }
        let written = replies + asked(by: sources).flatMap(own)
        return AppTopics(specs: written + own(service), written: Set(written.map(\.name)))
    }

    /// The services that a service with these sources sends commands to.
    private func asked(by sources: [InputSource]) -> [String] {
        sources.flatMap { source in
            if case .replies(let services) = source { services.sorted() } else { [] as [String] }
        }
    }

    /// In one partition and by the broker's clock, so that everybody reads what is done in one order and finds the same
    /// claims over. What is done about a letter stays for longer than the letter: Kafka removes records by whole segments.
    private func deadLetterActions(_ service: String) -> TopicSpec {
        let retention = deadLetterRetention + .seconds(14 * 86_400)
        var topic = spec(
            topics.deadLetterActions(service),
            ["retention.ms": String(retention.inMilliseconds), "message.timestamp.type": "LogAppendTime"])
        topic.partitions = 1
        return topic
    }

    private func commands(_ topic: String) -> TopicSpec { input(topic, ["max.message.bytes": "2000000"]) }

    /// A topic that a service reads keeps its records for as long as the inbox remembers them, so that a service may
    /// be away for that long; and it is the broker that says when a record was written, since the inbox forgets by
    /// that time.
    private func input(_ name: String, _ config: [String: String] = [:]) -> TopicSpec {
        let own = [
            "retention.ms": String(journalRetention.inMilliseconds),
            "message.timestamp.type": "LogAppendTime",
        ]
        return spec(name, config.merging(own) { _, own in own })
    }

    private func spec(_ name: String, _ config: [String: String] = [:]) -> TopicSpec {
        TopicSpec(name: name, partitions: partitions, replicationFactor: replicationFactor, config: config)
    }

    public func authenticator(for apps: AppDirectory) -> Authenticator {
        Authenticator(trust: trust, apps: apps, keys: keys, topics: topics)
    }

    /// The settings of each loop of the process. Where there are several, each has a name of its own.
    /// - Throws: `ConfigurationProblem` when the store takes only one.
    func ofEachLoop() throws(ConfigurationProblem) -> [ServiceConfiguration] {
        if loops == 1 { return [self] }
        guard database.isShared else {
            throw ConfigurationProblem(
                "LOOPS", "is \(loops), but SQLite has one writer; set it to 1, or DATABASE_URL to a PostgreSQL database"
            )
        }
        return (1...loops).map { number in
            var mine = self
            mine.kafka.clientID += "-\(number)"
            mine.owner += "-\(number)"
            return mine
        }
    }

    private static func prefix(_ settings: EnvironmentSettings) throws(ConfigurationProblem) -> String {
        let prefix = settings.text("TOPIC_PREFIX") ?? ""
        let isLegal = prefix.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || [0x2D, 0x2E, 0x5F].contains(byte)
        }
        guard isLegal, prefix.utf8.count <= 100 else {
            throw ConfigurationProblem("TOPIC_PREFIX", "may have at most 100 characters of A-Z a-z 0-9 . _ -")
        }
        return prefix
    }

    /// What the names of the services' schemas in PostgreSQL begin with.
    /// - Throws: `ConfigurationProblem`.
    public static func schemas(_ settings: EnvironmentSettings) throws(ConfigurationProblem) -> String {
        let prefix = settings.text("DATABASE_SCHEMA_PREFIX") ?? DatabaseConfiguration.usualSchemas
        let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
        let isLegal = prefix.utf8.allSatisfy {
            letters.contains($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: "_")
        }
        guard isLegal, let first = prefix.utf8.first, letters.contains(first), prefix.utf8.count <= 40 else {
            throw ConfigurationProblem(
                "DATABASE_SCHEMA_PREFIX", "is not a letter and then at most 39 of a-z, 0-9 and _")
        }
        return prefix
    }

    private static func database(_ settings: EnvironmentSettings) throws -> DatabaseConfiguration {
        guard let url = try settings.secret("DATABASE_URL") else {
            let synchronous: SQLiteDatabase.Synchronous =
                switch settings.text("SQLITE_SYNCHRONOUS")?.lowercased() {
                case nil, "full": .full
                case "normal": .normal
                default: throw ConfigurationProblem("SQLITE_SYNCHRONOUS", "is neither full nor normal")
                }
            return .sqlite(directory: settings.text("DATA_DIR") ?? ".identitybus", synchronous: synchronous)
        }
        if let flaw = PostgreSQLDatabase.flaw(of: url) { throw ConfigurationProblem("DATABASE_URL", flaw) }
        return .postgresql(url: url, schemas: try schemas(settings))
    }
}

/// The topics that apps have for themselves, as far as a service has to do with them.
package struct AppTopics: Equatable, Sendable {
    /// All of them: they are made where they are missing, and watched.
    var specs: [TopicSpec] = []
    /// The ones that the service writes to.
    var written: Set<String> = []
}

/// Where a service keeps its state: one SQLite file per service, or a PostgreSQL schema per service.
public enum DatabaseConfiguration: Sendable, CustomStringConvertible {
    case sqlite(directory: String, synchronous: SQLiteDatabase.Synchronous)
    /// - Parameter schemas: what the names of the services' schemas begin with.
    case postgresql(url: String, schemas: String = DatabaseConfiguration.usualSchemas)

    public static let usualSchemas = "identity_"

    /// Whether several loops may work on one store at once: in one process, or as replicas.
    var isShared: Bool { engine == .postgresql }

    var engine: SQLEngine { if case .postgresql = self { .postgresql } else { .sqlite } }

    /// Opens the store of `service`. PostgreSQL connects at the first transaction, SQLite at once.
    /// - Throws: `StorageError`: `unavailable` also for a folder that cannot be made.
    public func open(service: String, logger: Logger) throws -> any SQLDatabase {
        switch self {
        case .sqlite(let directory, let synchronous):
            do {
                try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            } catch {
                let cause = (error as? CocoaError)?.underlying as? POSIXError
                let words = cause.map { String(cString: strerror($0.code.rawValue)).lowercased() }
                throw StorageError(
                    kind: .unavailable, message: "the folder cannot be made: \(words ?? error.localizedDescription)")
            }
            return try SQLiteDatabase(path: "\(directory)/\(service).sqlite", synchronous: synchronous)
        case .postgresql(let url, let schemas):
            return try PostgreSQLDatabase(
                url: url, schema: "\(schemas)\(service)", isOfService: true, logger: logger)
        }
    }

    /// Where it is: the servers with their ports, or the folder. Without the user and the password.
    var place: String {
        switch self {
        case .sqlite: description
        case .postgresql(let url, _): "PostgreSQL at \(PostgreSQLDatabase.place(of: url))"
        }
    }

    /// Never shows the URL: it may hold a password.
    public var description: String {
        switch self {
        case .sqlite(let directory, _): "SQLite in \(directory)"
        case .postgresql: "PostgreSQL"
        }
    }
}
