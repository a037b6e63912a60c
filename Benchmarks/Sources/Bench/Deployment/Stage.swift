// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Logging
import Messaging
import Storage
import WireJSON

/// A deployment for one measurement: empty stores, a broker, an app with one key.
final class Stage {
    let broker: Broker
    let engine: Engine
    /// The services that run; the one under test is the first.
    let services: [String]
    /// The folder of this measurement; removed at the end.
    let folder: String
    private let binaries: String
    private let databaseURL: String?
    private var environment: [String: String]
    private var starts = 0

    static let app = "bench"
    static let keyID = "bench-key"
    static let keySecret = "bench-secret-bench-key-with-32-bytes"
    static let internalSecret = "bench-internal-key-0123456789"

    /// - Parameters:
    ///   - settings: the app's sections in the apps file, in YAML.
    ///   - binaries: the folder of the services' executables.
    ///   - folder: on the disk that is to be measured.
    ///   - databaseURL: of an empty PostgreSQL database; its schemas of the services are dropped first.
    init(
        engine: Engine, partitions: Int, services: [String], settings: [String], binaries: String, folder: String,
        databaseURL: String?
    ) throws {
        self.engine = engine
        self.services = services
        self.binaries = binaries
        self.folder = folder
        self.databaseURL = databaseURL
        broker = try Broker(partitions: partitions)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let apps = """
            apps:
              - id: \(Self.app)
                keys:
                  - id: \(Self.keyID)
                    secret: \(Self.keySecret)
                    scopes: [user.link, sdk, identity.sync, verification.check]

            """ + settings.map { "    \($0)\n" }.joined()
        try apps.write(toFile: "\(folder)/apps.yaml", atomically: true, encoding: .utf8)
        let inherited = ProcessInfo.processInfo.environment
        environment = inherited.filter {
            ["PATH", "LD_LIBRARY_PATH", "BATCH_SIZE", "SQLITE_SYNCHRONOUS"].contains($0.key)
        }
        environment.merge(broker.environment) { _, own in own }
        environment["IDENTITYBUS_APPS"] = "\(folder)/apps.yaml"
        environment["IDENTITYBUS_INTERNAL_KEY"] = Self.internalSecret
        environment["DATA_DIR"] = folder
        environment["IDENTITYBUS_PARENT"] = String(ProcessInfo.processInfo.processIdentifier)
        if engine == .postgresql {
            guard let databaseURL else { throw BenchError("no PostgreSQL: give --database-url") }
            environment["DATABASE_URL"] = databaseURL
            try dropSchemas()
        }
    }

    /// The topic of the service under test.
    var commands: String { broker.topics.commands(services[0]) }

    /// Starts the services and waits until they are ready.
    /// - Returns: the services, and when the last one was ready.
    func start() throws -> (ServiceGroup, ready: Date) {
        starts += 1
        let group = ServiceGroup(
            processes: try services.map { name in
                try ServiceProcess(
                    name: name, executable: "\(binaries)/identitybus-\(name)", environment: environment,
                    logPath: "\(folder)/\(name)-\(starts).log")
            })
        do {
            return (group, try group.ready())
        } catch {
            group.stop()
            throw error
        }
    }

    /// Has the commands decided that a workload needs before it, by services that run.
    /// - Returns: the records to measure with.
    func prepare(_ workload: Workload, with services: ServiceGroup) throws -> [Record] {
        guard !workload.preparation.isEmpty else { return try workload.records([:]) }
        let counter = try OutputCounter(self)
        defer { counter.close() }
        try Preload.send(workload.preparation, to: broker)
        var results: [String: JSONValue] = [:]
        try counter.wait(replies: workload.preparation.count, whileRunning: services) { record in
            if let answer = Answer(record) { results[answer.commandID] = answer.result ?? .null }
        }
        guard counter.statuses.keys.allSatisfy({ $0 == "succeeded" }) else {
            throw BenchError("the preparation of \(workload.name) was answered \(counter.statuses)")
        }
        return try workload.records(results)
    }

    /// The name of a store that is none of a service.
    static let scratchStore = "bench"

    /// A service's store, to be opened while the service does not run.
    func store(of service: String) throws -> any SQLDatabase {
        switch engine {
        case .sqlite: try SQLiteDatabase(path: "\(folder)/\(service).sqlite")
        case .postgresql:
            try PostgreSQLDatabase(url: databaseURL ?? "", schema: "identity_\(service)", logger: .quiet)
        }
    }

    /// Commands that an earlier run left in a journal would be answered from it.
    private func dropSchemas() throws {
        let database = try store(of: Self.scratchStore)
        defer { database.close() }
        for schema in (services + [Self.scratchStore]).map({ "identity_\($0)" }) {
            _ = try database.transaction { try $0.execute("DROP SCHEMA IF EXISTS \(schema) CASCADE") }
        }
    }

    func close() {
        broker.close()
        try? FileManager.default.removeItem(atPath: folder)
    }
}
