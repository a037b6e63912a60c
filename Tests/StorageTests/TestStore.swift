// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging

@testable import Storage

/// A fresh, empty store on one of the engines; its traces are removed when the test lets go of it.
final class TestStore {
    struct MissingServer: Error, CustomStringConvertible {
        let description = """
            TEST_DATABASE_URL is not set, so nothing can be said about PostgreSQL. Start a server with \
            scripts/throwaway-postgres start DIR and set the variable to the URL it prints.
            """
    }

    let engine: SQLEngine
    let name: String
    private let directory: URL

    init(_ engine: SQLEngine) throws {
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
        case .sqlite: try? FileManager.default.removeItem(at: directory)
        case .postgresql: try? PostgreSQLDatabase.forTests(schema: name).dropSchema(name)
        }
    }

    static func serverURL() throws -> String {
        guard let url = ProcessInfo.processInfo.environment["TEST_DATABASE_URL"], !url.isEmpty else {
            throw MissingServer()
        }
        return url
    }

    var path: String { directory.appending(path: "store.sqlite").path }

    func open() throws -> any SQLDatabase {
        switch engine {
        case .sqlite: try SQLiteDatabase(path: path)
        case .postgresql: try PostgreSQLDatabase.forTests(schema: name)
        }
    }

    /// Opens the store with the shared tables in it.
    func openMigrated() throws -> any SQLDatabase {
        let database = try open()
        try Migrator(StorageSchema.migrations).run(on: database)
        return database
    }

    /// Opens the store with one table `items(id, name, bytes)` in it.
    func openWithItems() throws -> any SQLDatabase {
        let database = try open()
        try database.transaction { transaction in
            try transaction.execute("CREATE TABLE items (id BIGINT PRIMARY KEY, name TEXT UNIQUE, bytes BYTEA)")
        }
        return database
    }
}

extension PostgreSQLDatabase {
    static func forTests(schema: String, isolation: Isolation = .repeatableRead) throws -> PostgreSQLDatabase {
        try PostgreSQLDatabase(
            url: try TestStore.serverURL(), schema: schema, isolation: isolation,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
    }

    func dropSchema(_ name: String) throws {
        try transaction { try $0.execute("DROP SCHEMA IF EXISTS \"\(name)\" CASCADE") }
    }
}

/// Runs `body` and returns the kind of the storage error that it throws.
func failure<T>(_ body: () throws -> T) -> StorageError? {
    do {
        _ = try body()
        return nil
    } catch {
        return error as? StorageError
    }
}

extension SQLDatabase {
    func read(_ sql: String, _ parameters: [SQLValue] = []) throws -> [SQLRow] {
        try transaction { try $0.query(sql, parameters) }
    }
}
