// SPDX-License-Identifier: Apache-2.0

/// A column of values as one parameter, in PostgreSQL's binary form of an array: what `unnest` makes rows of. For the
/// few statements that write hundreds of rows, where one execution costs the server less than hundreds.
struct PostgreSQLArray {
    private(set) var bytes: [UInt8] = []

    enum Element: Int32 {
        case bytes = 17
        case int8 = 20
        case int2 = 21
        case text = 25
    }

    /// - Parameter count: how many values will be appended.
    init(of element: Element, count: Int, byteCount: Int) {
        bytes.reserveCapacity(20 + count * (4 + byteCount))
        // Dimensions, whether there are nulls, the element's type, the dimension's length and its first index.
        for number in [1, 0, element.rawValue, Int32(truncatingIfNeeded: count), 1] { append(raw: number) }
    }

    mutating func append(_ number: Int64) {
        append(raw: Int32(8))
        append(raw: number)
    }

    mutating func append(_ number: Int16) {
        append(raw: Int32(2))
        append(raw: number)
    }

    mutating func append(_ text: String) {
        append(raw: Int32(truncatingIfNeeded: text.utf8.count))
        bytes.append(contentsOf: text.utf8)
    }

    mutating func appendNull() { append(raw: Int32(-1)) }

    mutating func append(_ value: some Collection<UInt8>) {
        append(raw: Int32(truncatingIfNeeded: value.count))
        bytes.append(contentsOf: value)
    }

    private mutating func append(raw number: some FixedWidthInteger) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }
}

/// The values of many rows on their way into one execution: each parameter is the array of what the rows bind in its
/// place.
final class PostgreSQLArrays: SQLBinder {
    private let types: [SQLType]
    private var arrays: [PostgreSQLArray]
    private var place = 0

    /// - Parameters:
    ///   - types: what each row binds.
    ///   - count: how many rows there will be.
    init(of types: [SQLType], count: Int) {
        self.types = types
        arrays = types.map { PostgreSQLArray(of: $0.element, count: count, byteCount: $0 == .integer ? 8 : 24) }
    }

    /// Binds the arrays, when every row has been bound here.
    func bind(to binder: any SQLBinder) throws(StorageError) {
        for array in arrays { try binder.bind(array.bytes) }
    }

    func bindNull() throws(StorageError) { arrays[try next(nil)].appendNull() }

    func bind(_ integer: Int64) throws(StorageError) { arrays[try next(.integer)].append(integer) }

    func bind(_ text: String) throws(StorageError) { arrays[try next(.text)].append(text) }

    func bind(_ bytes: [UInt8]) throws(StorageError) { arrays[try next(.bytes)].append(bytes) }

    private func next(_ type: SQLType?) throws(StorageError) -> Int {
        defer { place = place + 1 == types.count ? 0 : place + 1 }
        guard type == nil || type == types[place] else {
            throw .invalid("a value of a row is not of the kind that its column was described with")
        }
        return place
    }
}

extension SQLType {
    fileprivate var element: PostgreSQLArray.Element {
        switch self {
        case .integer: .int8
        case .text: .text
        case .bytes: .bytes
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
