// SPDX-License-Identifier: Apache-2.0

import GRDB

/// The compiled statements of one connection, by their text.
final class SQLiteStatementCache {
    /// Far above what a service writes by hand; only keeps generated texts from filling the memory.
    private static let limit = 256
    private var statements: [String: SQLitePreparedStatement] = [:]

    func statement(_ sql: String, in database: Database) throws(StorageError) -> SQLitePreparedStatement {
        if let known = statements[sql] { return known }
        let statement = try SQLitePreparedStatement(sql, in: database)
        if statements.count >= Self.limit { removeAll() }
        statements[sql] = statement
        return statement
    }

    func removeAll() {
        statements.removeAll(keepingCapacity: true)
    }
}
