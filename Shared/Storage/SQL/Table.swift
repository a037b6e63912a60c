// SPDX-License-Identifier: Apache-2.0

/// The rows of one table that a batch touches, as its decisions leave them, and what of them is to be written.
///
/// Inlinable, so that every service has it made for its own here.
public struct Table<Row: SQLKeyedRecord & Equatable>: Sendable {
    /// All that is known of one row, so that its key is looked for once.
    @usableFromInline
    struct Place: Sendable {
        /// Nil once it was taken away.
        @usableFromInline var row: Row?
        /// It stands in the database.
        @usableFromInline var isStored = false
        /// It was put or removed.
        @usableFromInline var isTouched = false
        /// It was put otherwise than it was.
        @usableFromInline var isChanged = false
        /// The last decision about it; what `row` says of that is out of date.
        @usableFromInline var last = ChainLink.none

        @usableFromInline init() {}

        /// The row with the last decision about it.
        @inlinable var written: Row? {
            var row = row
            row?.lastDecision.link = last
            return row
        }
    }

    @usableFromInline var places: [Row.Key: Place] = [:]

    @inlinable public init() {}

    @inlinable public subscript(key: Row.Key) -> Row? { places[key]?.row }

    /// By key.
    @inlinable public var rows: [Row.Key: Row] { places.compactMapValues(\.row) }

    @inlinable public var keys: some Sequence<Row.Key> {
        places.lazy.compactMap { $0.value.row == nil ? nil : $0.key }
    }

    @inlinable public var values: some Sequence<Row> { places.values.lazy.compactMap(\.row) }

    @inlinable public var count: Int { places.values.count { $0.row != nil } }

    @inlinable public var isEmpty: Bool { places.values.allSatisfy { $0.row == nil } }

    /// Adds a row as it stands in the database, or as it would stand there. One that is here already, or was taken away,
    /// stays as it is.
    /// - Returns: whether it was added.
    @inlinable @discardableResult
    public mutating func load(_ row: Row, isStored: Bool = true) -> Bool {
        func fill(_ place: inout Place) -> Bool {
            guard place.row == nil, !place.isTouched else { return false }
            place.row = row
            place.last = row.lastDecision.link
            place.isStored = isStored
            return true
        }
        return fill(&places[row.key, default: Place()])
    }

    /// Changes a row, or makes a new one.
    /// - Returns: the row as it was.
    @inlinable @discardableResult
    public mutating func put(_ row: Row) -> Row? {
        func fill(_ place: inout Place) -> Row? {
            let before = place.row
            place.row = row
            place.isTouched = true
            if before != row { place.isChanged = true }
            return before
        }
        return fill(&places[row.key, default: Place()])
    }

    /// Takes a row away.
    /// - Returns: the row as it was.
    @inlinable @discardableResult
    public mutating func remove(_ key: Row.Key) -> Row? {
        func empty(_ place: inout Place) -> Row? {
            defer { place.row = nil }
            place.isTouched = true
            place.isChanged = true
            return place.row
        }
        return empty(&places[key, default: Place()])
    }

    /// What was put and is still here, by key.
    @inlinable public var changed: [Row] { touched.compactMap { places[$0]?.written } }

    /// What of it did not stand in the database and what did, each by key.
    ///
    /// A row that was put as it stands there is written too where transactions run beside each other: whoever relies on it
    /// meets in it whoever changes it (docs/decisions/0003-isolation.md).
    /// - Parameter isAlone: ``SQLTransaction/isAlone``: there is nobody to meet.
    @inlinable
    public func written(isAlone: Bool) -> (created: [Row], updated: [Row]) {
        var (created, updated): ([Row], [Row]) = ([], [])
        for key in touched {
            guard let place = places[key], let row = place.written else { continue }
            if !place.isStored {
                created.append(row)
            } else if place.isChanged || !isAlone {
                updated.append(row)
            }
        }
        return (created, updated)
    }

    /// What was taken away, by key.
    @inlinable public var removed: [Row.Key] {
        places.compactMap { $0.value.isTouched && $0.value.row == nil ? $0.key : nil }.sorted()
    }

    @inlinable var touched: [Row.Key] {
        places.compactMap { $0.value.isTouched ? $0.key : nil }.sorted()
    }
}
