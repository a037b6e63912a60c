// SPDX-License-Identifier: Apache-2.0

import GRDB
import GRDBSQLite
import Glibc

/// A statement that was compiled once and runs many times.
///
/// GRDB compiles and owns it; values are bound and read here, straight from and to ``SQLValue``, because the way
/// through GRDB's own value types copies every text and blob once more.
final class SQLitePreparedStatement {
    /// Keeps `handle` alive.
    private let owner: Statement
    private let handle: OpaquePointer
    private let connection: OpaquePointer
    /// SQLite numbers named parameters by first appearance; this says which `$n` stands at each of its places.
    private let places: [Int]
    private let parameterCount: Int

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
        places = try Self.places(handle)
        parameterCount = places.max() ?? 0
    }

    /// Runs the statement to its end and hands over each row.
    func run(_ parameters: [SQLValue], row: (SQLRow) -> Void) throws(StorageError) {
        try bind(parameters)
        var code = sqlite3_step(handle)
        var misread: StorageError?
        while code == SQLITE_ROW {
            do {
                row(try readRow())
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
    func runCounting(_ parameters: [SQLValue]) throws(StorageError) -> Int {
        let before = sqlite3_total_changes64(connection)
        try run(parameters) { _ in }
        // sqlite3_changes keeps the number of an earlier statement when this one was not an insert, update or delete.
        return sqlite3_total_changes64(connection) == before ? 0 : Int(sqlite3_changes64(connection))
    }

    // MARK: Values

    private func bind(_ parameters: [SQLValue]) throws(StorageError) {
        guard parameters.count == parameterCount else {
            throw .invalid("the statement takes \(parameterCount) parameters, not \(parameters.count)")
        }
        for (index, place) in places.enumerated() {
            guard try bind(parameters[place - 1], at: CInt(index + 1)) == SQLITE_OK else { throw currentError() }
        }
    }

    private func bind(_ value: SQLValue, at index: CInt) throws(StorageError) -> CInt {
        switch value {
        case .null:
            return sqlite3_bind_null(handle, index)
        case .integer(let number):
            return sqlite3_bind_int64(handle, index, number)
        case .text(var text):
            guard let code = text.withUTF8({ bindText($0, at: index) }) else {
                throw .invalid("a text with a NUL character cannot be stored")
            }
            return code
        case .blob(let blob):
            guard !blob.isEmpty else { return sqlite3_bind_zeroblob(handle, index, 0) }
            return blob.withUnsafeBytes {
                sqlite3_bind_blob64(handle, index, $0.baseAddress, UInt64($0.count), Self.copied)
            }
        }
    }

    /// Returns nil for a text that PostgreSQL would refuse.
    private func bindText(_ bytes: UnsafeBufferPointer<UInt8>, at index: CInt) -> CInt? {
        guard let start = bytes.baseAddress, !bytes.isEmpty else {
            return sqlite3_bind_text(handle, index, "", 0, Self.copied)
        }
        guard memchr(start, 0, bytes.count) == nil else { return nil }
        return start.withMemoryRebound(to: CChar.self, capacity: bytes.count) {
            sqlite3_bind_text64(handle, index, $0, UInt64(bytes.count), Self.copied, UInt8(SQLITE_UTF8))
        }
    }

    /// SQLITE_TRANSIENT, a C macro that Swift does not import: SQLite copies the bytes during the call.
    private static var copied: sqlite3_destructor_type {
        unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    }

    private func readRow() throws(StorageError) -> SQLRow {
        let count = sqlite3_column_count(handle)
        var values: [SQLValue] = []
        values.reserveCapacity(Int(count))
        for column in 0..<count {
            values.append(try readValue(column))
        }
        return SQLRow(values)
    }

    private func readValue(_ column: CInt) throws(StorageError) -> SQLValue {
        switch sqlite3_column_type(handle, column) {
        case SQLITE_NULL:
            return .null
        case SQLITE_INTEGER:
            return .integer(sqlite3_column_int64(handle, column))
        case SQLITE_TEXT:
            guard let start = sqlite3_column_text(handle, column) else { throw currentError() }
            let count = Int(sqlite3_column_bytes(handle, column))
            return .text(String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self))
        case SQLITE_BLOB:
            let start = sqlite3_column_blob(handle, column)
            let count = Int(sqlite3_column_bytes(handle, column))
            return .blob([UInt8](UnsafeRawBufferPointer(start: start, count: count)))
        default:
            throw .invalid("column \(column) holds a floating-point number, which this store does not use")
        }
    }

    private func currentError() -> StorageError {
        .sqlite(code: sqlite3_extended_errcode(connection), message: String(cString: sqlite3_errmsg(connection)))
    }

    private static func places(_ handle: OpaquePointer) throws(StorageError) -> [Int] {
        var places: [Int] = []
        for index in 0..<sqlite3_bind_parameter_count(handle) {
            guard
                let name = sqlite3_bind_parameter_name(handle, index + 1), name[0] == UInt8(ascii: "$"),
                let place = Int(String(cString: name + 1)), place > 0
            else {
                throw .invalid("parameters are written $1, $2, …")
            }
            places.append(place)
        }
        return places
    }
}
