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
