// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
import Crypto
import Foundation
import Glibc
public import Logging
public import Messaging
public import Observability
public import Storage

/// A service's settings, read from the environment once at start (docs/operations.md lists the variables).
public struct ServiceConfiguration: Sendable {
    public var kafka: KafkaConfiguration
    /// What the deployment's topics are to be like.
    public var topicPlan: TopicPlan
    public var database: DatabaseConfiguration
    /// Whether the service migrates a store that is older than the code.
    public var migrate: MigrationTime
    public var appsPath: String
    public var weakSecrets: WeakSecrets
    public var trust: Authenticator.Trust
    /// What it signs and checks with; none only where ``trust`` is `cluster`.
    public var keys: DeploymentKeys
    /// What is to be said of an internal key that is shorter than it should be.
    package var weakInternalKey: ConfigurationProblem?
    /// The salts of the deployment's stores, by service, where they are taken along.
    public var salts: [String: [UInt8]]?
    /// What is older is read in the order of its times, and decided by them; `nil` for nothing.
    public var replayUntil: Timestamp?
    /// Records decided in one transaction at most.
    public var batchSize: Int
    /// How many loops this process runs, each with clients and a connection of its own; 1 with SQLite, which has one
    /// writer.
    public var loops: Int
    /// How long a stop waits for deliveries.
    public var drainTimeout: Duration
    public var httpHost: String
    /// 0: chosen by the kernel and logged.
    public var httpPort: Int
    public var logLevel: Logger.Level
    public var logFormat: LogFormat
    /// Names this replica in the progress table.
    public var owner: String
    /// `nil` when nobody is told of spans.
    package var traces: TraceSettings?
    /// Whose metrics have OpenTelemetry's names too.
    package var conventions: ConventionsOptIn

    /// - Parameter derived: a variable that may stand in the place of the internal keys.
    /// - Throws: `ConfigurationProblem`, `KafkaConfigurationError`.
    public init(environment: [String: String], service: String, derived: DeploymentKeys.Derived? = nil) throws {
        let settings = EnvironmentSettings(environment)
        var kafkaEnvironment = environment
        if settings.text("KAFKA_CLIENT_ID") == nil { kafkaEnvironment["KAFKA_CLIENT_ID"] = "identity.\(service)" }
        kafka = try KafkaConfiguration(environment: kafkaEnvironment)
        topicPlan = try TopicPlan(settings)
        database = try Self.database(settings)
        migrate = try settings.choice("MIGRATE", default: .start)
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
        batchSize = try settings.integer(.batchSize)
        loops = try settings.integer(.loops)
        drainTimeout = .seconds(try settings.integer(.drainTimeout))
        httpHost = settings.text("HTTP_HOST") ?? "127.0.0.1"
        httpPort = try settings.integer(.httpPort)
        logLevel = try settings.choice("LOG_LEVEL", default: .info)
        logFormat = try settings.choice("LOG_FORMAT", default: .json)
        traces = try TraceSettings(settings, service: service)
        conventions = ConventionsOptIn(settings.text(Setting.conventions.name) ?? "")
        owner = "\(ProcessInfo.processInfo.hostName):\(ProcessInfo.processInfo.processIdentifier)"
    }

    public var topics: Topics { topicPlan.topics }

    /// For one thread; `nil` where nobody asks for them.
    package var messagingMetrics: MessagingMetrics? {
        conventions.includes(.messaging) ? MessagingMetrics(topics) : nil
    }

    /// How long the inbox remembers a command; the topics that it reads keep their records as long.
    public var journalRetention: Duration { topicPlan.retention }

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

    private static func weakness(of keys: DeploymentKeys) -> ConfigurationProblem? {
        guard let key = keys.internalKeys.first(where: { $0.bitCount < SecretUse.goodLength * 8 }) else { return nil }
        return ConfigurationProblem(
            DeploymentKeys.internalKeyVariable,
            "or a previous one has \(key.bitCount / 8) bytes, fewer than \(SecretUse.goodLength); "
                + "make one with: openssl rand -hex 32")
    }

    public func authenticator(for apps: AppDirectory) -> Authenticator {
        Authenticator(trust: trust, apps: apps, keys: keys, topics: topics)
    }

    /// The settings of each loop of the process. Where there are several, each has a name of its own.
    /// - Throws: `ConfigurationProblem` when the store takes only one.
    package func ofEachLoop() throws(ConfigurationProblem) -> [ServiceConfiguration] {
        if loops == 1 { return [self] }
        guard database.isShared else {
            throw ConfigurationProblem(
                "LOOPS", "is \(loops), but SQLite has one writer; set it to 1, or DATABASE_URL to a PostgreSQL database"
            )
        }
        return (1...loops).map { number in
            var mine = self
            mine.kafka.clientID += "-\(number)"
            mine.kafka.groupInstance? += "-\(number)"
            mine.owner += "-\(number)"
            return mine
        }
    }

    /// Looks at what is used only when the servers start. A name of a host is looked up.
    /// - Throws: `ConfigurationProblem` for a host that nobody can listen on here.
    public func checkHosts(_ more: [(variable: String, host: String)] = []) throws(ConfigurationProblem) {
        for (variable, host) in [("HTTP_HOST", httpHost)] + more {
            if let problem = ListenAddress.problem(of: host) { throw ConfigurationProblem(variable, problem) }
        }
    }

    /// Looks at the place of SQLite's files. A folder that is not there yet is made; one that cannot be made now, because its
    /// disk is not there, is waited for.
    /// - Throws: `ConfigurationProblem` where a file stands in its way.
    public func checkFolder() throws(ConfigurationProblem) {
        guard case .sqlite(let folder, _) = database else { return }
        var path = folder[...]
        while !path.isEmpty {
            var status = stat()
            guard stat(String(path), &status) != 0 else {
                guard status.st_mode & S_IFMT != S_IFDIR else { return }
                let file = path == folder[...] ? "is a file" : "cannot be a folder: \(path) is a file"
                throw ConfigurationProblem(
                    "DATA_DIR",
                    "\(folder) \(file). Name a folder, which is made where it is not there, or move the file away")
            }
            path = path[..<(path.lastIndex(of: "/") ?? path.startIndex)]
        }
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
                "DATABASE_SCHEMA_PREFIX", "'\(prefix)' is not a letter and then at most 39 of a-z, 0-9 and _")
        }
        return prefix
    }

    private static func database(_ settings: EnvironmentSettings) throws -> DatabaseConfiguration {
        // Also where it is not used yet: the day that PostgreSQL is set it would be a mistake.
        let schemas = try schemas(settings)
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
        if let refusal = PostgreSQLDatabase.refusal(of: url) {
            throw ConfigurationProblem(refusal.variable ?? "DATABASE_URL", refusal.words)
        }
        return .postgresql(url: url, schemas: schemas, file: settings.text("DATABASE_URL_FILE"))
    }
}

/// Where a service keeps its state: one SQLite file per service, or a PostgreSQL schema per service.
public enum DatabaseConfiguration: Sendable, CustomStringConvertible {
    case sqlite(directory: String, synchronous: SQLiteDatabase.Synchronous)
    /// - Parameter schemas: what the names of the services' schemas begin with.
    /// - Parameter file: the file that the URL was read from, which is read again for each connection.
    case postgresql(url: String, schemas: String = DatabaseConfiguration.usualSchemas, file: String? = nil)

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
        case .postgresql(let url, let schemas, let file):
            return try PostgreSQLDatabase(
                url: url, urlFile: file, schema: "\(schemas)\(service)", isOfService: true, makesSchema: false,
                logger: logger)
        }
    }

    /// Where it is: the servers with their ports, or the folder. Without the user and the password.
    var place: String {
        switch self {
        case .sqlite: description
        case .postgresql(let url, _, _): "PostgreSQL at \(PostgreSQLDatabase.place(of: url))"
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
