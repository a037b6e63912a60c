// SPDX-License-Identifier: Apache-2.0

import CLibpq

/// The column and parameter types that travel in PostgreSQL's binary format here.
enum PostgreSQLType {
    case int8, int4, int2, bool, bytes, text
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
        case .other(let oid): "type \(oid)"
        }
    }
}
