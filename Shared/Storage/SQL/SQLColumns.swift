// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// What can stand in a column.
public enum SQLType: Sendable {
    case integer, text, bytes
}

/// Binds itself as one or more parameters.
public protocol SQLBindable {
    /// What is bound, in this order.
    static var types: [SQLType] { get }
    func bind(to binder: any SQLBinder) throws(StorageError)
}

/// What a row is found by, in as many parameters as its table has key columns.
public typealias SQLKey = Comparable & Hashable & SQLBindable & Sendable

/// What stands in one column. Binds one parameter.
public protocol SQLStorable: SQLBindable {
    static var type: SQLType { get }
    init(_ cursor: any SQLCursor, _ column: Int) throws(StorageError)
}

/// The columns of one row, which lists them by name, each once and always in the same order. One list describes the
/// table, writes the row and reads it, straight to and from the engine's own buffers.
///
/// A list and no key paths: to bind a row of twelve columns by key paths takes three quarters more instructions.
public final class SQLColumns {
    /// What a column is to its table.
    public enum Role: Sendable {
        case key
        /// Stays as it was inserted.
        case fixed
        /// The value last written counts.
        case latest
        /// The highest value ever written counts.
        case highest
        /// The values written are added up.
        case sum
    }

    struct Column: Sendable {
        var name: String
        var role: Role
        var type: SQLType
        /// What is read, nil for a column that is only written.
        var selected: String?
    }

    private(set) var described: [Column] = []
    @usableFromInline let binder: (any SQLBinder)?
    @usableFromInline let cursor: (any SQLCursor)?
    /// The next column to read.
    private var place = 0

    /// - Parameters: neither of them to collect what is `described`.
    @usableFromInline
    init(to binder: (any SQLBinder)? = nil, from cursor: (any SQLCursor)? = nil) {
        self.binder = binder
        self.cursor = cursor
    }

    /// Whether values are read, not written.
    public var areRead: Bool { cursor != nil }

    /// Whether values are written: what is only written need not be made up otherwise.
    public var areWritten: Bool { binder != nil }

    /// - Parameter selected: what is read in the place of the column.
    @inlinable
    public func column<Value: SQLStorable>(
        _ name: StaticString, _ value: inout Value, _ role: Role = .latest, selected: StaticString? = nil
    ) throws(StorageError) {
        if let binder {
            try value.bind(to: binder)
        } else if let cursor {
            value = try Value(cursor, nextPlace())
        } else {
            describe(name, role, Value.self, selected: selected ?? name)
        }
    }

    /// One that may be null.
    @inlinable
    public func column<Value: SQLStorable>(
        _ name: StaticString, _ value: inout Value?, _ role: Role = .latest
    ) throws(StorageError) {
        if let binder {
            if let value { try value.bind(to: binder) } else { try binder.bindNull() }
        } else if let cursor {
            let place = nextPlace()
            value = try cursor.isNull(place) ? nil : Value(cursor, place)
        } else {
            describe(name, role, Value.self, selected: name)
        }
    }

    /// A text. Most columns are texts, and what is not generic costs least.
    public func column(_ name: StaticString, _ value: inout String, _ role: Role = .latest) throws(StorageError) {
        if let binder {
            try binder.bind(value)
        } else if let cursor {
            value = try cursor.text(nextPlace())
        } else {
            describe(name, role)
        }
    }

    /// A text that may be null.
    public func column(_ name: StaticString, _ value: inout String?, _ role: Role = .latest) throws(StorageError) {
        if let binder {
            if let value { try binder.bind(value) } else { try binder.bindNull() }
        } else if let cursor {
            let place = nextPlace()
            value = try cursor.isNull(place) ? nil : cursor.text(place)
        } else {
            describe(name, role)
        }
    }

    /// An id, which is a text.
    @inlinable
    public func column<Kind>(_ name: StaticString, _ id: inout ID<Kind>, _ role: Role = .latest) throws(StorageError) {
        try column(name, &id.text, role)
    }

    /// An id that may be null.
    @inlinable
    public func column<Kind>(_ name: StaticString, _ id: inout ID<Kind>?, _ role: Role = .latest) throws(StorageError) {
        var text = id?.text
        try column(name, &text, role)
        if areRead { id = text.map { ID($0) } }
    }

    /// A word of a closed set.
    @inlinable
    public func column<Word: RawRepresentable<String>>(
        _ name: StaticString, _ value: inout Word, _ role: Role = .latest
    ) throws(StorageError) {
        if let binder {
            try binder.bind(value.rawValue)
        } else if let cursor {
            value = try Self.word(cursor, nextPlace(), name)
        } else {
            describe(name, role)
        }
    }

    /// A word of a closed set, or none.
    @inlinable
    public func column<Word: RawRepresentable<String>>(
        _ name: StaticString, _ value: inout Word?, _ role: Role = .latest
    ) throws(StorageError) {
        if let binder {
            if let value { try binder.bind(value.rawValue) } else { try binder.bindNull() }
        } else if let cursor {
            let place = nextPlace()
            value = try cursor.isNull(place) ? nil : Self.word(cursor, place, name)
        } else {
            describe(name, role)
        }
    }

    /// A command's key, in three columns.
    public func command(
        _ app: StaticString, _ source: StaticString, _ id: StaticString, _ key: inout CommandKey, _ role: Role = .latest
    ) throws(StorageError) {
        try column(app, &key.app, role)
        try column(source, &key.source, role)
        try column(id, &key.id, role)
    }

    /// A column that is only written, because it follows from others: what the row is looked up by.
    @inlinable
    public func written<Value: SQLStorable>(
        _ name: StaticString, _ value: @autoclosure () -> Value?, _ role: Role = .latest
    ) throws(StorageError) {
        if let binder {
            if let value = value() { try value.bind(to: binder) } else { try binder.bindNull() }
        } else if cursor == nil {
            describe(name, role, Value.self, selected: nil)
        }
    }

    /// A text.
    @usableFromInline
    func describe(_ name: StaticString, _ role: Role) {
        describe(name, role, String.self, selected: name)
    }

    @usableFromInline
    func describe<Value: SQLStorable>(
        _ name: StaticString, _ role: Role, _ type: Value.Type, selected: StaticString?
    ) {
        described.append(Column(name: "\(name)", role: role, type: Value.type, selected: selected.map { "\($0)" }))
    }

    @usableFromInline
    func nextPlace() -> Int {
        defer { place += 1 }
        return place
    }

    /// To be called before each row.
    @usableFromInline
    func startRow() { place = 0 }

    @inlinable
    static func word<Word: RawRepresentable<String>>(
        _ cursor: any SQLCursor, _ place: Int, _ name: StaticString
    ) throws(StorageError) -> Word {
        guard let word = Word(rawValue: try cursor.text(place)) else {
            throw .unknownWord(in: name)
        }
        return word
    }
}

// MARK: What can stand in a column

extension SQLStorable {
    public static var types: [SQLType] { [type] }
}

extension String: SQLStorable {
    public static var type: SQLType { .text }
    public init(_ cursor: any SQLCursor, _ column: Int) throws(StorageError) { self = try cursor.text(column) }
    public func bind(to binder: any SQLBinder) throws(StorageError) { try binder.bind(self) }
}

extension Int64: SQLStorable {
    public static var type: SQLType { .integer }
    public init(_ cursor: any SQLCursor, _ column: Int) throws(StorageError) { self = try cursor.integer(column) }
    public func bind(to binder: any SQLBinder) throws(StorageError) { try binder.bind(self) }
}

extension Int32: SQLStorable {
    public static var type: SQLType { .integer }
    public init(_ cursor: any SQLCursor, _ column: Int) throws(StorageError) {
        self.init(truncatingIfNeeded: try cursor.integer(column))
    }
    public func bind(to binder: any SQLBinder) throws(StorageError) { try binder.bind(Int64(self)) }
}

extension Int: SQLStorable {
    public static var type: SQLType { .integer }
    public init(_ cursor: any SQLCursor, _ column: Int) throws(StorageError) { self = Int(try cursor.integer(column)) }
    public func bind(to binder: any SQLBinder) throws(StorageError) { try binder.bind(Int64(self)) }
}

/// 0 or 1.
extension Bool: SQLStorable {
    public static var type: SQLType { .integer }
    public init(_ cursor: any SQLCursor, _ column: Int) throws(StorageError) { self = try cursor.integer(column) != 0 }
    public func bind(to binder: any SQLBinder) throws(StorageError) { try binder.bind(self ? 1 : 0 as Int64) }
}

extension [UInt8]: SQLBindable, SQLStorable {
    public static var type: SQLType { .bytes }
    public init(_ cursor: any SQLCursor, _ column: Int) throws(StorageError) { self = try cursor.blob(column) }
    public func bind(to binder: any SQLBinder) throws(StorageError) { try binder.bind(self) }
}

extension ID: SQLBindable, SQLStorable {
    public static var type: SQLType { .text }
    public init(_ cursor: any SQLCursor, _ column: Int) throws(StorageError) { self.init(try cursor.text(column)) }
    public func bind(to binder: any SQLBinder) throws(StorageError) { try binder.bind(text) }
}

extension TextDigest: SQLStorable {
    public static var type: SQLType { .bytes }
    public init(_ cursor: any SQLCursor, _ column: Int) throws(StorageError) {
        self.init(bytes: try cursor.blob(column))
    }
    public func bind(to binder: any SQLBinder) throws(StorageError) { try binder.bind(bytes) }
}

/// Milliseconds since 1970.
extension Timestamp: SQLStorable {
    public static var type: SQLType { .integer }
    public init(_ cursor: any SQLCursor, _ column: Int) throws(StorageError) {
        self.init(milliseconds: try cursor.integer(column))
    }
    public func bind(to binder: any SQLBinder) throws(StorageError) { try binder.bind(milliseconds) }
}

extension MPID: SQLStorable {
    public static var type: SQLType { .integer }
    public init(_ cursor: any SQLCursor, _ column: Int) throws(StorageError) {
        guard let mpid = MPID(try cursor.integer(column)) else { throw .invalid("an MPID is 0") }
        self = mpid
    }
    public func bind(to binder: any SQLBinder) throws(StorageError) { try binder.bind(value) }
}

/// The app, then the id.
extension Scoped: SQLBindable where ID: SQLBindable {
    public static var types: [SQLType] { [.text] + ID.types }
    public func bind(to binder: any SQLBinder) throws(StorageError) {
        try app.bind(to: binder)
        try id.bind(to: binder)
    }
}

/// The app, then the source, then the id.
extension CommandKey: SQLBindable {
    public static var types: [SQLType] { [.text, .text, .text] }
    public func bind(to binder: any SQLBinder) throws(StorageError) {
        try app.bind(to: binder)
        try source.bind(to: binder)
        try id.bind(to: binder)
    }
}
