// SPDX-License-Identifier: Apache-2.0

import Logging
import Storage
import TestKit

extension TestStore {
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
            url: try TestStore.serverURL(), schema: schema, isolation: isolation, logger: .quiet)
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
