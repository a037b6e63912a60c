// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// One connection to a service's store.
///
/// A database belongs to the thread that uses it: it is not `Sendable`, everything is synchronous and may block, and
/// there is one transaction at a time. A service opens one per loop.
public protocol SQLDatabase: AnyObject {
    var engine: SQLEngine { get }

    /// Which connection this is: 0 before the first one, raised by each new one, before its first transaction runs.
    ///
    /// The store behind a new connection may be an earlier copy (a standby took over, a backup was put back). So who
    /// holds partitions compares, inside each transaction or before it, with the number at his last claim, and where
    /// it differs renews his claims first (``PartitionClaimRequest/heldEpoch``). The schema may be an older one too.
    var connectionNumber: Int { get }

    /// Runs `body` in a transaction: committed when `body` returns, rolled back when it throws.
    ///
    /// When this returns, the changes are durable (as durable as the engine is configured to be). When it throws,
    /// none of them took effect, with one exception: a ``StorageError`` whose `outcomeUnknown` is true.
    /// The isolation is at least that of a snapshot: all statements see one state of the database.
    ///
    /// - Throws: what `body` throws, or a ``StorageError``. `conflict`: somebody else won, run it again with fresh
    ///   reads. `unavailable`: back off, then run it again; a lost connection is made anew by the next transaction.
    @discardableResult
    func transaction<T>(_ body: (any SQLTransaction) throws -> T) throws -> T

    /// Like ``transaction(_:)``, but alone: no other exclusive transaction on the same database (for PostgreSQL: the
    /// same schema) runs at the same time, and `body` sees everything that was committed before it began.
    /// Waits for its turn. Meant for migrations.
    @discardableResult
    func exclusiveTransaction<T>(_ body: (any SQLTransaction) throws -> T) throws -> T

    /// What keeps us from writing, looked for where nothing is to be written: a full disk, a table that another session
    /// keeps locked. Waits for no lock. `nil` when nothing was seen.
    ///
    /// - Parameters:
    ///   - tables: those that are written to.
    ///   - isSuspected: a lock was waited for in vain. Otherwise one is told once two calls have met it.
    /// - Throws: as ``transaction(_:)``.
    func obstacle(to tables: [String], isSuspected: Bool) throws -> StorageError?

    /// Gives the connection and all locks back. Later transactions throw `unavailable`. May be called twice;
    /// does nothing inside a transaction.
    func close()
}

extension SQLDatabase {
    public func obstacle(to tables: [String], isSuspected: Bool) throws -> StorageError? { nil }
}

/// The engine behind a ``SQLDatabase``, for the few statements whose text has to differ.
public enum SQLEngine: String, Sendable, Hashable, CaseIterable {
    case sqlite
    case postgresql
}

/// The statements of one running transaction.
///
/// Statements carry their parameters as `$1`, `$2`, … on both engines, and are prepared once per connection: keep
/// their text constant and put everything that varies into parameters.
///
/// A transaction is used on the thread it was started on, inside the closure it was handed to. After a statement has
/// failed the transaction is lost: every later statement throws the same error, and the transaction is rolled back
/// even if the closure swallows the error. (PostgreSQL works like that; SQLite is held to it, so that a service that
/// was tested on one engine does not commit halves on the other.)
public protocol SQLTransaction: AnyObject {
    /// The engine that runs the statements.
    var engine: SQLEngine { get }

    /// Whether no other transaction writes between the beginning and the end of this one.
    var isAlone: Bool { get }

    /// Runs the same statement `count` times, in order; each run sees what those before it changed. One round trip on
    /// PostgreSQL, however many runs there are.
    ///
    /// - Parameters:
    ///   - bind: binds the values of run number n.
    ///   - row: looks at one row of the answer to run number n. What it wants to keep, it reads.
    func queryEach(
        _ sql: String, count: Int, bind: (Int, any SQLBinder) throws(StorageError) -> Void,
        row: (Int, any SQLCursor) throws(StorageError) -> Void
    ) throws(StorageError)

    /// Like ``queryEach(_:count:bind:row:)``, but returns how many rows each run inserted, updated or deleted (0 for
    /// other statements).
    @discardableResult
    func executeEach(
        _ sql: String, count: Int, bind: (Int, any SQLBinder) throws(StorageError) -> Void
    ) throws(StorageError) -> [Int]

    /// Like ``executeEach(_:count:bind:)`` for whoever does not need to know what came of it: PostgreSQL works while the
    /// caller goes on. A failure is thrown by a later call, or in the place of the commit; nothing is committed then.
    func sendEach(
        _ sql: String, count: Int, bind: (Int, any SQLBinder) throws(StorageError) -> Void
    ) throws(StorageError)
}

extension SQLTransaction {
    public var isAlone: Bool { engine == .sqlite }

    /// As an engine does it that works on the caller's thread.
    public func sendEach(
        _ sql: String, count: Int, bind: (Int, any SQLBinder) throws(StorageError) -> Void
    ) throws(StorageError) {
        try executeEach(sql, count: count, bind: bind)
    }
}

/// Takes the values of one run of a statement, straight into the engine's own buffers: the first one is `$1`.
public protocol SQLBinder: AnyObject {
    func bindNull() throws(StorageError)
    func bind(_ integer: Int64) throws(StorageError)
    func bind(_ text: String) throws(StorageError)
    func bind(_ bytes: [UInt8]) throws(StorageError)
}

/// The row of an answer that is being looked at. Columns are read by their place, counted from 0.
///
/// Reading a column as something it is not throws ``StorageError/Kind/invalid``.
public protocol SQLCursor: AnyObject {
    var columnCount: Int { get }
    /// The value, whatever its type.
    func value(_ column: Int) throws(StorageError) -> SQLValue
    func isNull(_ column: Int) throws(StorageError) -> Bool
    func integer(_ column: Int) throws(StorageError) -> Int64
    func text(_ column: Int) throws(StorageError) -> String
    func blob(_ column: Int) throws(StorageError) -> [UInt8]
}

/// Why the store did not do what it was asked.
///
/// The description may be logged: it never holds parameter values, row values, passwords or connection URLs.
public struct StorageError: Error, Sendable, Hashable {
    /// What the caller should do about it.
    public enum Kind: Sendable, Hashable {
        /// A concurrent writer won (serialisation failure, deadlock, unique violation) or holds a lock for too long.
        /// Read again, decide again.
        case conflict
        /// The store cannot work now: connection lost, server stopping, busy, full, damaged, access refused, and all
        /// else that an operator or time has to mend. Nothing is wrong with the request: back off and try again.
        case unavailable
        /// These partitions were claimed by another replica, or the store no longer stands where this replica left it.
        /// Roll back and let go of them.
        case fenced([TopicPartition])
        /// The statement or its values are wrong. Trying again cannot help.
        case invalid
    }

    public let kind: Kind
    public let message: String
    /// PostgreSQL's five-character SQLSTATE or SQLite's extended result code in decimal.
    public let sqlState: String?
    /// Whether a commit was sent and its answer lost. The transaction may or may not have happened: look, then act.
    public let outcomeUnknown: Bool

    public init(kind: Kind, message: String, sqlState: String? = nil, outcomeUnknown: Bool = false) {
        self.kind = kind
        self.message = message
        self.sqlState = sqlState
        self.outcomeUnknown = outcomeUnknown
    }

    static func invalid(_ message: String) -> StorageError {
        StorageError(kind: .invalid, message: message)
    }

    @usableFromInline
    static func unknownWord(in column: StaticString) -> StorageError {
        .invalid("column \(column) holds a word that is not known")
    }

    static func noColumn(_ column: Int, of count: Int) -> StorageError {
        .invalid("column \(column) was asked of a row with \(count) columns")
    }

    static func mismatch(_ column: Int, _ value: SQLValue, _ wanted: String) -> StorageError {
        .invalid("column \(column) holds \(value.typeName), not \(wanted)")
    }

    static func unavailable(_ message: String, sqlState: String? = nil) -> StorageError {
        StorageError(kind: .unavailable, message: message, sqlState: sqlState)
    }

    /// Whether this conflict came of a lock that was not free in time: nobody has won yet, and waiting is done.
    public var isLockTimeout: Bool { sqlState == "55P03" }

    /// The same error as the answer to a COMMIT: unless the store said that it refused, nobody knows.
    var atCommit: StorageError {
        guard kind == .unavailable else { return self }
        return StorageError(kind: kind, message: message, sqlState: sqlState, outcomeUnknown: true)
    }
}

extension StorageError {
    /// What is wrong with the store, without what it means for the caller.
    public var cause: String {
        message.split(whereSeparator: \.isNewline).joined(separator: " ") + (sqlState.map { " [\($0)]" } ?? "")
    }
}

extension StorageError: CustomStringConvertible {
    public var description: String {
        let name =
            switch kind {
            case .conflict: "conflict"
            case .unavailable: "unavailable"
            case .fenced: "fenced"
            case .invalid: "invalid"
            }
        let state = sqlState.map { " [\($0)]" } ?? ""
        return "storage \(name)\(state): \(message)" + (outcomeUnknown ? " (outcome of the commit unknown)" : "")
    }
}
