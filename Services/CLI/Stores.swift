// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
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

    /// Those that are there, to be read beside the services.
    /// - Throws: `Problem` where this user may not read one.
    func readers(of services: [String] = serviceNames) throws -> [StoreReader] {
        if let url { return try StoreReader.all(services, url: url, schemas: schemas) }
        return try services.compactMap { service in
            let path = file(service)
            try Self.require(F_OK, of: path)
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
        try Self.require(F_OK, of: path)
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        try Self.refuseFolder(path)
        // SQLite's log, and the lock, come to be beside it.
        for needed in [path, "\(path).lock", "\(folder)/."] { try Self.require(R_OK | W_OK, of: needed) }
        do {
            return try SQLiteDatabase(path: path)
        } catch {
            if error.isInUse { throw Problem(.usage, "\(error.message).", "Stop the \(service) service first.") }
            throw Problem(
                .setting, "\(error.message).",
                advice: error.isDamaged ? Problem.damagedAdvice : [Problem.isItAStore])
        }
    }

    /// - Throws: `Problem` where a folder is in the place of a file.
    static func refuseFolder(_ path: String) throws {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return }
        throw Problem(
            .setting, "\(path) is a folder, and should be a file of SQLite.",
            "Move it away, and put the store there, or a back-up (docs/operations.md, \"Restoring a backup\").")
    }

    /// - Parameter mode: `F_OK`, or what is to be done with the file.
    /// - Throws: `Problem` where this user may not; not where there is no such file.
    static func require(_ mode: Int32, of path: String) throws {
        guard access(path, mode) != 0, [EACCES, EPERM, EROFS].contains(errno) else { return }
        let reason = String(cString: strerror(errno)).lowercased()
        throw Problem(
            .noRight, "\(path) cannot be \(mode & W_OK == 0 ? "read" : "written"): \(reason).",
            "Be the user whose services these are, or one who may do the same.")
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
