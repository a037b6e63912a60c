// SPDX-License-Identifier: Apache-2.0

import CLibpq

/// A running transaction on PostgreSQL. See ``SQLTransaction`` for the rules that both engines keep.
final class PostgreSQLTransaction: SQLTransaction {
    let engine = SQLEngine.postgresql
    private let connection: PostgreSQLConnection
    /// Travels with the first statement, which saves a round trip; nil once it was sent.
    private var beginning: String?
    /// The first failure; nothing more is run after it.
    private(set) var failure: StorageError?

    init(_ connection: PostgreSQLConnection, beginning: String) {
        self.connection = connection
        self.beginning = beginning
    }

    /// Whether the server knows of this transaction.
    var hasBegun: Bool { beginning == nil }

    /// Makes later use of an escaped reference an error instead of a statement outside of any transaction.
    func end() {
        failure = failure ?? .invalid("the transaction has ended")
    }

    func queryEach(
        _ sql: String, count: Int, bind: (Int, any SQLBinder) throws(StorageError) -> Void,
        row: (Int, any SQLCursor) throws(StorageError) -> Void
    ) throws(StorageError) {
        try run(sql, count, bind) { (index, statement, result) throws(StorageError) in
            try PostgreSQLCursor(result, of: statement).forEach { (cursor) throws(StorageError) in
                try row(index, cursor)
            }
        }
    }

    func executeEach(
        _ sql: String, count: Int, bind: (Int, any SQLBinder) throws(StorageError) -> Void
    ) throws(StorageError) -> [Int] {
        var counts: [Int] = []
        counts.reserveCapacity(count)
        try run(sql, count, bind) { (_, _, result) throws(StorageError) in
            counts.append(PostgreSQLStatement.affectedRows(result))
        }
        return counts
    }

    func sendEach(
        _ sql: String, count: Int, bind: (Int, any SQLBinder) throws(StorageError) -> Void
    ) throws(StorageError) {
        try prepared(sql, count) { (statement, preamble) throws(StorageError) in
            try connection.send(statement, count: count, after: preamble, bind: bind)
        }
    }

    private func run(
        _ sql: String, _ count: Int, _ bind: (Int, any SQLBinder) throws(StorageError) -> Void,
        receive: (Int, PostgreSQLStatement, OpaquePointer) throws(StorageError) -> Void
    ) throws(StorageError) {
        try prepared(sql, count) { (statement, preamble) throws(StorageError) in
            try connection.run(statement, count: count, after: preamble, bind: bind) {
                (index, result) throws(StorageError) in
                try receive(index, statement, result)
            }
        }
    }

    private func prepared(
        _ sql: String, _ count: Int, _ work: (PostgreSQLStatement, String?) throws(StorageError) -> Void
    ) throws(StorageError) {
        if let failure { throw failure }
        guard count > 0 else { return }
        do {
            let preamble = beginning
            // From here on the server may have seen it, whatever fails.
            beginning = nil
            let (statement, didSend) = try connection.statement(sql, after: preamble)
            try work(statement, didSend ? nil : preamble)
        } catch {
            failure = error
            throw error
        }
    }
}

extension StorageError {
    /// What an error answer of the server means to the caller.
    ///
    /// Only the primary message is kept: the detail lines quote the values of keys.
    static func postgreSQL(_ result: OpaquePointer) -> StorageError {
        let state = field(result, "C") ?? ""
        let message = PostgreSQLWords.cause(of: field(result, "M") ?? String(cString: PQresultErrorMessage(result)))
        if isStalePlan(result, state) {
            return .unavailable("the tables changed under a prepared statement", sqlState: state)
        }
        // Data exceptions quote the value that they complain about.
        if isOutOfTransactionIDs(result, state) { return .unavailable(message, sqlState: state) }
        let safeMessage = state.hasPrefix("22") ? "a value does not fit its column or function" : message
        let advice = advice[state].map { " (\($0))" } ?? ""
        return StorageError(kind: kind(sqlState: state), message: safeMessage + advice, sqlState: state)
    }

    /// Whether the connection cannot be used after this error, although it may still look alive.
    var endsPostgreSQLSession: Bool {
        guard let sqlState, kind == .unavailable else { return false }
        // Plans and prepared statements that no longer fit, a server that became read-only, a session that was ended.
        return ["0A000", "26000", "25006", "25P03", "25P04", "3F000"].contains(sqlState) || sqlState.hasPrefix("57P")
            || sqlState.hasPrefix("08")
    }

    /// What to look at, where the server's words do not say it.
    private static let advice = [
        "3F000": "the role lacks USAGE or CREATE on the service's schema, or somebody has dropped it",
        "55P03": "another session or a prepared transaction keeps it: pg_locks shows which",
    ]

    private static func kind(sqlState: String) -> Kind {
        switch sqlState {
        case "40001", "40P01", "55P03", "23505", "23P01": return .conflict
        // Statement gone, read-only server, idle or running for too long, no such database, no right, no such schema.
        case "26000", "25006", "25P03", "25P04", "3D000", "42501", "3F000", "40003": return .unavailable
        // No such table, column or function, or not in a state to be used. What we ask for does not depend on values, so
        // somebody works on the store.
        case "42P01", "42703", "42883", "55000", "55006": return .unavailable
        default: break
        }
        switch sqlState.prefix(2) {
        // Connection, authorisation, resources, operator, system, configuration, damage.
        case "08", "28", "53", "57", "58", "F0", "XX", "": return .unavailable
        default: return .invalid
        }
    }

    /// A migration by another replica changed what a prepared statement returns. Preparing it again mends that.
    private static func isStalePlan(_ result: OpaquePointer, _ state: String) -> Bool {
        state == "0A000" && field(result, "R") == "RevalidateCachedQuery"
    }

    /// A server that must be vacuumed before it writes again says so with the code that values over a limit have too.
    private static func isOutOfTransactionIDs(_ result: OpaquePointer, _ state: String) -> Bool {
        state == "54000" && ["GetNewTransactionId", "GetNewMultiXactId"].contains(field(result, "R"))
    }

    /// - Parameter letter: a field's letter in the protocol: libpq's PG_DIAG macros, which Swift does not import.
    ///   C is the SQLSTATE, M the primary message, R the server's function.
    private static func field(_ result: OpaquePointer, _ letter: Unicode.Scalar) -> String? {
        PQresultErrorField(result, CInt(letter.value)).map { String(cString: $0) }
    }
}
