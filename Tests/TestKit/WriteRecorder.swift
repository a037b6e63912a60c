// SPDX-License-Identifier: Apache-2.0

public import Storage

/// A transaction in which nothing happens but that what is written is noted: which rows, by their primary and unique
/// keys. It reads the statements of `SQLTable` and of the services' own `DELETE`s; a statement that it does not
/// understand is a precondition failure, so that none is passed over.
public final class WriteRecorder: SQLTransaction {
    /// How a row is written, as far as it matters to whom else writes it at the same moment.
    public enum Kind: Sendable { case insert, insertIfAbsent, upsert, update, delete }

    /// One row by one of its keys.
    public struct Key: Hashable, Sendable {
        var table: String
        var columns: [String]
        var values: [SQLValue]
    }

    public struct Write: Hashable, Sendable {
        var kind: Kind
        /// What the row is afterwards, as far as the statement tells; empty where it goes.
        var values: [SQLValue]
    }

    /// On which every row is written by itself.
    public let engine = SQLEngine.sqlite
    /// What it looks for is what others meet in.
    public let isAlone = false
    private var writes: [Key: Write] = [:]
    /// By table, the primary key first.
    private let keys: [String: [[String]]]
    private let ignored: Set<String>
    private var parsed: [String: Statement] = [:]

    /// - Parameters:
    ///   - migrations: where the tables' keys stand.
    ///   - ignored: tables whose rows may be written at the same moment without an order, such as counters that add up.
    public init(_ migrations: [Migration], ignoring ignored: Set<String> = []) {
        self.ignored = ignored
        var keys: [String: [[String]]] = [:]
        for statement in migrations.flatMap(\.statements) {
            guard let found = statement.firstMatch(of: #/CREATE TABLE (\w+) \((?s)(.*)\)/#) else { continue }
            var all: [[String]] = []
            if let one = found.2.firstMatch(of: #/(\w+) \w+ NOT NULL PRIMARY KEY/#) { all.append([String(one.1)]) }
            if let several = found.2.firstMatch(of: #/PRIMARY KEY \(([^)]*)\)/#) { all.append(Self.names(several.1)) }
            for unique in found.2.matches(of: #/UNIQUE \(([^)]*)\)/#) { all.append(Self.names(unique.1)) }
            precondition(!all.isEmpty, "no key: \(statement)")
            keys[String(found.1)] = all
        }
        self.keys = keys
    }

    /// Forgets what was noted, and notes what this writes.
    public func record(_ body: (WriteRecorder) throws -> Void) rethrows -> [Key: Write] {
        writes = [:]
        try body(self)
        return writes
    }

    private static func names(_ list: Substring) -> [String] {
        list.split(separator: ",").map { String($0).filter { $0 != " " && $0 != "\n" } }
    }

    // MARK: Statements

    private struct Statement {
        var kind: Kind
        var table: String
        /// The place of each column's value among the parameters.
        var places: [String: Int]
    }

    private func statement(_ sql: String) -> Statement {
        if let known = parsed[sql] { return known }
        let made = parse(sql)
        parsed[sql] = made
        return made
    }

    private func parse(_ sql: String) -> Statement {
        if let insert = sql.firstMatch(of: #/^INSERT INTO (\w+) \(([^)]*)\) VALUES/#) {
            let kind: Kind =
                sql.contains("DO NOTHING") ? .insertIfAbsent : sql.contains("DO UPDATE") ? .upsert : .insert
            let places = Dictionary(uniqueKeysWithValues: Self.names(insert.2).enumerated().map { ($1, $0) })
            return Statement(kind: kind, table: String(insert.1), places: places)
        }
        let kind: Kind = sql.hasPrefix("DELETE") ? .delete : .update
        guard let table = sql.firstMatch(of: #/^(?:UPDATE|DELETE FROM|SELECT .* FROM) (\w+) /#) else {
            preconditionFailure("a statement of another kind: \(sql)")
        }
        let places = sql.matches(of: #/(\w+) = \$(\d+)/#).map { (String($0.1), (Int($0.2) ?? 0) - 1) }
        return Statement(
            kind: kind, table: String(table.1), places: Dictionary(places) { first, _ in first })
    }

    private func note(_ statement: Statement, _ values: [SQLValue]) {
        guard !ignored.contains(statement.table) else { return }
        guard let keys = keys[statement.table] else { preconditionFailure("no table \(statement.table)") }
        // Rows that go with another one are deleted by its key, which is noted by itself.
        for columns in statement.kind == .delete ? Array(keys.prefix(1)) : keys {
            let key = columns.compactMap { column in statement.places[column].map { values[$0] } }
            guard key.count == columns.count, !key.contains(.null) else { continue }
            let written = Key(table: statement.table, columns: columns, values: key)
            // Written and then deleted, as some tables do it, it is deleted.
            writes[written] = Write(kind: statement.kind, values: statement.kind == .delete ? [] : values)
        }
    }

    // MARK: SQLTransaction

    private final class Values: SQLBinder {
        var all: [SQLValue] = []
        func bindNull() { all.append(.null) }
        func bind(_ integer: Int64) { all.append(.integer(integer)) }
        func bind(_ text: String) { all.append(.text(text)) }
        func bind(_ bytes: [UInt8]) { all.append(.blob(bytes)) }
    }

    /// What `save` reads, it reads to write it: rows that nothing in the batch relies on. None is found here.
    public func queryEach(
        _ sql: String, count: Int, bind: (Int, any SQLBinder) throws(StorageError) -> Void,
        row: (Int, any SQLCursor) throws(StorageError) -> Void
    ) throws(StorageError) {
        _ = try executeEach(sql, count: count, bind: bind)
    }

    @discardableResult
    public func executeEach(
        _ sql: String, count: Int, bind: (Int, any SQLBinder) throws(StorageError) -> Void
    ) throws(StorageError) -> [Int] {
        guard count > 0 else { return [] }
        let statement = statement(sql)
        let values = Values()
        for index in 0..<count {
            values.all.removeAll(keepingCapacity: true)
            try bind(index, values)
            note(statement, values.all)
        }
        return [Int](repeating: 1, count: count)
    }
}
