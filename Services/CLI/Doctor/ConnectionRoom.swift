// SPDX-License-Identifier: Apache-2.0

import Storage

/// How many sessions the role of a connection may still open: the server, the database and the role have limits.
struct ConnectionRoom {
    /// One limit, and how many sessions count against it, without the one that asks.
    struct Limit: Equatable {
        /// As a cause of the finding: `server-limit`, `database-limit` or `role-limit`.
        let cause: String
        let most: Int64
        let open: Int64

        var free: Int64 { max(0, most - open) }
    }

    let role: String
    let database: String
    /// The server's first, which is always there.
    let limits: [Limit]

    init(role: String, database: String, limits: [Limit]) {
        self.role = role
        self.database = database
        self.limits = limits
    }

    /// - Parameter transaction: of the session that counts.
    init(in transaction: any SQLTransaction) throws {
        // What other roles' sessions are is told to few: those with a role and a database are the clients'.
        let rows = try transaction.query(
            """
            SELECT session_user::text, current_database()::text,
                current_setting('max_connections')::bigint - CASE WHEN rolsuper THEN 0
                    ELSE current_setting('superuser_reserved_connections')::bigint END
                    - CASE WHEN rolsuper OR reserved.may THEN 0
                    ELSE COALESCE(current_setting('reserved_connections', true), '0')::bigint END,
                CASE WHEN rolsuper THEN -1 ELSE datconnlimit END::bigint,
                CASE WHEN rolsuper THEN -1 ELSE rolconnlimit END::bigint,
                sessions.everybody, sessions.here, sessions.own
            FROM pg_catalog.pg_roles, pg_catalog.pg_database,
                (SELECT COALESCE(bool_or(pg_has_role(session_user, oid, 'USAGE')), false) AS may
                    FROM pg_catalog.pg_roles WHERE rolname = 'pg_use_reserved_connections') AS reserved,
                (SELECT count(*) AS everybody, count(*) FILTER (WHERE datname = current_database()) AS here,
                        count(*) FILTER (WHERE usename = session_user) AS own
                    FROM pg_catalog.pg_stat_activity
                    WHERE datid IS NOT NULL AND usesysid IS NOT NULL AND pid <> pg_backend_pid()
                        AND COALESCE(backend_type, 'client backend') = 'client backend') AS sessions
            WHERE rolname = session_user AND datname = current_database()
            """)
        guard let row = rows.first else {
            throw StorageError(kind: .invalid, message: "the server says nothing of this role")
        }
        role = try row.text(0)
        database = try row.text(1)
        let found = try [("server-limit", 2, 5), ("database-limit", 3, 6), ("role-limit", 4, 7)].map {
            Limit(cause: $0, most: try row.integer($1), open: try row.integer($2))
        }
        limits = found.filter { $0.cause == "server-limit" || $0.most >= 0 }
    }

    /// - Parameters:
    ///   - wanted: connections that are still to be opened.
    ///   - services: whose they are.
    func finding(wanted: Int, of services: String) -> Finding {
        guard let least = limits.min(by: { $0.free < $1.free }) else { return .skip(.databaseRoom, needs: "a limit") }
        let (whose, fix) = words(least.cause)
        let words =
            "\(least.free) of \(least.most) connections \(whose) are free; wanted by \(services): "
            + (wanted == 0 ? "no more" : "\(wanted) more")
        return least.free >= wanted
            ? .ok(.databaseRoom, words) : .warn(.databaseRoom, words, fix: fix, cause: least.cause)
    }

    private func words(_ cause: String) -> (whose: String, fix: String) {
        switch cause {
        case "role-limit": ("of role \(role)", "ALTER ROLE \(role) CONNECTION LIMIT …, or end sessions of that role.")
        case "database-limit":
            ("of database \(database)", "ALTER DATABASE \(database) CONNECTION LIMIT …, or end sessions there.")
        default: ("of the server", "Raise max_connections, or end sessions that nobody needs (pg_stat_activity).")
        }
    }
}
