// SPDX-License-Identifier: Apache-2.0

/// One value that goes into or comes out of a statement, the same on both engines.
///
/// There are no floating-point numbers, dates or booleans: store a date as milliseconds in a `BIGINT` and a flag
/// as 0 or 1, and the same text of SQL means the same on SQLite and PostgreSQL. A text must not hold a NUL
/// character (PostgreSQL cannot store one); both engines refuse it as ``StorageError/Kind/invalid``.
public enum SQLValue: Sendable, Hashable {
    case null
    case integer(Int64)
    case text(String)
    /// Raw bytes. An empty blob is a value and differs from `null`.
    case blob([UInt8])

    /// The text, or `null` where there is none.
    public init(_ text: String?) {
        self = text.map { .text($0) } ?? .null
    }

    /// The number, or `null` where there is none.
    public init(_ integer: Int64?) {
        self = integer.map { .integer($0) } ?? .null
    }

    /// The bytes, or `null` where there are none.
    public init(_ bytes: [UInt8]?) {
        self = bytes.map { .blob($0) } ?? .null
    }

    public init(_ integer: some BinaryInteger) {
        self = .integer(Int64(integer))
    }

    public func bind(to binder: any SQLBinder) throws(StorageError) {
        switch self {
        case .null: try binder.bindNull()
        case .integer(let number): try binder.bind(number)
        case .text(let text): try binder.bind(text)
        case .blob(let bytes): try binder.bind(bytes)
        }
    }

    /// What the value is, for error messages: never the value itself.
    var typeName: String {
        switch self {
        case .null: "null"
        case .integer: "an integer"
        case .text: "text"
        case .blob: "a blob"
        }
    }
}

extension SQLValue: ExpressibleByNilLiteral {
    public init(nilLiteral: ()) {
        self = .null
    }
}

extension SQLValue: ExpressibleByIntegerLiteral {
    public init(integerLiteral value: Int64) {
        self = .integer(value)
    }
}

extension SQLValue: ExpressibleByStringLiteral {
    public init(stringLiteral value: String) {
        self = .text(value)
    }
}

/// One row of an answer: plain values, safe to keep after the transaction has ended.
///
/// Columns are read by their place in the statement, counted from 0. Reading a column as something it is not, or a
/// column that is not there, throws ``StorageError/Kind/invalid``: a row never answers with a made-up default.
public struct SQLRow: Sendable, Hashable {
    /// The values in the order of the statement's columns.
    public let values: [SQLValue]

    public init(_ values: [SQLValue]) {
        self.values = values
    }

    public func integer(_ column: Int) throws(StorageError) -> Int64 {
        guard case .integer(let value) = try self.value(column) else { throw mismatch(column, "an integer") }
        return value
    }

    public func text(_ column: Int) throws(StorageError) -> String {
        guard case .text(let value) = try self.value(column) else { throw mismatch(column, "text") }
        return value
    }

    public func blob(_ column: Int) throws(StorageError) -> [UInt8] {
        guard case .blob(let value) = try self.value(column) else { throw mismatch(column, "a blob") }
        return value
    }

    public func optionalInteger(_ column: Int) throws(StorageError) -> Int64? {
        if case .null = try value(column) { return nil }
        return try integer(column)
    }

    public func optionalText(_ column: Int) throws(StorageError) -> String? {
        if case .null = try value(column) { return nil }
        return try text(column)
    }

    /// The value as it was read, whatever its type.
    public func value(_ column: Int) throws(StorageError) -> SQLValue {
        guard values.indices.contains(column) else {
            throw .noColumn(column, of: values.count)
        }
        return values[column]
    }

    private func mismatch(_ column: Int, _ wanted: String) -> StorageError {
        .mismatch(column, values[column], wanted)
    }
}

extension SQLCursor {
    /// All of it, to keep.
    func row() throws(StorageError) -> SQLRow {
        var values: [SQLValue] = []
        values.reserveCapacity(columnCount)
        for column in 0..<columnCount { values.append(try value(column)) }
        return SQLRow(values)
    }
}

/// Statements whose values stand in arrays: for the few that run once for a batch.
extension SQLTransaction {
    /// Runs one statement and returns its rows.
    public func query(_ sql: String, _ parameters: [SQLValue] = []) throws(StorageError) -> [SQLRow] {
        try queryEach(sql, [parameters]).first ?? []
    }

    /// Runs the statement once for every parameter set: the answers stand in the order of the sets.
    public func queryEach(_ sql: String, _ parameterSets: [[SQLValue]]) throws(StorageError) -> [[SQLRow]] {
        var answers = [[SQLRow]](repeating: [], count: parameterSets.count)
        try queryEach(sql, count: parameterSets.count) { (index, binder) throws(StorageError) in
            for value in parameterSets[index] { try value.bind(to: binder) }
        } row: { (index, cursor) throws(StorageError) in
            answers[index].append(try cursor.row())
        }
        return answers
    }

    /// Runs one statement and returns how many rows it inserted, updated or deleted (0 for other statements).
    @discardableResult
    public func execute(_ sql: String, _ parameters: [SQLValue] = []) throws(StorageError) -> Int {
        try executeEach(sql, [parameters]).first ?? 0
    }

    /// Like ``queryEach(_:_:)``, but returns how many rows each run inserted, updated or deleted.
    @discardableResult
    public func executeEach(_ sql: String, _ parameterSets: [[SQLValue]]) throws(StorageError) -> [Int] {
        try executeEach(sql, count: parameterSets.count) { (index, binder) throws(StorageError) in
            for value in parameterSets[index] { try value.bind(to: binder) }
        }
    }

    /// Like ``executeEach(_:_:)``, without waiting: ``sendEach(_:count:bind:)``.
    public func sendEach(_ sql: String, _ parameterSets: [[SQLValue]]) throws(StorageError) {
        try sendEach(sql, count: parameterSets.count) { (index, binder) throws(StorageError) in
            for value in parameterSets[index] { try value.bind(to: binder) }
        }
    }
}
