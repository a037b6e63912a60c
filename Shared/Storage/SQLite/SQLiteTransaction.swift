// SPDX-License-Identifier: Apache-2.0

import GRDB

/// A running transaction on SQLite. See ``SQLTransaction`` for the rules that both engines keep.
final class SQLiteTransaction: SQLTransaction {
    let engine = SQLEngine.sqlite
    private let database: Database
    private let statements: SQLiteStatementCache
    /// The first failure; nothing more is run after it.
    private(set) var failure: StorageError?

    init(_ database: Database, statements: SQLiteStatementCache) {
        self.database = database
        self.statements = statements
    }

    /// Makes later use of an escaped reference an error instead of a statement outside of any transaction.
    func end() {
        failure = failure ?? .invalid("the transaction has ended")
    }

    func query(_ sql: String, _ parameters: [SQLValue]) throws(StorageError) -> [SQLRow] {
        try guarded { () throws(StorageError) in
            var rows: [SQLRow] = []
            try statements.statement(sql, in: database).run(parameters) { rows.append($0) }
            return rows
        }
    }

    func queryEach(_ sql: String, _ parameterSets: [[SQLValue]]) throws(StorageError) -> [[SQLRow]] {
        try guarded { () throws(StorageError) in
            let statement = try statements.statement(sql, in: database)
            var answers: [[SQLRow]] = []
            answers.reserveCapacity(parameterSets.count)
            for parameters in parameterSets {
                var rows: [SQLRow] = []
                try statement.run(parameters) { rows.append($0) }
                answers.append(rows)
            }
            return answers
        }
    }

    func execute(_ sql: String, _ parameters: [SQLValue]) throws(StorageError) -> Int {
        try guarded { () throws(StorageError) in
            try statements.statement(sql, in: database).runCounting(parameters)
        }
    }

    func executeEach(_ sql: String, _ parameterSets: [[SQLValue]]) throws(StorageError) -> [Int] {
        try guarded { () throws(StorageError) in
            let statement = try statements.statement(sql, in: database)
            var counts: [Int] = []
            counts.reserveCapacity(parameterSets.count)
            for parameters in parameterSets {
                counts.append(try statement.runCounting(parameters))
            }
            return counts
        }
    }

    private func guarded<T>(_ work: () throws(StorageError) -> T) throws(StorageError) -> T {
        if let failure { throw failure }
        do {
            return try work()
        } catch {
            failure = error
            throw error
        }
    }
}
