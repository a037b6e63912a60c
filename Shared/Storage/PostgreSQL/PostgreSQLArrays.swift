// SPDX-License-Identifier: Apache-2.0

/// The values of many rows on their way into one execution: each parameter is the array of what the rows bind in its
/// place, in PostgreSQL's binary form, which `unnest` makes rows of.
final class PostgreSQLArrays: SQLBinder {
    private let types: [SQLType]
    private let count: Int
    private var arrays: [[UInt8]] = []
    private var place = 0
    /// Dimensions, whether there are nulls, the elements' type, how many there are, the index of the first.
    private static let headByteCount = 5 * 4

    /// - Parameters:
    ///   - types: what each row binds.
    ///   - count: how many rows there will be.
    init(of types: [SQLType], count: Int) {
        self.types = types
        self.count = count
        for type in types {
            var array: [UInt8] = []
            for number in [1, 0, type.elementType, Int32(truncatingIfNeeded: count), 1] {
                Self.append(number, to: &array)
            }
            arrays.append(array)
        }
    }

    /// Binds the arrays, when every row has been bound here.
    func bind(to binder: any SQLBinder) throws(StorageError) {
        for array in arrays { try binder.bind(array) }
    }

    func bindNull() throws(StorageError) {
        let place = try next(nil)
        Self.append(Int32(-1), to: &arrays[place])
    }

    func bind(_ integer: Int64) throws(StorageError) {
        let place = try next(.integer)
        reserve(8, place)
        Self.append(Int32(8), to: &arrays[place])
        Self.append(integer, to: &arrays[place])
    }

    func bind(_ text: String) throws(StorageError) {
        let place = try next(.text)
        reserve(text.utf8.count, place)
        Self.append(Int32(truncatingIfNeeded: text.utf8.count), to: &arrays[place])
        arrays[place].append(contentsOf: text.utf8)
    }

    func bind(_ bytes: [UInt8]) throws(StorageError) {
        let place = try next(.bytes)
        reserve(bytes.count, place)
        Self.append(Int32(truncatingIfNeeded: bytes.count), to: &arrays[place])
        arrays[place].append(contentsOf: bytes)
    }

    private func next(_ type: SQLType?) throws(StorageError) -> Int {
        defer { place = place + 1 == types.count ? 0 : place + 1 }
        guard type == nil || type == types[place] else {
            throw .invalid("a value of a row is not of the kind that its column was described with")
        }
        return place
    }

    /// Makes room for a column by its first value.
    private func reserve(_ byteCount: Int, _ place: Int) {
        guard arrays[place].count == Self.headByteCount else { return }
        arrays[place].reserveCapacity(Self.headByteCount + count * (byteCount + 12))
    }

    private static func append(_ number: some FixedWidthInteger, to array: inout [UInt8]) {
        withUnsafeBytes(of: number.bigEndian) { array.append(contentsOf: $0) }
    }
}

extension SQLType {
    /// PostgreSQL's number of the type.
    fileprivate var elementType: Int32 {
        switch self {
        case .integer: 20
        case .text: 25
        case .bytes: 17
        }
    }

    /// The parameter that is an array of such values, in a statement.
    func array(_ number: Int) -> String {
        switch self {
        case .integer: "$\(number)::bigint[]"
        case .text: "$\(number)::text[]"
        case .bytes: "$\(number)::bytea[]"
        }
    }
}
