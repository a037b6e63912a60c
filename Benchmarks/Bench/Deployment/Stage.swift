// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Foundation
import Logging
import Storage
import WireJSON

/// A deployment for one measurement: empty stores, a broker, an app with one key.
final class Stage {
    let broker: Broker
    let engine: Engine
    /// The services that run; the one under test is the first. Whoever explains asks all of them.
    let services: [String]
    /// The folder of this measurement; removed at the end.
    let folder: String
    private let binaries: String
    private let databaseURL: String?
    private let postgresPID: Int32?
    private let brokerPID: Int32?
    private let wrapper: [String]
    private let instead: [String]?
    private var environment: [String: String]
    private var starts = 0

    static let app: AppID = "bench"
    static let keyID = "bench-key"
    static let keySecret = "bench-secret-bench-key-with-32-bytes"
    static let internalSecret = "bench-internal-key-with-32-bytes-or-more"

    init(_ options: BenchCommand) throws {
        engine = options.engine
        services = options.mode == .facts ? ["link", "user", "sync", "verification"] : options.subject.services
        binaries = options.binaries
        folder = "\(options.folder)/\(options.engine.rawValue)-\(UInt32.random(in: 0...(.max)))"
        databaseURL = options.databaseURL
        postgresPID = options.postgresPID
        brokerPID = options.brokerPID
        wrapper = options.wrapper?.split(separator: " ").map(String.init) ?? []
        instead = options.instead?.split(separator: " ").map(String.init)
        broker = try Broker(partitions: options.partitions)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let apps = """
            apps:
              - id: \(Self.app)
                keys:
                  - id: \(Self.keyID)
                    secret: \(Self.keySecret)
                    scopes: [user.link, sdk, identity.sync, verification.check]

            """ + options.subject.settings.map { "    \($0)\n" }.joined()
        try apps.write(toFile: "\(folder)/apps.yaml", atomically: true, encoding: .utf8)
        let inherited = ProcessInfo.processInfo.environment
        environment = inherited.filter {
            ["PATH", "LD_LIBRARY_PATH", "BATCH_SIZE", "SQLITE_SYNCHRONOUS", "JOURNAL_RETENTION_HOURS"].contains($0.key)
        }
        // SQLite has one writer, and so one loop.
        if engine == .postgresql { environment["LOOPS"] = inherited["LOOPS"] }
        environment.merge(broker.environment) { _, own in own }
        environment["IDENTITYBUS_APPS"] = "\(folder)/apps.yaml"
        environment["IDENTITYBUS_INTERNAL_KEY"] = Self.internalSecret
        environment["DATA_DIR"] = folder
        environment["BENCH_APP_KEY"] = "\(Self.keyID).\(Self.keySecret)"
        environment["IDENTITYBUS_PARENT"] = String(ProcessInfo.processInfo.processIdentifier)
        if engine == .postgresql {
            guard let databaseURL else { throw BenchError("no PostgreSQL: give --database-url") }
            environment["DATABASE_URL"] = databaseURL
            try dropSchemas()
        }
    }

    /// The topic of the service under test.
    var commands: String { broker.topics.commands(services[0]) }

    /// Starts the services; ``ServiceGroup/ready(within:)`` waits for them.
    /// - Parameter isMeasured: whether a program stands in front of them, if one was given.
    func launch(isMeasured: Bool = false) throws -> ServiceGroup {
        starts += 1
        let front = isMeasured ? wrapper : []
        let programs = instead.map { [("contender", $0)] } ?? services.map { ($0, ["\(binaries)/identitybus-\($0)"]) }
        return ServiceGroup(
            processes: try programs.map { name, command in
                try ServiceProcess(
                    name: name, command: front + command, environment: environment,
                    logPath: "\(folder)/\(name)-\(starts).log")
            })
    }

    /// Starts the services and waits until they are ready.
    func start() throws -> ServiceGroup {
        let group = try launch()
        do {
            try group.ready()
            return group
        } catch {
            group.stop()
            throw error
        }
    }

    /// Runs the command line as somebody does who has the deployment's settings.
    /// - Returns: how long it took, from its start to its end.
    func time(_ arguments: [String]) throws -> Duration {
        let process = Process()
        process.executableURL = URL(filePath: "\(binaries)/identitybus")
        process.arguments = arguments
        process.environment = environment
        process.standardInput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        // `waitUntilExit` and `terminationHandler` look every 50 ms; what the process writes to ends with it at once.
        let output = Pipe()
        process.standardOutput = output
        let start = ContinuousClock.now
        try process.run()
        _ = try output.fileHandleForReading.readToEnd()
        let duration = ContinuousClock.now - start
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw BenchError("identitybus \(arguments.joined(separator: " ")) ended with \(process.terminationStatus)")
        }
        return duration
    }

    /// What the services sign with.
    var keys: DeploymentKeys {
        DeploymentKeys(internalKeys: [SymmetricKey(data: Array(Self.internalSecret.utf8))])
    }

    /// Of the services, as shipped unless somebody set it.
    var batchSize: String { environment["BATCH_SIZE"] ?? "1000" }

    /// Where rows are written without a service: a file beside the services', or PostgreSQL.
    var floorStore: String { engine == .sqlite ? "\(folder)/floor.sqlite" : databaseURL ?? "" }

    /// With the broker's address and clients' settings.
    var floorEnvironment: [String: String] { environment }

    var cpuTime: CPUTime { CPUTime(postgres: postgresPID, broker: brokerPID) }

    /// Has the commands decided that a workload needs before it, by services that run.
    /// - Returns: the records to measure with.
    func prepare(_ workload: Workload, with services: ServiceGroup) throws -> [Record] {
        guard !workload.preparation.isEmpty else { return try workload.records([:]) }
        let counter = try OutputCounter(self)
        defer { counter.close() }
        try Preload.send(workload.preparation, to: broker)
        var results: [String: JSONValue] = [:]
        try counter.wait(replies: workload.preparation.count, whileRunning: services)
        for answer in counter.replies.compactMap(Answer.init) { results[answer.commandID] = answer.result ?? .null }
        let statuses = counter.statuses
        guard statuses.keys.allSatisfy({ $0 == "succeeded" }) else {
            throw BenchError("the preparation of \(workload.name) was answered \(statuses)")
        }
        return try workload.records(results)
    }

    /// A service's store, to be opened while the service does not run.
    func store(of service: String) throws -> any SQLDatabase {
        switch engine {
        case .sqlite: try SQLiteDatabase(path: "\(folder)/\(service).sqlite")
        case .postgresql:
            try PostgreSQLDatabase(url: databaseURL ?? "", schema: "identity_\(service)", logger: .quiet)
        }
    }

    /// What a commit waits for.
    func durability() throws -> String {
        guard engine == .postgresql else {
            let synchronous = environment["SQLITE_SYNCHRONOUS"] ?? "full"
            return "WAL, synchronous=\(synchronous)"
        }
        let database = try store(of: services[0])
        defer { database.close() }
        return try database.transaction { transaction in
            try transaction.query(
                """
                SELECT name || '=' || setting FROM pg_settings
                WHERE name IN ('server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'wal_sync_method',
                    'shared_buffers', 'max_wal_size', 'autovacuum')
                ORDER BY name
                """
            ).map { try $0.text(0) }.joined(separator: ", ")
        }
    }

    /// Commands that an earlier run left in an inbox would be answered from it.
    private func dropSchemas() throws {
        let database = try store(of: services[0])
        defer { database.close() }
        for schema in services.map({ "identity_\($0)" }) {
            _ = try database.transaction { try $0.execute("DROP SCHEMA IF EXISTS \(schema) CASCADE") }
        }
    }

    func close() {
        broker.close()
        try? FileManager.default.removeItem(atPath: folder)
    }
}
