// SPDX-License-Identifier: Apache-2.0

/// The rows of one table that a batch touches, as its decisions leave them, and what of them is to be written.
///
/// Inlinable, so that every service has it made for its own here.
public struct Table<Row: SQLKeyedRecord>: Sendable {
    @usableFromInline var here: [Row.Key: Row] = [:]
    /// What stands in the database.
    @usableFromInline var stored: Set<Row.Key> = []
    /// What was put or removed.
    @usableFromInline var touched: Set<Row.Key> = []

    @inlinable public init() {}

    @inlinable public subscript(key: Row.Key) -> Row? { here[key] }

    /// By key.
    @inlinable public var rows: [Row.Key: Row] { here }

    @inlinable public var keys: Dictionary<Row.Key, Row>.Keys { here.keys }

    @inlinable public var values: Dictionary<Row.Key, Row>.Values { here.values }

    @inlinable public var count: Int { here.count }

    @inlinable public var isEmpty: Bool { here.isEmpty }

    /// Adds a row as it stands in the database, or as it would stand there. One that is here already stays as it is.
    /// - Returns: whether it was added.
    @inlinable @discardableResult
    public mutating func load(_ row: Row, isStored: Bool = true) -> Bool {
        let key = row.key
        guard here[key] == nil, !touched.contains(key) else { return false }
        here[key] = row
        if isStored { stored.insert(key) }
        return true
    }

    /// Changes a row, or makes a new one.
    /// - Returns: the row as it was.
    @inlinable @discardableResult
    public mutating func put(_ row: Row) -> Row? {
        let key = row.key
        touched.insert(key)
        return here.updateValue(row, forKey: key)
    }

    /// Takes a row away.
    /// - Returns: the row as it was.
    @inlinable @discardableResult
    public mutating func remove(_ key: Row.Key) -> Row? {
        touched.insert(key)
        return here.removeValue(forKey: key)
    }

    /// What was put and is still here, by key.
    @inlinable public var changed: [Row] { touched.sorted().compactMap { here[$0] } }

    /// What of it did not stand in the database, by key.
    @inlinable public var created: [Row] { changed.filter { !stored.contains($0.key) } }

    /// What of it stood in the database, by key.
    @inlinable public var updated: [Row] { changed.filter { stored.contains($0.key) } }

    /// What was taken away, by key.
    @inlinable public var removed: [Row.Key] { touched.filter { here[$0] == nil }.sorted() }
}
