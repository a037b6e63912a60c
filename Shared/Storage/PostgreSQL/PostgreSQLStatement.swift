// SPDX-License-Identifier: Apache-2.0

import CLibpq
import Glibc

/// A statement that the server has prepared, and the types it told of.
struct PostgreSQLStatement {
    let name: String
    let parameterTypes: [PostgreSQLType]
    let columnTypes: [PostgreSQLType]

    /// - Parameter description: the server's answer to a describe request.
    init(name: String, description: OpaquePointer) {
        self.name = name
        parameterTypes = (0..<PQnparams(description)).map { PostgreSQLType(PQparamtype(description, $0)) }
        columnTypes = (0..<PQnfields(description)).map { PostgreSQLType(PQftype(description, $0)) }
    }

    /// How many rows an insert, update or delete touched. A select counts none, as on SQLite.
    static func affectedRows(_ result: OpaquePointer) -> Int {
        guard let tag = PQcmdStatus(result), tag.pointee != UInt8(ascii: "S"), let count = PQcmdTuples(result) else {
            return 0
        }
        return Int(strtol(count, nil, 10))
    }
}

/// The row of an answer in binary format that is being looked at.
final class PostgreSQLCursor: SQLCursor {
    private let result: OpaquePointer
    private let types: [PostgreSQLType]
    private var row: CInt = 0

    init(_ result: OpaquePointer, of statement: PostgreSQLStatement) {
        self.result = result
        types = statement.columnTypes
    }

    /// Shows each row.
    func forEach(_ body: (any SQLCursor) throws(StorageError) -> Void) throws(StorageError) {
        for row in 0..<PQntuples(result) {
            self.row = row
            try body(self)
        }
    }

    var columnCount: Int { types.count }

    func value(_ column: Int) throws(StorageError) -> SQLValue {
        guard try !isNull(column) else { return .null }
        switch types[column] {
        case .int8, .int4, .int2, .bool: return .integer(try integer(column))
        case .bytes: return .blob(try blob(column))
        case .text: return .text(try text(column))
        case .array, .other:
            throw .invalid(
                "column \(column) has \(types[column].name), which this store does not use; cast it in the statement")
        }
    }

    func isNull(_ column: Int) throws(StorageError) -> Bool {
        guard types.indices.contains(column) else { throw .noColumn(column, of: types.count) }
        return PQgetisnull(result, row, CInt(column)) == 1
    }

    func integer(_ column: Int) throws(StorageError) -> Int64 {
        guard let bytes = try bytes(column) else { throw .mismatch(column, .null, "an integer") }
        switch types[column] {
        case .int8: return try integer(bytes, Int64.self)
        case .int4: return Int64(try integer(bytes, Int32.self))
        case .int2: return Int64(try integer(bytes, Int16.self))
        case .bool: return bytes.first == 1 ? 1 : 0
        default: throw .mismatch(column, try value(column), "an integer")
        }
    }

    func text(_ column: Int) throws(StorageError) -> String {
        guard let bytes = try bytes(column), case .text = types[column] else {
            throw .mismatch(column, try value(column), "text")
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    func blob(_ column: Int) throws(StorageError) -> [UInt8] {
        guard let bytes = try bytes(column), case .bytes = types[column] else {
            throw .mismatch(column, try value(column), "a blob")
        }
        return [UInt8](bytes)
    }

    /// Nil for null.
    private func bytes(_ column: Int) throws(StorageError) -> UnsafeRawBufferPointer? {
        guard try !isNull(column), let start = PQgetvalue(result, row, CInt(column)) else { return nil }
        return UnsafeRawBufferPointer(start: start, count: Int(PQgetlength(result, row, CInt(column))))
    }

    private func integer<N: FixedWidthInteger>(
        _ bytes: UnsafeRawBufferPointer, _ type: N.Type
    ) throws(StorageError) -> N {
        guard bytes.count == MemoryLayout<N>.size else { throw .invalid("an integer has \(bytes.count) bytes") }
        return N(bigEndian: bytes.loadUnaligned(as: N.self))
    }
}

/// The column and parameter types that travel in PostgreSQL's binary format here.
enum PostgreSQLType {
    case int8, int4, int2, bool, bytes, text
    /// Comes and goes as it travels, see ``PostgreSQLArrays``.
    case array
    case other(Oid)

    init(_ oid: Oid) {
        self =
            switch oid {
            case 20: .int8
            case 23: .int4
            case 21: .int2
            case 16: .bool
            case 17: .bytes
            // text, varchar, char(n), name, "char", unknown
            case 25, 1043, 1042, 19, 18, 705: .text
            // bytea[], text[], int8[]
            case 1001, 1009, 1016: .array
            default: .other(oid)
            }
    }

    var name: String {
        switch self {
        case .int8: "bigint"
        case .int4: "integer"
        case .int2: "smallint"
        case .bool: "boolean"
        case .bytes: "bytea"
        case .text: "text"
        case .array: "an array"
        case .other(let oid): "type \(oid)"
        }
    }
}
