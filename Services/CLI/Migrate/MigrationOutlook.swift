// SPDX-License-Identifier: Apache-2.0

import Storage

/// What a migration would do with what is there already, by its statements.
struct MigrationOutlook {
    private let migration: Migration
    /// In words; none for one that makes something new.
    private let remarks: [String]

    /// - Parameter rows: how many each table has, as far as the database knows without counting.
    init(_ migration: Migration, rows: [String: Int64]) {
        self.migration = migration
        remarks = migration.statements.compactMap { statement in
            let words = statement.split { $0.isWhitespace || $0 == "(" }.map(String.init)
            switch words.first {
            case "CREATE":
                guard words.prefix(3).contains("INDEX"), let on = words.firstIndex(of: "ON"), on + 1 < words.count,
                    let count = rows[words[on + 1]], count > 0
                else { return nil }
                return "builds an index over \(Self.amount(count)) rows, about \(max(1, count / Self.rowsPerSecond)) s"
            case "DROP": return "drops \(words.dropFirst().prefix(2).joined(separator: " ").lowercased())"
            case "UPDATE": return words.count > 1 ? "changes rows of \(words[1])" : nil
            default: return nil
            }
        }
    }

    /// What an index takes in, roughly, on the disk of a small server.
    private static let rowsPerSecond: Int64 = 100_000

    var text: String {
        "\(migration.number) \(migration.name)" + (remarks.isEmpty ? "" : " (\(remarks.joined(separator: ", ")))")
    }

    static func all(_ state: SchemaState, in transaction: any SQLTransaction) throws -> [MigrationOutlook] {
        var rows: [String: Int64] = [:]
        if let schema = state.place?.schema {
            let found = try transaction.query(
                """
                SELECT relname::text, GREATEST(reltuples, 0)::bigint
                FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace AS n ON n.oid = relnamespace
                WHERE nspname = $1 AND relkind = 'r'
                """, [.text(schema)])
            for row in found { rows[try row.text(0)] = try row.integer(1) }
        }
        return state.missing.map { MigrationOutlook($0, rows: rows) }
    }

    /// `4.1 M`, `12 k` or `7`.
    private static func amount(_ count: Int64) -> String {
        if count >= 1_000_000 { return "\(count / 1_000_000).\(count % 1_000_000 / 100_000) M" }
        return count >= 10_000 ? "\(count / 1000) k" : "\(count)"
    }
}
