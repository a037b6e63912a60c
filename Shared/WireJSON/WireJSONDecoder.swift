// SPDX-License-Identifier: Apache-2.0

/// Decodes `Decodable` types from parsed JSON.
///
/// There are no silent conversions: a string is not a number, `1.5` and `5.0` are not integers, and an integer
/// that does not fit is an error. `Date`, `Data` and `Decimal` get no special treatment.
public struct WireJSONDecoder: Sendable {
    /// A decoder; it keeps no state and may be used from any task.
    public init() {}

    /// Decodes `type` from a value. Failures are `DecodingError`s whose coding path leads to the member at
    /// fault and whose text names kinds, not content; see `WireJSONError.explain`.
    public func decode<T: Decodable>(_ type: T.Type, from value: JSONValue) throws -> T {
        try DecoderNode(value: value, parent: nil, key: nil).decodeSelf(type)
    }

    /// Parses and decodes; throws `JSONParseError` or `DecodingError`.
    public func decode<T: Decodable>(
        _ type: T.Type, from bytes: [UInt8], limits: JSONLimits = .init()
    ) throws -> T {
        try decode(type, from: JSONValue(parsing: bytes, limits: limits))
    }
}
