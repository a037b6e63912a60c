// SPDX-License-Identifier: Apache-2.0

/// Writes the elements of an array.
struct UnkeyedEncoding: UnkeyedEncodingContainer {
    let output: EncoderOutput
    let id: Int
    private(set) var count = 0

    init(output: EncoderOutput, id: Int) {
        self.output = output
        self.id = id
    }

    var codingPath: [any CodingKey] { output.codingPath }
    private var key: JSONIndexKey { JSONIndexKey(count) }

    /// Writes an element that is a scalar.
    @inline(__always)
    private mutating func element(_ body: (inout [UInt8]) -> Void) throws {
        guard output.state.isOpen(id, as: .array) else { throw output.misuse("", key) }
        output.state.beginElement()
        output.state.write(body)
        count += 1
    }

    mutating func encodeNil() throws {
        try element { JSONWriter.appendPlain("null", to: &$0) }
    }

    mutating func encode<T: Encodable>(_ value: T) throws {
        guard output.state.isOpen(id, as: .array) else { throw output.misuse(value, key) }
        let mark = output.state.mark()
        output.state.beginElement()
        try output.nest(value, key: key, mark: mark)
        count += 1
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) -> KeyedEncodingContainer<Nested> {
        child().container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        child().unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder {
        child()
    }

    /// These requirements cannot throw, so a closed container is reported at the end.
    private mutating func child() -> EncoderLevel {
        guard output.state.isOpen(id, as: .array) else {
            output.state.reportMisuse()
            return EncoderLevel(output: EncoderOutput(sortedKeys: false, path: codingPath), id: 0)
        }
        output.state.beginElement()
        let result = EncoderLevel(output: output.child(key: key), id: 0)
        count += 1
        return result
    }
}

/// The scalar overloads.
extension UnkeyedEncoding {
    mutating func encode(_ value: String) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Bool) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Double) throws {
        let text = try output.text(value, key)
        try element { JSONWriter.appendPlain(text, to: &$0) }
    }

    mutating func encode(_ value: Float) throws {
        let text = try output.text(value, key)
        try element { JSONWriter.appendPlain(text, to: &$0) }
    }

    mutating func encode(_ value: Int) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Int8) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Int16) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Int32) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Int64) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Int128) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt8) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt16) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt32) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt64) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt128) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }
}
