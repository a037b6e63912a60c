// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import GRDB
import Glibc

/// A store in one SQLite file, for one replica: the embedded default, with nothing to install.
///
/// The file is in WAL mode, and a transaction holds the write lock from its beginning, so it never has to be run
/// again because of another writer. An advisory lock on `<path>.lock` keeps a second replica out.
/// Confined to one thread, like every ``SQLDatabase``.
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

    public let engine = SQLEngine.sqlite
    private let path: String
    private let statements = SQLiteStatementCache()
    private var queue: DatabaseQueue?
    private var lock: FileLock?
    private var isInTransaction = false

    /// Opens the file, creating it (readable by its owner only) when missing. Its directory must exist.
    ///
    /// - Throws: `unavailable` when the file cannot be opened or another process uses it; the message names both.
    public init(path: String, synchronous: Synchronous = .full) throws(StorageError) {
        self.path = path
        lock = try FileLock(path: path + ".lock", protecting: path)
        Self.createPrivately(path)
        do {
            queue = try Self.open(path, synchronous)
        } catch let error as StorageError {
            throw error
        } catch {
            throw Self.storageError(error, doing: "cannot open \(path)")
        }
    }

    deinit {
        close()
    }

    @discardableResult
    public func transaction<T>(_ body: (any SQLTransaction) throws -> T) throws -> T {
        guard let queue else { throw StorageError.unavailable("\(path) is closed") }
        guard !isInTransaction else { throw StorageError.invalid("a transaction is already running") }
        isInTransaction = true
        defer { isInTransaction = false }
        return try queue.writeWithoutTransaction { database in
            try run(body, in: database)
        }
    }

    /// The same as ``transaction(_:)``: on SQLite every transaction is alone.
    @discardableResult
    public func exclusiveTransaction<T>(_ body: (any SQLTransaction) throws -> T) throws -> T {
        try transaction(body)
    }

    public func close() {
        guard !isInTransaction else { return }
        statements.removeAll()
        // Nothing is lost when closing fails: what was committed is in the log, and the next open reads it.
        try? queue?.close()
        queue = nil
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
                    """)
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
