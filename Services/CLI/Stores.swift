// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import Runtime
import Storage
import Supervision

/// Where the services' stores are: in the database of `DATABASE_URL`, else in the folder, as `DATA_DIR` or `--data-dir` has it.
/// Every command that opens stores finds them by this.
struct Stores {
    private let url: String?
    private let schemas: String
    private let folder: String

    /// - Throws: `ConfigurationProblem`.
    init(_ folder: DataFolder) throws {
        let settings = EnvironmentSettings(ProcessInfo.processInfo.environment)
        url = try settings.secret("DATABASE_URL")
        schemas = try ServiceConfiguration.schemas(settings)
        self.folder = folder.path
    }

    var arePostgreSQL: Bool { url != nil }

    /// All that are there, to be read beside the services.
    func readers() throws -> [StoreReader] {
        if let url { return try StoreReader.all(url: url, schemas: schemas) }
        return try serviceNames.compactMap { service in
            let path = file(service)
            return FileManager.default.fileExists(atPath: path) ? try StoreReader(service: service, file: path) : nil
        }
    }

    /// A service's store, to be written.
    /// - Returns: `nil` when there is no such file. Whether PostgreSQL has the schema is seen later.
    func open(_ service: String) throws -> (any SQLDatabase)? {
        if let url {
            return try PostgreSQLDatabase(url: url, schema: schemas + service, makesSchema: false, logger: .quiet)
        }
        let path = file(service)
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        do {
            return try SQLiteDatabase(path: path)
        } catch {
            throw Problem(.usage, "\(error.message).", "Stop the \(service) service first.")
        }
    }

    /// Says where a store was looked for.
    func missing(_ what: String) -> Problem {
        if arePostgreSQL {
            return Problem(
                .setting, "\(what) in the database of DATABASE_URL.",
                "Its services make it when they start. DATABASE_SCHEMA_PREFIX must be theirs.")
        }
        return Problem(
            .setting, "\(what) in \(folder), and DATABASE_URL is not set.",
            "Set it, or DATA_DIR as the services have it, or give --data-dir with the folder of `identitybus up`.")
    }

    private func file(_ service: String) -> String { "\(folder)/\(service).sqlite" }
}
