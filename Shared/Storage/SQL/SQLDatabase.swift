// SPDX-License-Identifier: Apache-2.0

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

    /// Gives the connection and all locks back. Later transactions throw `unavailable`. May be called twice;
    /// does nothing inside a transaction.
    func close()
}

/// The engine behind a ``SQLDatabase``, for the few statements whose text has to differ.
public enum SQLEngine: String, Sendable, Hashable, CaseIterable {
    case sqlite
    case postgresql
}
