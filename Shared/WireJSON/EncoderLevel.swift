// SPDX-License-Identifier: Apache-2.0

/// The encoder handed to the value of one level.
struct EncoderLevel: Encoder {
    let output: EncoderOutput
    let id: Int

    var codingPath: [any CodingKey] { output.codingPath }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        output.state.open(id, as: .object)
        return KeyedEncodingContainer(KeyedEncoding<Key>(output: output, id: id))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        output.state.open(id, as: .array)
        return UnkeyedEncoding(output: output, id: id)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        SingleValueEncoding(level: self)
    }

    /// Writes `value` as this level's own value.
    func write<T: Encodable>(_ value: T) throws {
        switch value {
        case let value as JSONValue: try write(value: value)
        case let value as RawJSON: try write(raw: value)
        case let value as String: try scalar(value) { JSONWriter.append(value, to: &$0) }
        default: try value.encode(to: self)
        }
    }

    func write(value: JSONValue) throws {
        let style: JSONWriter.Style = output.state.sortedKeys ? .sorted : .asIs
        try scalar(value) { JSONWriter.append(value, style: style, to: &$0) }
    }

    func write(raw: RawJSON) throws {
        guard !raw.bytes.isEmpty else {
            throw EncodingError.invalidValue(raw, output.context(nil, "a RawJSON without bytes"))
        }
        try scalar(raw) { $0.append(contentsOf: raw.bytes) }
    }

    /// Writes text that is the whole of this level.
    @inline(__always)
    func scalar(_ value: @autoclosure () -> Any, _ body: (inout [UInt8]) -> Void) throws {
        guard output.state.isOpen(id, as: .undecided) else { throw output.misuse(value()) }
        output.state.beginScalar()
        output.state.write(body)
    }
}
