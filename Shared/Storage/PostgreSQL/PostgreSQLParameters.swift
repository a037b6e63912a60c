// SPDX-License-Identifier: Apache-2.0

import CLibpq

/// Parameter sets on their way to the server, in binary format: one buffer that is used again for each set.
struct PostgreSQLParameters {
    private var bytes: [UInt8] = []
    private var starts: [Int] = []
    private var lengths: [CInt] = []
    private var formats: [CInt] = []
    private var pointers: [UnsafePointer<CChar>?] = []

    /// How many bytes of values the encoded set has.
    var size: Int { bytes.count }

    /// Puts `values` in the place of what was encoded before.
    mutating func encode(_ values: [SQLValue], as types: [PostgreSQLType]) throws(StorageError) {
        guard values.count == types.count else {
            throw .invalid("the statement takes \(types.count) parameters, not \(values.count)")
        }
        bytes.removeAll(keepingCapacity: true)
        starts.removeAll(keepingCapacity: true)
        lengths.removeAll(keepingCapacity: true)
        for (index, value) in values.enumerated() {
            let start = bytes.count
            let isNull = try append(value, as: types[index], at: index)
            starts.append(isNull ? -1 : start)
            lengths.append(CInt(clamping: bytes.count - start))
        }
        // The address of an empty value must not be null, and it may stand at the very end.
        bytes.append(0)
        if formats.count != values.count { formats = [CInt](repeating: 1, count: values.count) }
    }

    /// Calls `body` with the encoded set in the form that libpq takes.
    mutating func withPointers<T>(
        _ body: (UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<CInt>, UnsafePointer<CInt>) -> T
    ) -> T {
        bytes.withUnsafeBytes { buffer in
            pointers.removeAll(keepingCapacity: true)
            for start in starts {
                pointers.append(
                    start < 0 ? nil : buffer.baseAddress.map { ($0 + start).assumingMemoryBound(to: CChar.self) })
            }
            return body(pointers, lengths, formats)
        }
    }

    /// Returns whether the value is null.
    private mutating func append(
        _ value: SQLValue, as type: PostgreSQLType, at index: Int
    ) throws(StorageError) -> Bool {
        switch (value, type) {
        case (.null, _): return true
        case (.integer(let number), .int8): append(number)
        case (.integer(let number), .int4): try append(narrow(number, to: Int32.self, at: index))
        case (.integer(let number), .int2): try append(narrow(number, to: Int16.self, at: index))
        case (.integer(let number), .bool): bytes.append(number == 0 ? 0 : 1)
        case (.text(let text), .text): bytes.append(contentsOf: text.utf8)
        case (.blob(let blob), .bytes): bytes.append(contentsOf: blob)
        default:
            throw .invalid("parameter $\(index + 1) is \(value.typeName) where the statement takes \(type.name)")
        }
        return false
    }

    private mutating func append(_ number: some FixedWidthInteger) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    private func narrow<N: FixedWidthInteger>(
        _ number: Int64, to type: N.Type, at index: Int
    ) throws(StorageError) -> N {
        guard let narrow = N(exactly: number) else {
            throw .invalid("parameter $\(index + 1) does not fit into \(N.bitWidth) bits")
        }
        return narrow
    }
}
