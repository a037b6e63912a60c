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
