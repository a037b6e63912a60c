// SPDX-License-Identifier: Apache-2.0

/// Encodes `Encodable` types as JSON text without white space.
///
/// Members come in the order in which they are encoded, or sorted by the UTF-8 bytes of their names. Integers
/// are exact; a floating point number is written as the shortest text that reads back as the same value, and
/// NaN and infinities are errors. `Date`, `Data` and `Decimal` get no special treatment. Whatever an `encode`
/// method does, the output is one well-formed document or an error is thrown (`RawJSON` is trusted).
public struct WireJSONEncoder: Sendable {
    private let sortedKeys: Bool

    /// An encoder; it keeps no state between calls and may be used from any task.
    public init(sortedKeys: Bool = false) {
        self.sortedKeys = sortedKeys
    }

    /// The value as JSON. Throws `EncodingError`, or what an `encode` method throws.
    public func encode<T: Encodable>(_ value: T) throws -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(1024)
        try append(value, to: &bytes)
        return bytes
    }

    /// Appends what `encode` returns; nothing when it throws.
    public func append<T: Encodable>(_ value: T, to bytes: inout [UInt8]) throws {
        let start = bytes.count
        var before: [UInt8] = []
        swap(&before, &bytes)
        let output = EncoderOutput(sortedKeys: sortedKeys, path: [], after: before)
        before = []
        do {
            try EncoderLevel(output: output, id: 0).write(value)
            bytes = try output.state.finish()
        } catch {
            bytes = output.state.take()
            bytes.removeLast(bytes.count - start)
            throw error
        }
    }

    /// Appends a text as JSON writes it, in quotes.
    public func append(_ text: String, to bytes: inout [UInt8]) {
        JSONWriter.append(text, to: &bytes)
    }
}

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

/// One text being written, shared by all encoders and containers that write to it.
final class EncoderOutput {
    var state: EncoderState
    /// The keys that lead to this output, and from it to the value being encoded.
    private let prefix: [any CodingKey]
    private var keys = ShortStack<8, (any CodingKey)?>(filler: nil)

    init(sortedKeys: Bool, path: [any CodingKey], after bytes: consuming [UInt8] = []) {
        state = EncoderState(sortedKeys: sortedKeys, after: bytes)
        prefix = path
    }

    var codingPath: [any CodingKey] { prefix + (0..<keys.count).compactMap { keys[$0] } }

    /// The text once everything in it has been written.
    func finish() throws -> [UInt8] {
        try state.finish()
    }

    /// Encodes `value` at the present place, one level deeper, and takes everything back to `mark` when that
    /// fails, so that a caller who ignores the error still gets a well-formed document.
    func nest<T: Encodable>(_ value: T, key: any CodingKey, mark: EncoderState.Mark) throws {
        let depth = keys.count
        keys.append(key)
        defer { keys.removeLast(to: depth) }
        do {
            let id = state.push()
            try value.encode(to: EncoderLevel(output: self, id: id))
            try state.pop()
        } catch {
            state.rollBack(to: mark)
            throw error
        }
    }

    /// An output of its own for a nested container, inserted at the present place later.
    func child(key: any CodingKey) -> EncoderOutput {
        let output = EncoderOutput(sortedKeys: state.sortedKeys, path: codingPath + [key])
        state.insertLater(output)
        return output
    }

    func misuse(_ value: Any, _ key: (any CodingKey)? = nil) -> EncodingError {
        .invalidValue(value, context(key, "written through a container that is closed, or a second time"))
    }

    func context(_ key: (any CodingKey)?, _ text: String) -> EncodingError.Context {
        EncodingError.Context(codingPath: codingPath + (key.map { [$0] } ?? []), debugDescription: text)
    }

    /// The text of a floating point number.
    @inline(__always)
    func text<F: WireFloat>(
        _ value: F, _ key: @autoclosure () -> (any CodingKey)?
    ) throws -> String {
        if let text = JSONText.shortest(value) { return text }
        throw EncodingError.invalidValue(value, context(key(), "JSON has no NaN and no infinities"))
    }
}

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
