// SPDX-License-Identifier: Apache-2.0

import GRDB

/// What statements need a store's tables to have: columns of their types, and what is unique.
struct StoreShape: Sendable {
    struct Column: Sendable, Hashable {
        /// As migrations write it: `BIGINT`.
        var type: String
        var isNullable: Bool
        /// Whether a row that says nothing of it is refused.
        var isRequired: Bool
    }

    /// By the names of table and column.
    private(set) var tables: [String: [String: Column]] = [:]
    /// By the name of the table: sets of columns.
    private(set) var unique: [String: Set<Set<String>>] = [:]

    /// Of the store that `query` asks.
    ///
    /// - Parameter query: answers a statement without parameters.
    init(_ engine: SQLEngine, reading query: (String) throws -> [SQLRow]) throws {
        for row in try query(engine == .sqlite ? Self.columnsOfSQLite : Self.columnsOfPostgreSQL) {
            tables[try row.text(0), default: [:]][try row.text(1)] = Column(
                type: try row.text(2), isNullable: try row.integer(3) == 1, isRequired: try row.integer(4) == 1)
        }
        var indexes: [String: [String: Set<String>]] = [:]
        for row in try query(engine == .sqlite ? Self.indexesOfSQLite : Self.indexesOfPostgreSQL) {
            indexes[try row.text(0), default: [:]][try row.text(1), default: []].insert(try row.text(2))
        }
        unique = indexes.mapValues { Set($0.values) }
    }

    /// Of a store that has had only these statements, tried in memory.
    init(of statements: [String]) throws {
        self = try DatabaseQueue().writeWithoutTransaction { database in
            let transaction = SQLiteTransaction(database, statements: SQLiteStatementCache())
            defer { transaction.end() }
            for statement in statements { try transaction.execute(statement) }
            return try StoreShape(.sqlite) { try transaction.query($0) }
        }
    }

    /// What this one lacks of another, in words, sorted; empty where all statements find what they need.
    func flaws(comparedWith wanted: StoreShape) -> [String] {
        wanted.tables.keys.sorted().flatMap { table in flaws(of: table, wanted) }
    }

    private func flaws(of table: String, _ wanted: StoreShape) -> [String] {
        guard let found = tables[table] else { return ["the table \(table) is missing"] }
        let columns = wanted.tables[table] ?? [:]
        var flaws = columns.keys.sorted().compactMap { name -> String? in
            guard let want = columns[name] else { return nil }
            guard let column = found[name] else { return "\(table) has no column \(name)" }
            if column.type != want.type { return "\(table).\(name) is \(column.type), not \(want.type)" }
            return want.isNullable && !column.isNullable ? "\(table).\(name) does not take NULL" : nil
        }
        flaws += found.keys.sorted().filter { columns[$0] == nil && found[$0]?.isRequired == true }.map {
            "\(table).\($0) is no column of this code, and rows are refused without it"
        }
        let lost = (wanted.unique[table] ?? []).subtracting(unique[table] ?? [])
            .filter { $0.isSubset(of: found.keys) }.map { $0.sorted().joined(separator: ", ") }
        return flaws + lost.sorted().map { "\(table) (\($0)) is not unique" }
    }

    private static let columnsOfSQLite = """
        SELECT t.name, c.name, upper(c.type), NOT (c."notnull" OR c.pk), c."notnull" AND c.dflt_value IS NULL
        FROM sqlite_master AS t, pragma_table_info(t.name) AS c WHERE t.type = 'table'
        """

    private static let indexesOfSQLite = """
        SELECT t.name, i.name, c.name
        FROM sqlite_master AS t, pragma_index_list(t.name) AS i, pragma_index_info(i.name) AS c
        WHERE t.type = 'table' AND i."unique" AND NOT i.partial AND c.name IS NOT NULL
        """

    private static let columnsOfPostgreSQL = """
        SELECT relname::text, attname::text, upper(format_type(atttypid, atttypmod)), (NOT attnotnull)::int::bigint,
            (attnotnull AND NOT atthasdef AND attidentity = '')::int::bigint
        FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_class ON pg_class.oid = attrelid
            JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
        WHERE nspname = current_schema() AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
        """

    private static let indexesOfPostgreSQL = """
        SELECT relname::text, indexrelid::text, attname::text
        FROM pg_catalog.pg_index JOIN pg_catalog.pg_class ON pg_class.oid = indrelid
            JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
            JOIN pg_catalog.pg_attribute
                ON attrelid = indrelid AND attnum = ANY((indkey::int2[])[0:indnkeyatts - 1])
        WHERE nspname = current_schema() AND relkind = 'r' AND indisunique AND indisvalid AND indimmediate
            AND indpred IS NULL AND indexprs IS NULL
        """
}
