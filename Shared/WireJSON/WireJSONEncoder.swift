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

/// A piece of JSON text that `WireJSONEncoder` embeds verbatim.
public struct RawJSON: Encodable, Sendable, Hashable {
    /// One JSON value.
    public let bytes: [UInt8]

    /// Trusts the caller that `bytes` are one valid JSON value; if not, neither is what is encoded with it.
    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// A value, serialized now.
    public init(_ value: JSONValue) {
        bytes = value.serialized()
    }

    /// Bytes that are checked to be one valid JSON value.
    public init(validating bytes: [UInt8], limits: JSONLimits = .init()) throws(JSONParseError) {
        _ = try JSONValue(parsing: bytes, limits: limits)
        self.bytes = bytes
    }

    /// Verbatim into a `WireJSONEncoder`; parsed and taken apart for any other encoder.
    public func encode(to encoder: any Encoder) throws {
        if let own = encoder as? EncoderLevel { return try own.write(raw: self) }
        try JSONValue(parsing: bytes).encode(to: encoder)
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
