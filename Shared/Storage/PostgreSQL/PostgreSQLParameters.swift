// SPDX-License-Identifier: Apache-2.0

import CLibpq

/// The values of one run on their way to the server, in binary format: one buffer that is used again for each run.
final class PostgreSQLParameters: SQLBinder {
    private var types: [PostgreSQLType] = []
    private var bytes: [UInt8] = []
    /// -1 for null.
    private var starts: [Int] = []
    private var lengths: [CInt] = []
    private var formats: [CInt] = []
    private var pointers: [UnsafePointer<CChar>?] = []

    /// How many bytes of values there are.
    var size: Int { bytes.count }

    /// Puts what `bind` binds in the place of what was bound before.
    func encode(
        as types: [PostgreSQLType], _ bind: (any SQLBinder) throws(StorageError) -> Void
    ) throws(StorageError) {
        self.types = types
        bytes.removeAll(keepingCapacity: true)
        starts.removeAll(keepingCapacity: true)
        lengths.removeAll(keepingCapacity: true)
        try bind(self)
        guard starts.count == types.count else {
            throw .invalid("the statement takes \(types.count) parameters, not \(starts.count)")
        }
        // The address of an empty value must not be null, and it may stand at the very end.
        bytes.append(0)
        if formats.count != types.count { formats = [CInt](repeating: 1, count: types.count) }
    }

    /// Calls `body` with the values in the form that libpq takes.
    func withPointers<T>(
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

    func bindNull() throws(StorageError) {
        starts.append(-1)
        lengths.append(0)
    }

    func bind(_ integer: Int64) throws(StorageError) {
        let start = bytes.count
        switch try type() {
        case .int8: append(integer)
        case .int4: append(try narrow(integer, to: Int32.self))
        case .int2: append(try narrow(integer, to: Int16.self))
        case .bool: bytes.append(integer == 0 ? 0 : 1)
        default: throw mismatch(.integer(integer))
        }
        close(start)
    }

    func bind(_ text: String) throws(StorageError) {
        guard case .text = try type() else { throw mismatch(.text(text)) }
        let start = bytes.count
        bytes.append(contentsOf: text.utf8)
        close(start)
    }

    func bind(_ blob: [UInt8]) throws(StorageError) {
        switch try type() {
        case .bytes, .array: break
        default: throw mismatch(.blob(blob))
        }
        let start = bytes.count
        bytes.append(contentsOf: blob)
        close(start)
    }

    /// The type of the next value.
    private func type() throws(StorageError) -> PostgreSQLType {
        guard starts.count < types.count else {
            throw .invalid("the statement takes \(types.count) parameters, not more")
        }
        return types[starts.count]
    }

    private func close(_ start: Int) {
        starts.append(start)
        lengths.append(CInt(clamping: bytes.count - start))
    }

    private func append(_ number: some FixedWidthInteger) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    private func narrow<N: FixedWidthInteger>(_ number: Int64, to type: N.Type) throws(StorageError) -> N {
        guard let narrow = N(exactly: number) else {
            throw .invalid("parameter $\(starts.count + 1) does not fit into \(N.bitWidth) bits")
        }
        return narrow
    }

    private func mismatch(_ value: SQLValue) -> StorageError {
        let index = starts.count
        return .invalid("parameter $\(index + 1) is \(value.typeName) where the statement takes \(types[index].name)")
    }
}
