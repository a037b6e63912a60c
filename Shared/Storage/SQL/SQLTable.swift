// SPDX-License-Identifier: Apache-2.0

/// A row of a table, described once: a new column is a property, a migration and one line in `columns`.
public protocol SQLRecord: Sendable {
    /// The statements that follow from `columns`. A stored constant: they are put together once.
    static var table: SQLTable<Self> { get }

    /// What a row is read over. Every column that is read overwrites its part.
    static var blank: Self { get }

    /// Names every column and what stands in it, in one order.
    mutating func columns(_ columns: SQLColumns) throws(StorageError)
}

/// A row that is found by its key.
public protocol SQLKeyedRecord: SQLRecord {
    associatedtype Key: SQLKey

    /// Binds the key columns, in the order in which `columns` names them.
    var key: Key { get }

    /// The last decision about the row, where decisions are found from it (``DecisionChain``). A row that has this needs a
    /// line in `columns`, and a column.
    var lastDecision: LastDecision { get set }
}

extension SQLKeyedRecord {
    /// None is kept.
    @inlinable
    public var lastDecision: LastDecision {
        get { LastDecision() }
        set {}
    }
}

/// One table of a service: what can be asked of it and told to it, in one round trip a call, whatever the number of
/// rows. What is told is not waited for.
///
/// Rows go in sorted by key: neighbours share pages, and two replicas take their row locks in one order.
///
/// On PostgreSQL many rows are one execution (``SQLRowStatement``). Each row is looked for by itself: the statements leave
/// the server no other way. It would choose one by what it knows of the table, which is nothing while that is new, and
/// keep to it.
///
/// Inlinable what is done for each row, so that every service has it made for its own rows: sorting keys and reading
/// rows of a type that is not known took a tenth of the sync service's time.
public struct SQLTable<Row: SQLRecord>: Sendable {
    @usableFromInline let select: String
    @usableFromInline let findByKey: SQLRowStatement
    @usableFromInline let insert: SQLRowStatement
    @usableFromInline let upsert: SQLRowStatement
    @usableFromInline let update: SQLRowStatement
    @usableFromInline let delete: SQLRowStatement

    public init(_ name: String) {
        let columns = SQLColumns()
        var blank = Row.blank
        // Describing touches no value, so nothing can fail.
        try? blank.columns(columns)
        let all = columns.described
        let numbered = all.enumerated().map { (column: $1, parameter: "$\($0 + 1)") }
        func equations(_ columns: [(column: SQLColumns.Column, parameter: String)]) -> [String] {
            columns.map { "\($0.column.name) = \($0.parameter)" }
        }
        let keys = all.filter { $0.role == .key }
        let byKey = keys.enumerated().map { "\($1.name) = $\($0 + 1)" }.joined(separator: " AND ")
        select = "SELECT \(all.compactMap(\.selected).joined(separator: ", ")) FROM \(name) WHERE "
        let findAllByKey = Self.findAll(select, byKey, keys.map(\.type))
        findByKey = SQLRowStatement(each: select + byKey, all: findAllByKey, types: keys.map(\.type))
        // OFFSET 0 is a fence, and a row's place can be asked for in one way only.
        let deleteAll = """
            DELETE FROM \(name) USING \(SQLRowStatement.unnested(keys.map(\.type))) AS given \
            (\(keys.map(\.name).joined(separator: ", "))), \
            LATERAL (SELECT ctid AS place FROM \(name) AS stored \
            WHERE \(keys.map { "stored.\($0.name) = given.\($0.name)" }.joined(separator: " AND ")) OFFSET 0) AS found \
            WHERE \(name).ctid = found.place
            """
        delete = SQLRowStatement(
            each: "DELETE FROM \(name) WHERE \(byKey)", all: deleteAll, types: keys.map(\.type))
        let described = all.map { (name: $0.name, type: $0.type) }
        insert = .insert(into: name, described)
        let merged = all.compactMap { Self.merged($0, in: name) }
        upsert = .insert(
            into: name, described,
            ending: """
                 ON CONFLICT (\(keys.map(\.name).joined(separator: ", "))) \
                DO \(merged.isEmpty ? "NOTHING" : "UPDATE SET \(merged.joined(separator: ", "))")
                """)
        let updateAll = """
            UPDATE \(name) SET \(all.filter { $0.role != .key }.map { "\($0.name) = given.\($0.name)" }
                .joined(separator: ", ")) \
            FROM \(SQLRowStatement.unnested(insert.types)) AS given (\(all.map(\.name).joined(separator: ", "))), \
            LATERAL (SELECT ctid AS place FROM \(name) AS stored \
            WHERE \(keys.map { "stored.\($0.name) = given.\($0.name)" }.joined(separator: " AND ")) OFFSET 0) AS found \
            WHERE \(name).ctid = found.place
            """
        update = SQLRowStatement(
            each: """
                UPDATE \(name) SET \(equations(numbered.filter { $0.column.role != .key }).joined(separator: ", ")) \
                WHERE \(equations(numbered.filter { $0.column.role == .key }).joined(separator: " AND "))
                """,
            all: updateAll, types: insert.types)
    }

    /// What becomes of the column of a row that is there already.
    private static func merged(_ column: SQLColumns.Column, in table: String) -> String? {
        let (name, old, new) = (column.name, "\(table).\(column.name)", "excluded.\(column.name)")
        return switch column.role {
        case .key, .fixed: nil
        case .latest: "\(name) = \(new)"
        case .highest: "\(name) = CASE WHEN \(old) > \(new) THEN \(old) ELSE \(new) END"
        case .sum: "\(name) = \(old) + \(new)"
        }
    }

    /// Looks for what a condition holds for, once for each row of the arrays.
    ///
    /// - Parameters:
    ///   - condition: what follows WHERE, in parameters.
    ///   - types: theirs.
    @usableFromInline
    static func findAll(_ select: String, _ condition: String, _ types: [SQLType]) -> String {
        var asked = condition
        for number in types.indices.reversed() {
            asked = asked.replacing("$\(number + 1)", with: "asked.value\(number + 1)")
        }
        let names = types.indices.map { "value\($0 + 1)" }.joined(separator: ", ")
        // OFFSET 0 is a fence.
        return """
            SELECT found.* FROM \(SQLRowStatement.unnested(types)) AS asked (\(names)), \
            LATERAL (\(select)\(asked) OFFSET 0) AS found
            """
    }

    // MARK: Reading

    /// The rows for which this holds, for each of the values in their order. No round trip when there are none.
    ///
    /// - Parameter condition: what follows WHERE, in parameters that each of the values binds.
    @inlinable
    public func find<Value: SQLBindable & Comparable>(
        _ condition: String, _ values: some Collection<Value>, in transaction: any SQLTransaction
    ) throws(StorageError) -> [Row] {
        let (select, types) = (select, Value.types)
        let statement = SQLRowStatement(
            each: select + condition, all: Self.findAll(select, condition, types), types: types)
        return try find(statement, values, in: transaction)
    }

    @inlinable
    func find<Value: SQLBindable & Comparable>(
        _ statement: SQLRowStatement, _ values: some Collection<Value>, in transaction: any SQLTransaction
    ) throws(StorageError) -> [Row] {
        let sorted = values.sorted()
        return try read { (row) throws(StorageError) in
            try transaction.query(
                statement, count: sorted.count,
                bind: { (index, binder) throws(StorageError) in try sorted[index].bind(to: binder) }, row: row)
        }
    }

    /// The rows for which this holds.
    @inlinable
    public func find(
        _ condition: String, _ parameters: [SQLValue], in transaction: any SQLTransaction
    ) throws(StorageError) -> [Row] {
        try read { (row) throws(StorageError) in
            try transaction.queryEach(select + condition, count: 1) { (_, binder) throws(StorageError) in
                for value in parameters { try value.bind(to: binder) }
            } row: { (_, cursor) throws(StorageError) in
                try row(cursor)
            }
        }
    }

    /// The rows that `query` comes upon.
    @inlinable
    func read(
        _ query: ((any SQLCursor) throws(StorageError) -> Void) throws(StorageError) -> Void
    ) throws(StorageError) -> [Row] {
        var rows: [Row] = []
        var columns: SQLColumns?
        var current: (any SQLCursor)?
        try query { (cursor) throws(StorageError) in
            // A statement of PostgreSQL has a cursor for each run.
            let reader = current === cursor ? columns ?? SQLColumns(from: cursor) : SQLColumns(from: cursor)
            (columns, current) = (reader, cursor)
            reader.startRow()
            var row = Row.blank
            try row.columns(reader)
            rows.append(row)
        }
        return rows
    }

    // MARK: Writing

    /// Writes rows over what stands there, no two of them with one key, in the order in which they are given.
    @inlinable
    public func save(_ rows: [Row], in transaction: any SQLTransaction) throws(StorageError) {
        try write(upsert, rows, in: transaction)
    }

    /// Inserts rows. One that is there already is a conflict.
    @inlinable
    public func insert(_ rows: [Row], in transaction: any SQLTransaction) throws(StorageError) {
        try write(insert, rows, in: transaction)
    }

    /// Updates rows that are there, no two with one key.
    @inlinable
    public func update(_ rows: [Row], in transaction: any SQLTransaction) throws(StorageError) {
        try write(update, rows, in: transaction)
    }

    @inlinable
    func write(
        _ statement: SQLRowStatement, _ rows: [Row], in transaction: any SQLTransaction
    ) throws(StorageError) {
        var columns: SQLColumns?
        try transaction.send(statement, count: rows.count) { (index, binder) throws(StorageError) in
            // A statement has one binder for all of its runs.
            let writer = columns ?? SQLColumns(to: binder)
            columns = writer
            var row = rows[index]
            try row.columns(writer)
        }
    }
}

extension SQLTable where Row: SQLKeyedRecord {
    /// The rows with these keys; those that there are.
    @inlinable
    public func find(
        _ keys: some Collection<Row.Key>, in transaction: any SQLTransaction
    ) throws(StorageError) -> [Row] {
        try find(findByKey, keys, in: transaction)
    }

    /// Inserts what the batch has made, updates what it has changed and deletes what it has removed. Whatever another
    /// transaction did to one of these rows since they were read is a conflict: "insert or update" would bring back a
    /// row that another one has just deleted.
    @inlinable
    public func save(
        _ table: Table<Row>, in transaction: any SQLTransaction
    ) throws(StorageError) where Row: Equatable {
        let (created, updated) = table.written(isAlone: transaction.isAlone)
        try insert(created, in: transaction)
        try update(updated, in: transaction)
        try remove(table.removed, in: transaction)
    }

    /// Deletes rows. One that is not there is no error.
    @inlinable
    public func remove(_ keys: [Row.Key], in transaction: any SQLTransaction) throws(StorageError) {
        try transaction.send(delete, count: keys.count) { (index, binder) throws(StorageError) in
            try keys[index].bind(to: binder)
        }
    }
}
