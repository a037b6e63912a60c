// SPDX-License-Identifier: Apache-2.0

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

    public func optionalBlob(_ column: Int) throws(StorageError) -> [UInt8]? {
        if case .null = try value(column) { return nil }
        return try blob(column)
    }

    /// The value as it was read, whatever its type.
    public func value(_ column: Int) throws(StorageError) -> SQLValue {
        guard values.indices.contains(column) else {
            throw .invalid("column \(column) was asked of a row with \(values.count) columns")
        }
        return values[column]
    }

    private func mismatch(_ column: Int, _ wanted: String) -> StorageError {
        .invalid("column \(column) holds \(values[column].typeName), not \(wanted)")
    }
}
