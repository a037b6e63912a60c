// SPDX-License-Identifier: Apache-2.0

import GRDB
import GRDBSQLite
import Glibc

/// A statement that was compiled once and runs many times. Takes its own values and shows its own rows.
///
/// GRDB compiles and owns it; values are bound and read here, because the way through GRDB's own value types copies
/// every text and blob once more.
final class SQLiteStatement: SQLBinder, SQLCursor {
    /// Keeps `handle` alive.
    private let owner: Statement
    private let handle: OpaquePointer
    private let connection: OpaquePointer
    /// SQLite numbers named parameters by first appearance; this says which number each `$n` has, 0 for none.
    private let numbers: [CInt]
    /// How many values were bound for this run.
    private var bound = 0

    init(_ sql: String, in database: Database) throws(StorageError) {
        do {
            owner = try database.makeStatement(sql: sql)
        } catch let error as DatabaseError {
            throw .sqlite(error)
        } catch {
            throw .invalid("the statement cannot be compiled")
        }
        handle = owner.sqliteStatement
        guard let connection = database.sqliteConnection else {
            throw .unavailable("the database is closed")
        }
        self.connection = connection
        numbers = try Self.numbers(handle)
    }

    /// Runs the statement to its end and shows each row.
    func run(
        bind: (any SQLBinder) throws(StorageError) -> Void, row: (any SQLCursor) throws(StorageError) -> Void
    ) throws(StorageError) {
        bound = 0
        try bind(self)
        guard bound == numbers.count else {
            throw .invalid("the statement takes \(numbers.count) parameters, not \(bound)")
        }
        var code = sqlite3_step(handle)
        var misread: StorageError?
        while code == SQLITE_ROW {
            do {
                try row(self)
            } catch {
                misread = error
                break
            }
            code = sqlite3_step(handle)
        }
        let failure = code == SQLITE_DONE || code == SQLITE_ROW ? misread : currentError()
        // Also frees the read lock of a statement that was not run to its end; its result repeats what step said.
        sqlite3_reset(handle)
        if let failure { throw failure }
    }

    /// Runs the statement to its end and returns how many rows it changed.
    func runCounting(bind: (any SQLBinder) throws(StorageError) -> Void) throws(StorageError) -> Int {
        let before = sqlite3_total_changes64(connection)
        try run(bind: bind) { _ in }
        // sqlite3_changes keeps the number of an earlier statement when this one was not an insert, update or delete.
        return sqlite3_total_changes64(connection) == before ? 0 : Int(sqlite3_changes64(connection))
    }

    // MARK: Binding

    func bindNull() throws(StorageError) {
        guard let number = nextNumber() else { return }
        try check(sqlite3_bind_null(handle, number))
    }

    func bind(_ integer: Int64) throws(StorageError) {
        guard let number = nextNumber() else { return }
        try check(sqlite3_bind_int64(handle, number, integer))
    }

    func bind(_ text: String) throws(StorageError) {
        guard let number = nextNumber() else { return }
        var text = text
        guard let code = text.withUTF8({ bindText($0, at: number) }) else {
            throw .invalid("a text with a NUL character cannot be stored")
        }
        try check(code)
    }

    func bind(_ bytes: [UInt8]) throws(StorageError) {
        guard let number = nextNumber() else { return }
        guard !bytes.isEmpty else { return try check(sqlite3_bind_zeroblob(handle, number, 0)) }
        try check(
            bytes.withUnsafeBytes {
                sqlite3_bind_blob64(handle, number, $0.baseAddress, UInt64($0.count), Self.copied)
            })
    }

    /// Nil for a value that the statement has no place for.
    private func nextNumber() -> CInt? {
        bound += 1
        guard bound <= numbers.count, numbers[bound - 1] > 0 else { return nil }
        return numbers[bound - 1]
    }

    private func check(_ code: CInt) throws(StorageError) {
        guard code == SQLITE_OK else { throw currentError() }
    }

    /// Returns nil for a text that PostgreSQL would refuse.
    private func bindText(_ bytes: UnsafeBufferPointer<UInt8>, at number: CInt) -> CInt? {
        guard let start = bytes.baseAddress, !bytes.isEmpty else {
            return sqlite3_bind_text(handle, number, "", 0, Self.copied)
        }
        guard memchr(start, 0, bytes.count) == nil else { return nil }
        return start.withMemoryRebound(to: CChar.self, capacity: bytes.count) {
            sqlite3_bind_text64(handle, number, $0, UInt64(bytes.count), Self.copied, UInt8(SQLITE_UTF8))
        }
    }

    /// SQLITE_TRANSIENT, a C macro that Swift does not import: SQLite copies the bytes during the call.
    private static var copied: sqlite3_destructor_type {
        unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    }

    // MARK: Reading

    var columnCount: Int { Int(sqlite3_column_count(handle)) }

    func value(_ column: Int) throws(StorageError) -> SQLValue {
        switch try type(column) {
        case SQLITE_NULL: return .null
        case SQLITE_INTEGER: return .integer(try integer(column))
        case SQLITE_TEXT: return .text(try text(column))
        case SQLITE_BLOB: return .blob(try blob(column))
        default:
            throw .invalid("column \(column) holds a floating-point number, which this store does not use")
        }
    }

    func isNull(_ column: Int) throws(StorageError) -> Bool { try type(column) == SQLITE_NULL }

    func integer(_ column: Int) throws(StorageError) -> Int64 {
        try expect(SQLITE_INTEGER, column, "an integer")
        return sqlite3_column_int64(handle, CInt(column))
    }

    func text(_ column: Int) throws(StorageError) -> String {
        try expect(SQLITE_TEXT, column, "text")
        guard let start = sqlite3_column_text(handle, CInt(column)) else { throw currentError() }
        let count = Int(sqlite3_column_bytes(handle, CInt(column)))
        return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    func blob(_ column: Int) throws(StorageError) -> [UInt8] {
        try expect(SQLITE_BLOB, column, "a blob")
        let start = sqlite3_column_blob(handle, CInt(column))
        let count = Int(sqlite3_column_bytes(handle, CInt(column)))
        return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
    }

    private func type(_ column: Int) throws(StorageError) -> CInt {
        guard column >= 0, column < columnCount else { throw .noColumn(column, of: columnCount) }
        return sqlite3_column_type(handle, CInt(column))
    }

    private func expect(_ wanted: CInt, _ column: Int, _ name: String) throws(StorageError) {
        guard try type(column) == wanted else { throw .mismatch(column, try value(column), name) }
    }

    private func currentError() -> StorageError {
        .sqlite(code: sqlite3_extended_errcode(connection), message: String(cString: sqlite3_errmsg(connection)))
    }

    private static func numbers(_ handle: OpaquePointer) throws(StorageError) -> [CInt] {
        var numbers: [CInt] = []
        for number in 0..<sqlite3_bind_parameter_count(handle) {
            guard
                let name = sqlite3_bind_parameter_name(handle, number + 1), name[0] == UInt8(ascii: "$"),
                let place = Int(String(cString: name + 1)), place > 0
            else {
                throw .invalid("parameters are written $1, $2, …")
            }
            while numbers.count < place { numbers.append(0) }
            numbers[place - 1] = number + 1
        }
        return numbers
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

    /// Whether SQLite cannot make sense of the file. Extended codes have the primary one in their last byte; a `SQLSTATE` of
    /// PostgreSQL has five characters.
    package var isDamaged: Bool {
        guard let sqlState, sqlState.utf8.count < 5, let code = CInt(sqlState) else { return false }
        return [SQLITE_CORRUPT, SQLITE_NOTADB].contains(code & 0xff)
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
