// SPDX-License-Identifier: Apache-2.0

import CLibpq

extension StorageError {
    /// A connection pooler hands each transaction to a session of its choice: what a session is told, prepares and locks
    /// would be another client's.
    package static let transactionPooler = unavailable(
        "a connection pooler in transaction mode is in between, and a service needs a session of its own: give it the "
            + "server's own address, or one with pool_mode=session")
}

/// Finds out whether a session is this connection's own.
enum PostgreSQLPooler {
    /// Whether both connections have worked in one session, or one of them in two. A pooler that is known to be in
    /// between gives each client the session that was free last, or each in turn; with a session for each client neither
    /// can happen.
    ///
    /// - Parameters:
    ///   - other: another connection to the same place.
    ///   - isHere: whether the first connection's session is that of this process of the server.
    static func sharesSessions(
        _ other: OpaquePointer, isHere: (Int64) throws(StorageError) -> Bool
    ) throws(StorageError) -> Bool {
        var first: Int64?
        for _ in 0..<6 {
            guard let process = process(of: other) else { return false }
            if let first, first != process { return true }
            first = process
            if try isHere(process) { return true }
            // A pooler that takes turns would give each of the two the same one again.
            guard let again = self.process(of: other) else { return false }
            if again != process { return true }
        }
        return false
    }

    private static func process(of handle: OpaquePointer) -> Int64? {
        guard let result = PQexec(handle, "SELECT pg_catalog.pg_backend_pid()") else { return nil }
        defer { PQclear(result) }
        guard PQresultStatus(result) == PGRES_TUPLES_OK, let text = PQgetvalue(result, 0, 0) else { return nil }
        return Int64(String(cString: text))
    }
}
