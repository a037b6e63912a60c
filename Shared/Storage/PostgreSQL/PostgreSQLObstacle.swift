// SPDX-License-Identifier: Apache-2.0

/// What keeps a store in PostgreSQL from taking writes, looked for by whoever has nothing to write.
struct PostgreSQLObstacle {
    /// The lock that the last look met. One that is gone by the next look held nobody up.
    private var met: Lock?
    /// That the disk was full when it was last looked at.
    private var room: StorageError?
    private var looks = 0

    private struct Lock: Equatable {
        let table: String
        /// None for a transaction that was prepared and waits for its commit.
        let process: Int64?
        let isGranted: Bool
    }

    /// - Parameters:
    ///   - tables: the store's own.
    ///   - isSuspected: a lock was waited for in vain: the first look that meets one tells.
    ///   - transaction: runs its body in a transaction of its own.
    mutating func look(
        at tables: [String], isSuspected: Bool, _ transaction: ((any SQLTransaction) throws -> Void) throws -> Void
    ) throws -> StorageError? {
        looks += 1
        do {
            // What a write takes.
            let list = tables.map { "\"\($0)\"" }.joined(separator: ", ")
            try transaction { try $0.execute("LOCK TABLE \(list) IN ROW EXCLUSIVE MODE NOWAIT") }
            met = nil
        } catch let error as StorageError where error.isLockTimeout {
            return try lock(on: tables, isSuspected, transaction)
        }
        // A temporary file costs more than a lock.
        if room != nil || looks.isMultiple(of: 2) { room = try lackOfRoom(transaction) }
        return room
    }

    private mutating func lock(
        on tables: [String], _ isSuspected: Bool, _ transaction: ((any SQLTransaction) throws -> Void) throws -> Void
    ) throws -> StorageError? {
        var found: Lock?
        try transaction { transaction in
            found = try transaction.query(Self.locks(on: tables), []).first.map {
                Lock(table: try $0.text(0), process: try $0.optionalInteger(1), isGranted: try $0.integer(2) == 1)
            }
        }
        defer { met = found }
        guard let found, isSuspected || found == met else { return nil }
        let keeps = found.isGranted ? "keeps" : "waits for"
        let session = found.process.map { "another session (process \($0))" } ?? "a prepared transaction"
        return .unavailable("\(session) \(keeps) a lock on \(found.table)", sqlState: "55P03")
    }

    /// Those that no write goes together with. Whoever waits for one holds up who asks later.
    private static func locks(on tables: [String]) -> String {
        """
        SELECT format('%I.%I', namespace.nspname, relation.relname), CAST(lock.pid AS BIGINT),
            CAST(lock.granted AS INTEGER)
        FROM pg_catalog.pg_locks AS lock
            JOIN pg_catalog.pg_class AS relation ON relation.oid = lock.relation
            JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = relation.relnamespace
        WHERE namespace.nspname = current_schema() AND relation.relkind = 'r'
            AND relation.relname IN (\(tables.map { "'\($0)'" }.joined(separator: ", ")))
            AND lock.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
            AND lock.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
            AND lock.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
        ORDER BY lock.granted DESC, 1, 2
        LIMIT 1
        """
    }

    /// Spills some 140 KiB to a temporary file on the disk of the tables, which then is gone: only that shows a full disk
    /// before somebody writes.
    private func lackOfRoom(
        _ transaction: ((any SQLTransaction) throws -> Void) throws -> Void
    ) throws -> StorageError? {
        do {
            try transaction {
                _ = try $0.query(
                    """
                    SELECT set_config('temp_tablespaces', current_setting('default_tablespace'), true),
                        set_config('work_mem', '64kB', true)
                    """, [])
                _ = try $0.query("SELECT count(*) FROM generate_series(1, 10000)", [])
            }
            return nil
        } catch let error as StorageError where error.sqlState == "53100" {
            // The server names the file, which is another one each time.
            return .unavailable("the disk is full: No space left on device", sqlState: error.sqlState)
        } catch let error as StorageError where error.sqlState == "53400" {
            // The server allows no such file, so that nothing can be told.
            return nil
        }
    }
}
