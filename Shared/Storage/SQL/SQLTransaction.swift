// SPDX-License-Identifier: Apache-2.0

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

    /// Runs one statement and returns its rows.
    func query(_ sql: String, _ parameters: [SQLValue]) throws(StorageError) -> [SQLRow]

    /// Runs the same statement once for every parameter set, in order: the answers stand in the order of the sets,
    /// and each run sees what those before it changed. One round trip on PostgreSQL, however many sets there are.
    func queryEach(_ sql: String, _ parameterSets: [[SQLValue]]) throws(StorageError) -> [[SQLRow]]

    /// Runs one statement and returns how many rows it inserted, updated or deleted (0 for other statements).
    @discardableResult
    func execute(_ sql: String, _ parameters: [SQLValue]) throws(StorageError) -> Int

    /// Like ``queryEach(_:_:)``, but returns how many rows each run inserted, updated or deleted.
    @discardableResult
    func executeEach(_ sql: String, _ parameterSets: [[SQLValue]]) throws(StorageError) -> [Int]
}

extension SQLTransaction {
    /// Runs one statement without parameters and returns its rows.
    public func query(_ sql: String) throws(StorageError) -> [SQLRow] {
        try query(sql, [])
    }

    /// Runs one statement without parameters.
    @discardableResult
    public func execute(_ sql: String) throws(StorageError) -> Int {
        try execute(sql, [])
    }
}
