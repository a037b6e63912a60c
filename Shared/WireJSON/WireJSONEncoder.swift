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
        let output = EncoderOutput(sortedKeys: sortedKeys, path: [])
        try EncoderLevel(output: output, id: 0).write(value)
        return try output.state.finish()
    }
}
