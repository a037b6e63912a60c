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

    /// Copies the rows out of an answer in binary format.
    func rows(_ result: OpaquePointer) throws(StorageError) -> [SQLRow] {
        let count = PQntuples(result)
        guard count > 0 else { return [] }
        var rows: [SQLRow] = []
        rows.reserveCapacity(Int(count))
        for row in 0..<count {
            var values: [SQLValue] = []
            values.reserveCapacity(columnTypes.count)
            for (column, type) in columnTypes.enumerated() {
                values.append(try Self.value(result, row, CInt(column), type))
            }
            rows.append(SQLRow(values))
        }
        return rows
    }

    /// How many rows an insert, update or delete touched. A select counts none, as on SQLite.
    static func affectedRows(_ result: OpaquePointer) -> Int {
        guard let tag = PQcmdStatus(result), tag.pointee != UInt8(ascii: "S"), let count = PQcmdTuples(result) else {
            return 0
        }
        return Int(strtol(count, nil, 10))
    }

    private static func value(
        _ result: OpaquePointer, _ row: CInt, _ column: CInt, _ type: PostgreSQLType
    ) throws(StorageError) -> SQLValue {
        guard let start = PQgetvalue(result, row, column), PQgetisnull(result, row, column) == 0 else { return .null }
        let bytes = UnsafeRawBufferPointer(start: start, count: Int(PQgetlength(result, row, column)))
        switch type {
        case .int8: return .integer(try integer(bytes, Int64.self))
        case .int4: return .integer(Int64(try integer(bytes, Int32.self)))
        case .int2: return .integer(Int64(try integer(bytes, Int16.self)))
        case .bool: return .integer(bytes.first == 1 ? 1 : 0)
        case .bytes: return .blob([UInt8](bytes))
        case .text: return .text(String(decoding: bytes, as: UTF8.self))
        case .other:
            throw .invalid("column \(column) has \(type.name), which this store does not use; cast it in the statement")
        }
    }

    private static func integer<N: FixedWidthInteger>(
        _ bytes: UnsafeRawBufferPointer, _ type: N.Type
    ) throws(StorageError) -> N {
        guard bytes.count == MemoryLayout<N>.size else { throw .invalid("an integer has \(bytes.count) bytes") }
        return N(bigEndian: bytes.loadUnaligned(as: N.self))
    }
}
