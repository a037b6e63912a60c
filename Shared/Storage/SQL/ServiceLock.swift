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
