// SPDX-License-Identifier: Apache-2.0

/// Writes the members of an object.
struct KeyedEncoding<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let output: EncoderOutput
    let id: Int

    var codingPath: [any CodingKey] { output.codingPath }

    /// Writes a member whose value is a scalar.
    @inline(__always)
    func member(_ key: Key, _ body: (inout [UInt8]) -> Void) throws {
        switch output.state.member(id, key.stringValue, body) {
        case .written: return
        case .closed: throw output.misuse("", key)
        case .repeated: throw repeated(key)
        }
    }

    /// Writes a member's name and returns what takes it back.
    @inline(__always)
    private func begin(_ key: Key) throws -> EncoderState.Mark {
        guard output.state.isOpen(id, as: .object) else { throw output.misuse("", key) }
        let mark = output.state.mark()
        guard output.state.beginMember(key.stringValue) else { throw repeated(key) }
        return mark
    }

    @inline(never)
    private func repeated(_ key: Key) -> EncodingError {
        .invalidValue("", output.context(key, "two members of one object have this name"))
    }

    mutating func encodeNil(forKey key: Key) throws {
        try member(key) { JSONWriter.appendPlain("null", to: &$0) }
    }

    mutating func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
        let mark = try begin(key)
        try output.nest(value, key: key, mark: mark)
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        child(key).container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        child(key).unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder {
        child(JSONSuperKey())
    }

    mutating func superEncoder(forKey key: Key) -> any Encoder {
        child(key)
    }

    /// These requirements cannot throw, so a repeated name or a closed container is reported at the end.
    private func child(_ key: any CodingKey) -> EncoderLevel {
        guard output.state.isOpen(id, as: .object), output.state.beginMember(key.stringValue) else {
            output.state.reportMisuse()
            return EncoderLevel(output: EncoderOutput(sortedKeys: false, path: codingPath), id: 0)
        }
        return EncoderLevel(output: output.child(key: key), id: 0)
    }
}

/// The scalars. One generic method answers for all integers that Codable's synthesized code hands over; the widest two stand
/// by themselves, because the standard library has defaults for them, which would win over a generic method.
extension KeyedEncoding {
    mutating func encode(_ value: String, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Bool, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }

    @inline(__always)
    mutating func encode<T: FixedWidthInteger & Encodable>(_ value: T, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Int128, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt128, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }

    @inline(__always)
    mutating func encode<T: WireFloat & Encodable>(_ value: T, forKey key: Key) throws {
        let text = try output.text(value, key)
        try member(key) { JSONWriter.appendPlain(text, to: &$0) }
    }
}

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

/// The scalars; see ``KeyedEncoding``.
extension UnkeyedEncoding {
    mutating func encode(_ value: String) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Bool) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }

    @inline(__always)
    mutating func encode<T: FixedWidthInteger & Encodable>(_ value: T) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Int128) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt128) throws {
        try element { JSONWriter.append(value, to: &$0) }
    }

    @inline(__always)
    mutating func encode<T: WireFloat & Encodable>(_ value: T) throws {
        let text = try output.text(value, key)
        try element { JSONWriter.appendPlain(text, to: &$0) }
    }
}

/// Writes a value that is not taken apart.
struct SingleValueEncoding: SingleValueEncodingContainer {
    let level: EncoderLevel

    var codingPath: [any CodingKey] { level.codingPath }

    mutating func encodeNil() throws {
        try level.scalar("") { JSONWriter.appendPlain("null", to: &$0) }
    }

    mutating func encode<T: Encodable>(_ value: T) throws {
        try level.write(value)
    }

    mutating func encode(_ value: String) throws {
        try level.scalar(value) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Bool) throws {
        try level.scalar(value) { JSONWriter.append(value, to: &$0) }
    }

    @inline(__always)
    mutating func encode<T: FixedWidthInteger & Encodable>(_ value: T) throws {
        try level.scalar(value) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Int128) throws {
        try level.scalar(value) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt128) throws {
        try level.scalar(value) { JSONWriter.append(value, to: &$0) }
    }

    @inline(__always)
    mutating func encode<T: WireFloat & Encodable>(_ value: T) throws {
        let text = try level.output.text(value, nil)
        try level.scalar(value) { JSONWriter.appendPlain(text, to: &$0) }
    }
}
