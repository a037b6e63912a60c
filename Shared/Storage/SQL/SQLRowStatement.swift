// SPDX-License-Identifier: Apache-2.0

/// A statement that is run for each of many rows, with the one that takes all of them at once.
///
/// On PostgreSQL many rows are one execution, with an array for each parameter, which costs the server less than an
/// execution for each.
@usableFromInline
struct SQLRowStatement: Sendable {
    /// Its parameters are what one row binds.
    let each: String
    /// Its parameters are arrays of what the rows bind in their place. For PostgreSQL, and asked for only there.
    let all: @Sendable () -> String
    /// What a row binds.
    let types: [SQLType]
    /// More rows than this are one execution.
    static let fewRows = 8

    @usableFromInline
    init(each: String, all: @escaping @autoclosure @Sendable () -> String, types: [SQLType]) {
        self.each = each
        self.all = all
        self.types = types
    }

    /// - Parameter ending: what follows, an ON CONFLICT say.
    static func insert(
        into table: String, _ columns: [(name: String, type: SQLType)], ending: String = ""
    ) -> SQLRowStatement {
        let types = columns.map(\.type)
        let into = "INSERT INTO \(table) (\(columns.map(\.name).joined(separator: ", ")))"
        let parameters = (1...types.count).map { "$\($0)" }.joined(separator: ", ")
        let all = "\(into) SELECT * FROM \(unnested(types))\(ending)"
        return SQLRowStatement(each: "\(into) VALUES (\(parameters))\(ending)", all: all, types: types)
    }

    /// The rows, made of the arrays.
    static func unnested(_ types: [SQLType]) -> String {
        "unnest(\(types.enumerated().map { $1.array($0 + 1) }.joined(separator: ", ")))"
    }
}

extension SQLTransaction {
    /// Like ``sendEach(_:count:bind:)``.
    @usableFromInline
    func send(
        _ statement: SQLRowStatement, count: Int, bind: (Int, any SQLBinder) throws(StorageError) -> Void
    ) throws(StorageError) {
        guard let rows = try atOnce(statement, count, bind) else {
            return try sendEach(statement.each, count: count, bind: bind)
        }
        try sendEach(statement.all(), count: 1) { (_, binder) throws(StorageError) in try rows.bind(to: binder) }
    }

    /// Like ``queryEach(_:count:bind:row:)``, for rows of an answer that say themselves what they answer.
    @usableFromInline
    func query(
        _ statement: SQLRowStatement, count: Int, bind: (Int, any SQLBinder) throws(StorageError) -> Void,
        row: (any SQLCursor) throws(StorageError) -> Void
    ) throws(StorageError) {
        func read(_: Int, _ cursor: any SQLCursor) throws(StorageError) { try row(cursor) }
        guard let rows = try atOnce(statement, count, bind) else {
            return try queryEach(statement.each, count: count, bind: bind, row: read)
        }
        try queryEach(
            statement.all(), count: 1, bind: { (_, binder) throws(StorageError) in try rows.bind(to: binder) },
            row: read)
    }

    /// The rows in one, where that is the better way.
    private func atOnce(
        _ statement: SQLRowStatement, _ count: Int, _ bind: (Int, any SQLBinder) throws(StorageError) -> Void
    ) throws(StorageError) -> PostgreSQLArrays? {
        guard engine == .postgresql, count > SQLRowStatement.fewRows else { return nil }
        let arrays = PostgreSQLArrays(of: statement.types, count: count)
        for index in 0..<count { try bind(index, arrays) }
        return arrays
    }
}
