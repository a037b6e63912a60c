// SPDX-License-Identifier: Apache-2.0

/// A column of values as one parameter, in PostgreSQL's binary form of an array: what `unnest` makes rows of. For the
/// few statements that write hundreds of rows, where one execution costs the server less than hundreds.
struct PostgreSQLArray {
    private(set) var bytes: [UInt8] = []

    enum Element: Int32 {
        case bytes = 17
        case int8 = 20
        case int2 = 21
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

    mutating func append(_ value: some Collection<UInt8>) {
        append(raw: Int32(truncatingIfNeeded: value.count))
        bytes.append(contentsOf: value)
    }

    private mutating func append(raw number: some FixedWidthInteger) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }
}
