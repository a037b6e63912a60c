// SPDX-License-Identifier: Apache-2.0

import Foundation
public import Logging
public import Storage

/// A fresh, empty store on one of the engines; its traces are removed when the test lets go of it.
public final class TestStore {
    public let engine: SQLEngine
    /// The schema on PostgreSQL.
    public let name: String
    private let directory: URL

    public init(_ engine: SQLEngine) throws {
        self.engine = engine
        name = "t" + UUID().uuidString.lowercased().filter { $0 != "-" }
        directory = FileManager.default.temporaryDirectory.appending(path: "identitybus-\(name)")
        switch engine {
        case .sqlite: try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        case .postgresql: _ = try Self.serverURL()
        }
    }

    deinit {
        switch engine {
        case .sqlite:
            try? FileManager.default.removeItem(at: directory)
        case .postgresql:
            _ = try? open().transaction { try $0.execute("DROP SCHEMA IF EXISTS \"\(name)\" CASCADE") }
        }
    }

    /// The PostgreSQL server of the tests. It answers late beside tests that take all cores: connecting may take longer
    /// than a service would wait.
    public static func serverURL() throws -> String {
        guard let url = ProcessInfo.processInfo.environment["TEST_DATABASE_URL"], !url.isEmpty else {
            throw MissingServer()
        }
        return url.contains("connect_timeout") ? url : "\(url)\(url.contains("?") ? "&" : "?")connect_timeout=60"
    }

    public struct MissingServer: Error, CustomStringConvertible {
        public let description = """
            TEST_DATABASE_URL is not set, so nothing can be said about PostgreSQL. Start a server with \
            scripts/throwaway-postgres start DIR and set the variable to the URL it prints.
            """
    }

    /// The SQLite file.
    public var path: String { directory.appending(path: "store.sqlite").path }

    /// Opens the store. On PostgreSQL this may be done more than once at a time, as replicas do it.
    public func open(_ synchronous: SQLiteDatabase.Synchronous = .full) throws -> any SQLDatabase {
        switch engine {
        case .sqlite: try SQLiteDatabase(path: path, synchronous: synchronous)
        case .postgresql: try PostgreSQLDatabase(url: Self.serverURL(), schema: name, logger: .quiet)
        }
    }

    /// Opens the store with the shared tables in it, and with more when there are more migrations.
    public func openMigrated(
        _ synchronous: SQLiteDatabase.Synchronous = .full, _ migrations: [Migration] = []
    ) throws -> any SQLDatabase {
        let database = try open(synchronous)
        try Migrator(StorageSchema.migrations + migrations).run(on: database)
        return database
    }
}

extension Logger {
    /// Says nothing.
    public static var quiet: Logger { Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }) }
}
