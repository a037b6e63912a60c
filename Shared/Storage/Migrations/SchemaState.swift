// SPDX-License-Identifier: Apache-2.0

/// When a store that is older than the code is migrated.
public enum MigrationTime: String, Sendable, CaseIterable {
    /// At the start of a service, by the service.
    case start
    /// Not by a service.
    case never
}

/// How far a store is behind the code.
package struct SchemaState: Sendable {
    /// Where it is; `nil` for SQLite, where whoever has the file may do all.
    package let place: SchemaPlace?
    /// The highest number of a migration that has run; `nil` for a store that is still to be made.
    package let landed: Int?
    /// The number of the code's last one.
    package let newest: Int
    /// Those that are still to be run, in their order.
    package let missing: [Migration]

    package var isUpToDate: Bool { missing.isEmpty }

    /// What a service says that waits for somebody else to migrate.
    func demand(_ time: MigrationTime) -> String {
        let what =
            switch landed {
            case nil: "there is no \(place?.schema ?? "store") yet, this code wants it at \(newest)"
            case let landed? where landed < newest: "the schema is at \(landed), this code wants \(newest)"
            case _?:
                "the schema lacks the \(missing.count == 1 ? "migration" : "migrations") "
                    + missing.map { "\($0.number)" }.joined(separator: ", ")
            }
        let who = time == .start ? place.map { " (role \($0.role) has no right to change it)" } ?? "" : ""
        return "\(what)\(who); run identitybus migrate"
    }
}

/// A service's schema in PostgreSQL, and what the role of a session may do with it.
package struct SchemaPlace: Sendable {
    package let role: String
    package let database: String
    package let schema: String
    package let exists: Bool
    /// The right to use what is in it.
    package let mayUse: Bool
    /// The right to make tables in it, or the schema itself where it is missing.
    package let mayCreate: Bool
    /// Somebody else than this role whose table is in it: only the owner changes a table.
    package let otherOwner: String?
    package let hasMigrations: Bool

    package var mayMigrate: Bool { mayCreate && otherOwner == nil }

    /// Of the schema that the session works in; `nil` on SQLite.
    init?(in transaction: any SQLTransaction) throws(StorageError) {
        guard transaction.engine == .postgresql else { return nil }
        let rows = try transaction.query(
            """
            SELECT current_user::text, current_database()::text, wanted.name, (n.oid IS NOT NULL)::int::bigint,
                COALESCE(has_schema_privilege(n.oid, 'USAGE'), false)::int::bigint,
                COALESCE(has_schema_privilege(n.oid, 'CREATE'),
                    has_database_privilege(current_database(), 'CREATE'))::int::bigint,
                (SELECT min(pg_get_userbyid(relowner)::text) FROM pg_catalog.pg_class
                    WHERE relnamespace = n.oid AND relkind = 'r' AND NOT pg_has_role(relowner, 'USAGE')),
                (EXISTS (SELECT FROM pg_catalog.pg_class
                    WHERE relnamespace = n.oid AND relkind = 'r' AND relname = 'migrations'))::int::bigint
            FROM (SELECT trim('"' FROM current_setting('search_path')) AS name) AS wanted
                LEFT JOIN pg_catalog.pg_namespace AS n ON nspname = wanted.name
            """)
        guard let row = rows.first else { return nil }
        role = try row.text(0)
        database = try row.text(1)
        schema = try row.text(2)
        exists = try row.integer(3) == 1
        mayUse = try row.integer(4) == 1
        mayCreate = try row.integer(5) == 1
        otherOwner = try row.optionalText(6)
        hasMigrations = try row.integer(7) == 1
    }
}
