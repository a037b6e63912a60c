// SPDX-License-Identifier: Apache-2.0

/// Whether a service works on a store, for what may only be done without it.
///
/// On SQLite the file's own lock says so: nobody has it open beside a service. On PostgreSQL each connection of a service
/// shares an advisory lock as long as it lives.
package enum ServiceLock {
    /// One for each schema.
    static func key(schema: String) -> Int64 {
        Int64(bitPattern: Fingerprint.of(["identitybus.storage.service", schema]))
    }

    /// How many connections services have to each of these schemas. Without a right of its own.
    package static func holders(of schemas: [String], in transaction: any SQLTransaction) throws -> [String: Int] {
        var holders: [String: Int] = [:]
        for schema in schemas {
            let key = UInt64(bitPattern: key(schema: schema))
            let rows = try transaction.query(
                """
                SELECT count(*) FROM pg_catalog.pg_locks
                WHERE locktype = 'advisory' AND granted AND objsubid = 1
                    AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
                    AND classid::bigint = $1 AND objid::bigint = $2
                """, [.integer(Int64(key >> 32)), .integer(Int64(key & 0xffff_ffff))])
            holders[schema] = Int(try rows.first?.integer(0) ?? 0)
        }
        return holders
    }

    /// Keeps services away until the transaction ends.
    ///
    /// - Throws: `unavailable` when one is connected.
    package static func take(in transaction: any SQLTransaction) throws(StorageError) {
        guard transaction.engine == .postgresql else { return }
        let schema = try transaction.query("SELECT current_schema()").first?.text(0) ?? ""
        let taken = try transaction.query(
            "SELECT 1 WHERE pg_catalog.pg_try_advisory_xact_lock($1)", [.integer(key(schema: schema))])
        guard !taken.isEmpty else {
            throw .unavailable("a service is connected to the schema \(schema): stop all its replicas first")
        }
    }
}
