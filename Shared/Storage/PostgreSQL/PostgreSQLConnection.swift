// SPDX-License-Identifier: Apache-2.0

import CLibpq
import Contracts
import Glibc

/// One session with a server, and the statements prepared in it. Always in libpq's pipeline mode, never blocking
/// inside libpq after it has connected.
final class PostgreSQLConnection {
    /// Far above what a service writes by hand; only keeps generated texts from filling the server's memory.
    private static let statementLimit = 256
    /// Beyond the server's own timeout, so that the server is the one to speak first.
    private static let slack = Duration.seconds(5)

    private let handle: OpaquePointer
    private let settings: PostgreSQLSettings
    private var statements: [String: PostgreSQLStatement] = [:]
    private var statementNumber = 0
    private let parameters = PostgreSQLParameters()
    /// Set once the session cannot be trusted any more. A new one is made for the next transaction then.
    private(set) var isBroken = false
    /// What was sent and is answered with the next exchange.
    private var unanswered = PostgreSQLPipeline.Unanswered()
    /// Whether the last exchange that failed did so for the sake of what was sent before it: what it asked for itself
    /// was not done.
    private(set) var hasFailedBefore = false
    /// Wait for the server as long as the connection lives, for the time of one long transaction.
    var isPatient = false

    init(_ settings: PostgreSQLSettings) throws(StorageError) {
        self.settings = settings
        guard let handle = Self.connect(settings.keywords) else {
            throw .unavailable("no memory for a connection to PostgreSQL")
        }
        self.handle = handle
        guard PQstatus(handle) == CONNECTION_OK else {
            throw .unavailable(settings.withoutPassword(PostgreSQLPipeline.message(handle)), sqlState: "08001")
        }
        // Notices ("relation exists, skipping") would be printed to stderr.
        _ = PQsetNoticeReceiver(handle, { _, _ in }, nil)
        guard PQsetnonblocking(handle, 1) == 0, PQenterPipelineMode(handle) == 1 else {
            throw .unavailable("cannot use pipeline mode: \(PostgreSQLPipeline.message(handle))")
        }
        if try isBehindTransactionPooler() { throw .transactionPooler }
        try run(settings.sessionStatements)
        if settings.makesSchema { try createSchema() }
        if settings.isOfService { try shareServiceLock() }
    }

    deinit {
        PQfinish(handle)
    }

    /// Runs statements that have no parameters, in one round trip. Returns the command tag of the last one.
    @discardableResult
    func run(_ commands: [String]) throws(StorageError) -> String {
        var tag = ""
        try exchange(count: commands.count) { (index) throws(StorageError) in
            let accepted = PQsendQueryParams(self.handle, commands[index], 0, nil, nil, nil, nil, 1)
            return try self.accepted(accepted, commands[index].utf8.count)
        } receive: { (_, result) throws(StorageError) in
            tag = String(cString: PQcmdStatus(result))
        }
        return tag
    }

    /// The prepared form of `sql`. The first time it costs a round trip, which carries `preamble` as well.
    func statement(_ sql: String, after preamble: String?) throws(StorageError) -> (PostgreSQLStatement, Bool) {
        if let known = statements[sql] { return (known, false) }
        if statements.count >= Self.statementLimit {
            statements.removeAll()
            try run((preamble.map { [$0] } ?? []) + ["DEALLOCATE ALL"])
            return (try prepare(sql, after: nil), true)
        }
        return (try prepare(sql, after: preamble), true)
    }

    /// Whether a transaction is open, or has failed and not been rolled back. Of the answers that were read.
    var isInTransaction: Bool { PQtransactionStatus(handle) != PQTRANS_IDLE }

    /// Reads the answers to what was only sent, whatever they are.
    func settle() {
        guard unanswered.syncs > 0, !isBroken else { return }
        // What failed was thrown, or is of no interest any more.
        try? exchange(count: 0) { (_) throws(StorageError) in
            0
        } receive: { (_, _) throws(StorageError) in
        }
    }

    /// Sends `statement` `count` times, and waits for nothing. A failure is thrown by the next exchange.
    func send(
        _ statement: PostgreSQLStatement, count: Int, after preamble: String?,
        bind: (Int, any SQLBinder) throws(StorageError) -> Void
    ) throws(StorageError) {
        let first = preamble == nil ? 0 : 1
        do {
            try PostgreSQLPipeline.send(handle, count: count + first, unanswered: &unanswered) {
                (index) throws(StorageError) in
                try self.request(statement, index - first, preamble, bind)
            }
        } catch {
            if PQstatus(handle) != CONNECTION_OK || error.endsPostgreSQLSession { isBroken = true }
            throw error
        }
    }

    /// Runs `statement` `count` times, in one round trip that carries `preamble` as well.
    func run(
        _ statement: PostgreSQLStatement, count: Int, after preamble: String?,
        bind: (Int, any SQLBinder) throws(StorageError) -> Void,
        receive: (Int, OpaquePointer) throws(StorageError) -> Void
    ) throws(StorageError) {
        let first = preamble == nil ? 0 : 1
        try exchange(count: count + first) { (index) throws(StorageError) in
            try self.request(statement, index - first, preamble, bind)
        } receive: { (index, result) throws(StorageError) in
            if index >= first { try receive(index - first, result) }
        }
    }

    /// Ends sessions like this one that are in a transaction, may hold locks that others wait for, and have waited for
    /// their client for as long as an idle transaction may. One that is busy, or whose client makes requests, is left
    /// alone, and so is one that only reads, like a back-up.
    /// - Returns: their process ids.
    func endSessionsThatStandStill() throws(StorageError) -> [Int64] {
        let (statement, _) = try statement(Self.endSessionsThatStandStill, after: nil)
        let limit = settings.idleTransactionTimeout.inMilliseconds
        var rows: [SQLRow] = []
        try run(statement, count: 1, after: nil) { (_, binder) throws(StorageError) in
            try binder.bind(self.settings.schema)
            try binder.bind(limit)
        } receive: { (_, result) throws(StorageError) in
            try PostgreSQLCursor(result, of: statement).forEach { (cursor) throws(StorageError) in
                rows.append(try cursor.row())
            }
        }
        var ended: [Int64] = []
        for row in rows where try row.integer(1) == 1 { ended.append(try row.integer(0)) }
        return ended
    }

    /// A row lock shows only as the lock on its table.
    private static let endSessionsThatStandStill = """
        SELECT session.pid, pg_catalog.pg_terminate_backend(session.pid)
        FROM pg_catalog.pg_stat_activity AS session
        WHERE session.datname = pg_catalog.current_database() AND session.usename = SESSION_USER
            AND session.pid <> pg_catalog.pg_backend_pid() AND session.xact_start IS NOT NULL
            AND session.wait_event_type = 'Client' AND session.wait_event IN ('ClientRead', 'ClientWrite')
            AND session.state_change
                < pg_catalog.clock_timestamp() - CAST($2 AS BIGINT) * INTERVAL '1 millisecond'
            AND EXISTS (
                SELECT 1
                FROM pg_catalog.pg_locks AS lock
                    JOIN pg_catalog.pg_class AS relation ON relation.oid = lock.relation
                    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = relation.relnamespace
                WHERE lock.pid = session.pid AND lock.granted AND lock.mode <> 'AccessShareLock'
                    AND namespace.nspname = CAST($1 AS TEXT))
        """

    /// Marks the session as unusable.
    func abandon() {
        isBroken = true
    }

    // MARK: Inside

    private func prepare(_ sql: String, after preamble: String?) throws(StorageError) -> PostgreSQLStatement {
        statementNumber += 1
        let name = "s\(statementNumber)"
        var requests: [PostgreSQLRequest] = preamble.map { [.command($0)] } ?? []
        requests += [.prepare(name: name, sql: sql), .describe(name: name)]
        var statement: PostgreSQLStatement?
        try exchange(count: requests.count) { (index) throws(StorageError) in
            try self.send(requests[index])
        } receive: { (index, result) throws(StorageError) in
            if index == requests.count - 1 { statement = PostgreSQLStatement(name: name, description: result) }
        }
        guard let statement else { throw .unavailable("the server did not describe a statement") }
        statements[sql] = statement
        return statement
    }

    private func send(_ request: PostgreSQLRequest) throws(StorageError) -> Int {
        switch request {
        case .prepare(let name, let sql):
            return try accepted(PQsendPrepare(handle, name, sql, 0, nil), sql.utf8.count)
        case .describe(let name):
            return try accepted(PQsendDescribePrepared(handle, name), 0)
        case .command(let sql):
            return try accepted(PQsendQueryParams(handle, sql, 0, nil, nil, nil, nil, 1), sql.utf8.count)
        }
    }

    /// Queues run number n of the statement, or what goes before the runs.
    private func request(
        _ statement: PostgreSQLStatement, _ run: Int, _ preamble: String?,
        _ bind: (Int, any SQLBinder) throws(StorageError) -> Void
    ) throws(StorageError) -> Int {
        if run < 0, let preamble { return try send(.command(preamble)) }
        try parameters.encode(as: statement.parameterTypes) { (binder) throws(StorageError) in
            try bind(run, binder)
        }
        let count = CInt(statement.parameterTypes.count)
        let accepted = parameters.withPointers {
            PQsendQueryPrepared(handle, statement.name, count, $0, $1, $2, 1)
        }
        return try self.accepted(accepted, parameters.size)
    }

    /// A request takes some 60 bytes beside its values.
    private func accepted(_ answer: CInt, _ size: Int) throws(StorageError) -> Int {
        guard answer == 1 else {
            throw .unavailable("the connection was lost: \(PostgreSQLPipeline.message(handle))", sqlState: "08006")
        }
        return size + 64
    }

    private func exchange(
        count: Int, send: (Int) throws(StorageError) -> Int,
        receive: (Int, OpaquePointer) throws(StorageError) -> Void
    ) throws(StorageError) {
        let patience = isPatient ? nil : settings.statementTimeout + Self.slack
        var pipeline = PostgreSQLPipeline(handle: handle, patience: patience, after: unanswered)
        unanswered = PostgreSQLPipeline.Unanswered()
        do {
            try pipeline.run(count: count, send: send, receive: receive)
        } catch {
            if !pipeline.isInStep || error.endsPostgreSQLSession { isBroken = true }
            hasFailedBefore = pipeline.hasFailedBefore && pipeline.isInStep
            throw error
        }
    }

    /// Two replicas that create the same schema at once would meet in a unique index of the catalogue, so they take
    /// turns. Without a BEGIN, all statements up to the sync are one transaction.
    private func createSchema() throws(StorageError) {
        let known = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = '\(settings.schema)'"
        guard try run([known]) == "SELECT 0" else { return }
        try run([
            "SELECT pg_catalog.pg_advisory_xact_lock(\(settings.lockKey))",
            "CREATE SCHEMA IF NOT EXISTS \"\(settings.schema)\"",
        ])
    }

    private func shareServiceLock() throws(StorageError) {
        let key = ServiceLock.key(schema: settings.schema)
        let taken = "SELECT 1 WHERE pg_catalog.pg_try_advisory_lock_shared(\(key))"
        guard try run([taken]) == "SELECT 1" else {
            throw .unavailable("a command such as `identitybus rekey` has the schema \(settings.schema) to itself")
        }
    }

    /// A server tells its process when it connects; a pooler tells a number of its own. Only then is the other one asked.
    private func isBehindTransactionPooler() throws(StorageError) -> Bool {
        func isHere(_ process: Int64) throws(StorageError) -> Bool {
            try run(["SELECT 1 WHERE pg_catalog.pg_backend_pid() = \(process)"]) == "SELECT 1"
        }
        if try isHere(Int64(PQbackendPID(handle))) { return false }
        guard let other = Self.connect(settings.keywords) else { return false }
        defer { PQfinish(other) }
        guard PQstatus(other) == CONNECTION_OK else { return false }
        return try PostgreSQLPooler.sharesSessions(other, isHere: isHere)
    }

    private static func connect(_ keywords: [(name: String, value: String)]) -> OpaquePointer? {
        // strdup and free, because libpq takes two arrays of C strings that live as long as the call.
        var names: [UnsafePointer<CChar>?] = keywords.map { UnsafePointer(strdup($0.name)) } + [nil]
        var values: [UnsafePointer<CChar>?] = keywords.map { UnsafePointer(strdup($0.value)) } + [nil]
        defer {
            for pointer in names + values { free(UnsafeMutablePointer(mutating: pointer)) }
        }
        return PQconnectdbParams(&names, &values, 1)
    }
}

/// What can be put into a pipeline.
enum PostgreSQLRequest {
    /// Prepares a statement and lets the server name its types.
    case prepare(name: String, sql: String)
    case describe(name: String)
    /// A statement without parameters whose rows are not wanted.
    case command(String)
}
