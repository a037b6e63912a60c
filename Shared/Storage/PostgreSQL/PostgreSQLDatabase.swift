// SPDX-License-Identifier: Apache-2.0

import Contracts
public import Logging

/// A store in one schema of a PostgreSQL database, for any number of replicas.
///
/// Holds one connection, made by the first transaction and made anew by the next transaction after it was lost.
/// Confined to one thread, like every ``SQLDatabase``.
///
/// Without conflicts a transaction costs one round trip for each call on it and one for the commit; what is only sent
/// (``SQLTransaction/sendEach(_:count:bind:)``) goes with the next one.
public final class PostgreSQLDatabase: SQLDatabase {
    /// How far concurrent transactions are kept apart. Both may end in ``StorageError/Kind/conflict``.
    public enum Isolation: String, Sendable {
        /// A transaction sees one state and may not change rows that others have changed since. Two transactions that
        /// read what the other one writes can both succeed.
        case repeatableRead = "REPEATABLE READ"
        /// The outcome is that of some serial order.
        case serializable = "SERIALIZABLE"
    }

    public let engine = SQLEngine.postgresql
    public private(set) var connectionNumber = 0
    private var settings: PostgreSQLSettings
    private let urlFile: String?
    private let isolation: Isolation
    private let logger: Logger
    private var connection: PostgreSQLConnection?
    private var isClosed = false
    private var isInTransaction = false
    private var obstacles = PostgreSQLObstacle()

    /// Checks the arguments. Does not connect: the server may come up later.
    ///
    /// - Parameters:
    ///   - url: as libpq takes it (`postgresql://…`). May name several hosts; the one that takes writes is used.
    ///   - urlFile: the file that `url` was read from. It is read again for each connection, so a password in it may change.
    ///   - schema: lower-case letters, digits and underscores.
    ///   - statementTimeout: after which the server gives up a statement, and a little later the client the server.
    ///   - idleTransactionTimeout: after which a transaction whose client stands still is ended, so that a frozen
    ///     replica does not keep its locks. The server sees to it between round trips; within one, who waits for
    ///     the locks does. A lock is waited for half as long, which is a `conflict`.
    ///   - isOfService: keeps what may only be done without a service away (``ServiceLock``).
    ///   - makesSchema: whether a connection makes the schema where it is missing. Else ``Migrator/run(on:)`` does.
    /// - Throws: `invalid` for an unusable URL or schema name.
    public init(
        url: String, urlFile: String? = nil, schema: String, isolation: Isolation = .repeatableRead,
        statementTimeout: Duration = .seconds(30), idleTransactionTimeout: Duration = .seconds(10),
        isOfService: Bool = false, makesSchema: Bool = true, logger: Logger = Logger(label: "identitybus.storage")
    ) throws(StorageError) {
        settings = try PostgreSQLSettings(
            url: url, schema: schema, statementTimeout: statementTimeout,
            idleTransactionTimeout: idleTransactionTimeout, isOfService: isOfService, makesSchema: makesSchema)
        self.urlFile = urlFile
        self.isolation = isolation
        self.logger = logger
    }

    /// What is wrong with a URL, in words that go behind "the URL", without anything that may be a part of its password.
    public static func flaw(of url: String) -> String? {
        do {
            _ = try PostgreSQLURL(url)
            return nil
        } catch {
            return error.message
        }
    }

    /// The hosts and ports of a URL, as people name them: `db:5432`, or several with commas. Without users and passwords.
    public static func place(of url: String) -> String { PostgreSQLSettings.place(of: url) }

    @discardableResult
    public func transaction<T>(_ body: (any SQLTransaction) throws -> T) throws -> T {
        try exclusively { connection in
            try run(body, on: connection, beginning: "BEGIN ISOLATION LEVEL \(isolation.rawValue)")
        }
    }

    /// Runs at READ COMMITTED, where each statement sees all that was committed before it, without timeouts for
    /// statements and locks.
    @discardableResult
    public func exclusiveTransaction<T>(_ body: (any SQLTransaction) throws -> T) throws -> T {
        try exclusively { connection in
            connection.isPatient = true
            defer { connection.isPatient = false }
            return try run(
                { transaction in
                    try transaction.execute("SET LOCAL statement_timeout TO 0")
                    try transaction.execute("SET LOCAL lock_timeout TO 0")
                    _ = try transaction.query(
                        "SELECT 1 FROM pg_catalog.pg_advisory_xact_lock($1)", [.integer(settings.lockKey)])
                    return try body(transaction)
                }, on: connection, beginning: "BEGIN ISOLATION LEVEL READ COMMITTED")
        }
    }

    public func obstacle(to tables: [String], isSuspected: Bool) throws -> StorageError? {
        try obstacles.look(at: tables, isSuspected: isSuspected) { try transaction($0) }
    }

    public func close() {
        guard !isInTransaction else { return }
        connection = nil
        isClosed = true
    }

    // MARK: Transactions

    private func exclusively<T>(_ work: (PostgreSQLConnection) throws -> T) throws -> T {
        guard !isClosed else { throw StorageError.unavailable("the database is closed") }
        guard !isInTransaction else { throw StorageError.invalid("a transaction is already running") }
        isInTransaction = true
        defer { isInTransaction = false }
        let connection = try usableConnection()
        defer { dropIfBroken(connection) }
        return try work(connection)
    }

    private func run<T>(
        _ body: (any SQLTransaction) throws -> T, on connection: PostgreSQLConnection, beginning: String
    ) throws -> T {
        let transaction = PostgreSQLTransaction(connection, beginning: beginning)
        defer { transaction.end() }
        let value: T
        do {
            value = try body(transaction)
            if let failure = transaction.failure { throw failure }
            if transaction.hasBegun { try commit(connection) }
        } catch {
            rollBack(transaction, on: connection)
            let failure = transaction.failure ?? error as? StorageError
            if failure?.isLockTimeout == true { endSessionsThatStandStill(connection) }
            throw error
        }
        return value
    }

    private func commit(_ connection: PostgreSQLConnection) throws(StorageError) {
        let tag: String
        do {
            tag = try connection.run(["COMMIT"])
        } catch {
            throw connection.hasFailedBefore ? error : error.atCommit
        }
        guard tag == "COMMIT" else {
            throw .invalid("the server answered \(tag) to a COMMIT")
        }
    }

    private func rollBack(_ transaction: PostgreSQLTransaction, on connection: PostgreSQLConnection) {
        guard transaction.hasBegun else { return }
        connection.settle()
        // A COMMIT that was refused has ended it.
        guard !connection.isBroken, connection.isInTransaction else { return }
        do {
            try connection.run(["ROLLBACK"])
        } catch {
            // The server rolls back when the session ends.
            connection.abandon()
        }
    }

    /// The idle timeout is not armed while the server waits for the rest of a pipeline, or for a client that reads
    /// its answers: a client frozen just then would keep its locks until its host goes away.
    private func endSessionsThatStandStill(_ connection: PostgreSQLConnection) {
        guard !connection.isBroken else { return }
        let ended: [Int64]
        do {
            ended = try connection.endSessionsThatStandStill()
        } catch {
            // What the transaction failed with is the news; the next one that waits in vain tries again.
            logger.warning(
                "cannot end idle sessions that hold locks",
                metadata: ["event": "database.lock-kept", "error": "\(error)"])
            return
        }
        guard !ended.isEmpty else {
            logger.debug("a lock did not become free in time", metadata: ["schema": "\(settings.schema)"])
            return
        }
        logger.warning(
            "ended idle sessions that held locks",
            metadata: [
                "event": "database.sessions-ended", "schema": "\(settings.schema)",
                "count": .stringConvertible(ended.count),
                "pids": "\(ended.map(String.init).joined(separator: " "))",
            ])
    }

    // MARK: Connection

    private func usableConnection() throws(StorageError) -> PostgreSQLConnection {
        if let connection { return connection }
        renewURL()
        let fresh = try PostgreSQLConnection(settings)
        logger.debug("connected to PostgreSQL", metadata: ["schema": "\(settings.schema)"])
        connection = fresh
        connectionNumber += 1
        return fresh
    }

    /// Takes the URL that its file holds now. One that cannot be read or used leaves the one of before.
    private func renewURL() {
        guard let urlFile else { return }
        do {
            let url = try TextFile.secret(urlFile).withoutFinalNewlines
            guard url != settings.url else { return }
            settings = try settings.with(url: url)
        } catch {
            logger.warning(
                "the file of the database's URL cannot be used; what it held before is still used",
                metadata: ["event": "database.url-unreadable", "error": "\(error)"])
        }
    }

    private func dropIfBroken(_ used: PostgreSQLConnection) {
        guard used.isBroken else { return }
        // Who asked for the transaction is told why, and says it.
        logger.debug("lost the connection to PostgreSQL", metadata: ["schema": "\(settings.schema)"])
        connection = nil
    }
}
