// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
import Crypto
import Foundation
import Logging
import Storage

/// A deployment for one measurement: an empty store, a broker, an app with one key.
final class Stage {
    let broker: Broker
    let engine: Engine
    let executable: String
    /// The folder of this measurement; removed at the end.
    let folder: String
    private var environment: [String: String]
    private var starts = 0

    static let app = "bench"
    static let keyID = "bench-backend"
    static let keySecret = "bench-secret-bench-backend"
    static let internalSecret = "bench-internal-key-0123456789"

    /// - Parameters:
    ///   - folder: on the disk that is to be measured.
    ///   - databaseURL: of an empty PostgreSQL database; its schema of the service is dropped first.
    init(engine: Engine, partitions: Int, executable: String, folder: String, databaseURL: String?) throws {
        self.engine = engine
        self.executable = executable
        self.folder = folder
        broker = try Broker(partitions: partitions)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let apps = """
            apps:
              - id: \(Self.app)
                keys:
                  - {id: \(Self.keyID), secret: \(Self.keySecret), scopes: [user.link]}

            """
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
            try Self.empty(databaseURL)
            environment["DATABASE_URL"] = databaseURL
        }
    }

    var commands: String { broker.topics.commands(Broker.service) }

    func start() throws -> ServiceProcess {
        starts += 1
        return try ServiceProcess(
            executable: executable, environment: environment, logPath: "\(folder)/service-\(starts).log")
    }

    /// Commands that an earlier run left in the journal would be answered from it.
    private static func empty(_ databaseURL: String) throws {
        let database = try PostgreSQLDatabase(url: databaseURL, schema: "identity_bench", logger: .quiet)
        defer { database.close() }
        for schema in ["identity_\(Broker.service)", Limits.schema, "identity_bench"] {
            _ = try database.transaction { try $0.execute("DROP SCHEMA IF EXISTS \(schema) CASCADE") }
        }
    }

    func close() {
        broker.close()
        try? FileManager.default.removeItem(atPath: folder)
    }
}
