// SPDX-License-Identifier: Apache-2.0

import GRDB
import GRDBSQLite

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

    func queryEach(
        _ sql: String, count: Int, bind: (Int, any SQLBinder) throws(StorageError) -> Void,
        row: (Int, any SQLCursor) throws(StorageError) -> Void
    ) throws(StorageError) {
        try guarded { () throws(StorageError) in
            let statement = try statements.statement(sql, in: database)
            for index in 0..<count {
                try statement.run { (binder) throws(StorageError) in
                    try bind(index, binder)
                } row: { (cursor) throws(StorageError) in
                    try row(index, cursor)
                }
            }
        }
    }

    func executeEach(
        _ sql: String, count: Int, bind: (Int, any SQLBinder) throws(StorageError) -> Void
    ) throws(StorageError) -> [Int] {
        try guarded { () throws(StorageError) in
            let statement = try statements.statement(sql, in: database)
            var counts: [Int] = []
            counts.reserveCapacity(count)
            for index in 0..<count {
                counts.append(
                    try statement.runCounting { (binder) throws(StorageError) in
                        try bind(index, binder)
                    })
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

extension StorageError {
    /// What one of SQLite's extended result codes means to the caller.
    ///
    /// A damaged or unreadable file counts as `unavailable`: the request is not to blame, and must not be given up.
    static func sqlite(code: CInt, message: String) -> StorageError {
        let kind: Kind =
            switch ResultCode(rawValue: code) {
            case .SQLITE_CONSTRAINT_UNIQUE, .SQLITE_CONSTRAINT_PRIMARYKEY, .SQLITE_CONSTRAINT_ROWID: .conflict
            default: kind(primaryCode: code & 0xff)
            }
        return StorageError(kind: kind, message: message, sqlState: String(code))
    }

    static func sqlite(_ error: DatabaseError) -> StorageError {
        let code = error.extendedResultCode.rawValue
        return sqlite(code: code, message: error.message ?? String(cString: sqlite3_errstr(code)))
    }

    /// The same error as the answer to a COMMIT. After a failed write to the log the commit record may be in it all
    /// the same, and a recovery may find it there.
    static func sqliteCommit(_ error: DatabaseError) -> StorageError {
        let failure = sqlite(error)
        return error.resultCode.rawValue == SQLITE_IOERR ? failure.atCommit : failure
    }

    private static func kind(primaryCode: CInt) -> Kind {
        switch primaryCode {
        case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_NOMEM, SQLITE_READONLY, SQLITE_INTERRUPT, SQLITE_IOERR,
            SQLITE_CORRUPT, SQLITE_FULL, SQLITE_CANTOPEN, SQLITE_PROTOCOL, SQLITE_PERM, SQLITE_NOTADB,
            SQLITE_INTERNAL, SQLITE_NOLFS, SQLITE_AUTH:
            .unavailable
        default:
            .invalid
        }
    }
}
