// SPDX-License-Identifier: Apache-2.0

import GRDB
import Glibc

/// A store in one SQLite file, for one replica: the embedded default, with nothing to install.
///
/// The file is in WAL mode, and a transaction holds the write lock from its beginning, so it never has to be run
/// again because of another writer. An advisory lock on `<path>.lock` keeps a second replica out.
/// Confined to one thread, like every ``SQLDatabase``.
///
/// A copy that is put in the place of the file while it is open (one file, by renaming it) is noticed by the next
/// transaction, which opens it; the log of the file before is removed, because SQLite would take it for the copy's own.
/// A file that is gone is `unavailable`, until one is there again. Writing *into* the open file (`cp copy store`) cannot
/// be noticed, and damages the store: stop the service before.
public final class SQLiteDatabase: SQLDatabase {
    /// How far a commit goes before it returns.
    public enum Synchronous: String, Sendable {
        /// To the disk: what was committed survives a power failure.
        case full = "FULL"
        /// To the operating system: survives `kill -9`, but a power failure may lose the last commits.
        case normal = "NORMAL"
    }

    /// Pages of 4 KiB in the log before they are copied into the database. Sixteen times SQLite's default: with random
    /// keys the same page is then written back once for many changes (measured: half as much again in rows/s).
    private static let checkpointPages = 16_384
    /// Negative means KiB.
    private static let cacheSize = -32_768
    /// Debian's SQLite overwrites whatever is deleted, and writes each freed page once more for it. FAST overwrites what
    /// stands on pages that are written anyway.
    private static let secureDelete = "FAST"

    /// Bytes. Less does not take one batch.
    private static let leastRoom: UInt64 = 64 << 10

    /// Whether so few bytes of a disk take no batch.
    package static func isFull(_ free: UInt64) -> Bool { free < leastRoom }

    public let engine = SQLEngine.sqlite
    public private(set) var connectionNumber = 0
    private let path: String
    private let synchronous: Synchronous
    private let statements = SQLiteStatementCache()
    private var connection: Connection?
    /// Nil once the store is closed.
    private var lock: FileLock?
    private var isInTransaction = false

    /// An open file. `log` is the file of its write-ahead log.
    private struct Connection {
        let queue: DatabaseQueue
        let file: FileIdentity
        let log: FileIdentity?
        let index: FileIdentity?
    }

    /// Opens the file, creating it (readable by its owner only) when missing. Its directory must exist.
    ///
    /// - Throws: `unavailable` when the file cannot be opened or another process uses it; the message names both.
    public init(path: String, synchronous: Synchronous = .full) throws(StorageError) {
        self.path = path
        self.synchronous = synchronous
        lock = try FileLock(path: path + ".lock", protecting: path)
        Self.createPrivately(path)
        _ = try usableConnection()
    }

    deinit {
        close()
    }

    @discardableResult
    public func transaction<T>(_ body: (any SQLTransaction) throws -> T) throws -> T {
        guard lock != nil else { throw StorageError.unavailable("\(path) is closed") }
        guard !isInTransaction else { throw StorageError.invalid("a transaction is already running") }
        isInTransaction = true
        defer { isInTransaction = false }
        return try usableConnection().queue.writeWithoutTransaction { database in
            try run(body, in: database)
        }
    }

    /// The file shares its disk with its log.
    public func obstacle(to tables: [String], isSuspected: Bool) throws -> StorageError? {
        var disk = statvfs()
        guard statvfs(path, &disk) == 0 else { return nil }
        let free = UInt64(disk.f_bavail) * UInt64(disk.f_frsize)
        guard Self.isFull(free) else { return nil }
        return .unavailable("the disk of \(path) is full: \(free >> 10) KiB are free")
    }

    /// The same as ``transaction(_:)``: on SQLite every transaction is alone.
    @discardableResult
    public func exclusiveTransaction<T>(_ body: (any SQLTransaction) throws -> T) throws -> T {
        try transaction(body)
    }

    public func close() {
        guard !isInTransaction else { return }
        closeConnection()
        lock = nil
    }

    // MARK: Transactions

    private func run<T>(_ body: (any SQLTransaction) throws -> T, in database: Database) throws -> T {
        do {
            try database.beginTransaction(.immediate)
        } catch {
            throw Self.storageError(error, doing: "cannot begin a transaction")
        }
        let transaction = SQLiteTransaction(database, statements: statements)
        defer { transaction.end() }
        do {
            let value = try body(transaction)
            if let failure = transaction.failure { throw failure }
            try Self.commit(database)
            return value
        } catch {
            // Fails only when SQLite has rolled back by itself, as it does when the disk is full.
            try? database.rollback()
            throw error
        }
    }

    private static func commit(_ database: Database) throws {
        do {
            try database.commit()
        } catch let error as DatabaseError {
            throw StorageError.sqliteCommit(error)
        }
    }

    // MARK: Opening

    /// Opens the file anew when the path leads to another one than before.
    private func usableConnection() throws(StorageError) -> Connection {
        let file = FileIdentity(path)
        if let connection, connection.file == file { return connection }
        closeConnection()
        guard let file else { throw .unavailable("\(path) does not exist or cannot be read") }
        let fresh: Connection
        do {
            let queue = try Self.open(path, synchronous)
            fresh = Connection(
                queue: queue, file: file, log: FileIdentity(path + "-wal"), index: FileIdentity(path + "-shm"))
        } catch let error as StorageError {
            throw error
        } catch {
            throw Self.storageError(error, doing: "cannot open \(path)")
        }
        connection = fresh
        connectionNumber += 1
        return fresh
    }

    private func closeConnection() {
        guard let connection else { return }
        statements.removeAll()
        if FileIdentity(path) != connection.file { cleanUp(after: connection) }
        // Nothing is lost when closing fails: what was committed is in the log, and the next open reads it.
        try? connection.queue.close()
        self.connection = nil
    }

    /// Does for a file that was moved away what SQLite does at the end only for one that is still in its place.
    private func cleanUp(after connection: Connection) {
        try? connection.queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA wal_checkpoint(PASSIVE)") }
        // The copy in its place may have brought its own.
        if let log = connection.log, FileIdentity(path + "-wal") == log { unlink(path + "-wal") }
        if let index = connection.index, FileIdentity(path + "-shm") == index { unlink(path + "-shm") }
    }

    private static func open(_ path: String, _ synchronous: Synchronous) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        configuration.busyMode = .timeout(5)
        configuration.label = "identitybus.storage"
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        try queue.writeWithoutTransaction { database in
            let mode = try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL")
            guard mode == "wal" else {
                throw StorageError.unavailable("\(path) cannot be put into WAL mode: is it on a network file system?")
            }
            try database.execute(
                sql: """
                    PRAGMA synchronous = \(synchronous.rawValue);
                    PRAGMA wal_autocheckpoint = \(checkpointPages);
                    PRAGMA cache_size = \(cacheSize);
                    PRAGMA secure_delete = \(secureDelete);
                    """)
            // Makes SQLite open the log, so that its file is known.
            _ = try Int.fetchOne(database, sql: "SELECT COUNT(*) FROM sqlite_schema")
        }
        return queue
    }

    /// SQLite would create the file readable by everybody, and gives its log the permissions of the file.
    private static func createPrivately(_ path: String) {
        let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        if descriptor >= 0 { Glibc.close(descriptor) }
    }

    private static func storageError(_ error: any Error, doing what: String) -> StorageError {
        guard let error = error as? DatabaseError else { return .unavailable(what) }
        let reason = StorageError.sqlite(error)
        return StorageError(kind: reason.kind, message: "\(what): \(reason.message)", sqlState: reason.sqlState)
    }
}

/// A running transaction on SQLite. See ``SQLTransaction`` for the rules that both engines keep.
final class SQLiteTransaction: SQLTransaction {
    let engine = SQLEngine.sqlite
    private let database: Database
    private let statements: SQLiteStatementCache
    /// The first failure; nothing more is run after it.
    private(set) var failure: StorageError?

    init(_ database: Database, statements: SQLiteStatementCache) {
        self.database = database
        self.statements = statements
    }

    /// Makes later use of an escaped reference an error instead of a statement outside of any transaction.
    func end() {
        failure = failure ?? .invalid("the transaction has ended")
    }

    func queryEach(
        _ sql: String, count: Int, bind: (Int, any SQLBinder) throws(StorageError) -> Void,
        row: (Int, any SQLCursor) throws(StorageError) -> Void
    ) throws(StorageError) {
        try guarded { () throws(StorageError) in
            let statement = try statements.statement(sql, in: database)
            for index in 0..<count {
                try statement.run { (binder) throws(StorageError) in
                    try bind(index, binder)
                } row: { (cursor) throws(StorageError) in
                    try row(index, cursor)
                }
            }
        }
    }

    func executeEach(
        _ sql: String, count: Int, bind: (Int, any SQLBinder) throws(StorageError) -> Void
    ) throws(StorageError) -> [Int] {
        try guarded { () throws(StorageError) in
            let statement = try statements.statement(sql, in: database)
            var counts: [Int] = []
            counts.reserveCapacity(count)
            for index in 0..<count {
                counts.append(
                    try statement.runCounting { (binder) throws(StorageError) in
                        try bind(index, binder)
                    })
            }
            return counts
        }
    }

    private func guarded<T>(_ work: () throws(StorageError) -> T) throws(StorageError) -> T {
        if let failure { throw failure }
        do {
            return try work()
        } catch {
            failure = error
            throw error
        }
    }
}

/// The compiled statements of one connection, by their text.
final class SQLiteStatementCache {
    /// Far above what a service writes by hand; only keeps generated texts from filling the memory.
    private static let limit = 256
    private var statements: [String: SQLiteStatement] = [:]

    func statement(_ sql: String, in database: Database) throws(StorageError) -> SQLiteStatement {
        if let known = statements[sql] { return known }
        let statement = try SQLiteStatement(sql, in: database)
        if statements.count >= Self.limit { removeAll() }
        statements[sql] = statement
        return statement
    }

    func removeAll() {
        statements.removeAll(keepingCapacity: true)
    }
}
