// SPDX-License-Identifier: Apache-2.0

/// Coding through this library's own coders is a plain hand-over; any other coder is served with standard
/// containers, where numbers are limited to what `Int64`, `UInt64` and `Double` can say.
extension JSONValue: Codable {
    /// Takes the value as it is, or rebuilds it from a foreign decoder.
    public init(from decoder: any Decoder) throws {
        if let node = decoder as? DecoderNode {
            self = node.value
        } else if let container = try? decoder.container(keyedBy: AnyKey.self) {
            var object = JSONObject()
            for key in container.allKeys {
                object[key.stringValue] = try container.decode(JSONValue.self, forKey: key)
            }
            self = .object(object)
        } else if var container = try? decoder.unkeyedContainer() {
            var elements: [JSONValue] = []
            while !container.isAtEnd {
                elements.append(try container.decode(JSONValue.self))
            }
            self = .array(elements)
        } else {
            self = try Self.scalar(decoder.singleValueContainer())
        }
    }

    private static func scalar(_ container: any SingleValueDecodingContainer) throws -> JSONValue {
        if container.decodeNil() { return .null }
        if let flag = try? container.decode(Bool.self) { return .bool(flag) }
        if let text = try? container.decode(String.self) { return .string(text) }
        if let integer = try? container.decode(Int64.self) { return .number(JSONNumber(integer)) }
        if let integer = try? container.decode(UInt64.self) { return .number(JSONNumber(integer)) }
        if let number = JSONNumber(try container.decode(Double.self)) { return .number(number) }
        throw DecodingError.dataCorruptedError(
            in: container, debugDescription: "expected a finite number, found NaN or an infinity")
    }

    /// Hands the value over as it is, or takes it apart for a foreign encoder.
    public func encode(to encoder: any Encoder) throws {
        if let own = encoder as? EncoderLevel { return try own.write(value: self) }
        switch self {
        case .object(let object):
            var container = encoder.container(keyedBy: AnyKey.self)
            for member in object.members {
                try container.encode(member.value, forKey: AnyKey(member.name))
            }
        case .array(let elements):
            var container = encoder.unkeyedContainer()
            for element in elements {
                try container.encode(element)
            }
        default:
            var container = encoder.singleValueContainer()
            try encodeScalar(to: &container)
        }
    }

    private func encodeScalar(to container: inout any SingleValueEncodingContainer) throws {
        switch self {
        case .bool(let flag): try container.encode(flag)
        case .string(let text): try container.encode(text)
        case .number(let number):
            if let integer = number.integer(Int64.self) {
                try container.encode(integer)
            } else if let integer = number.integer(UInt64.self) {
                try container.encode(integer)
            } else {
                try container.encode(number.double)
            }
        case .null, .array, .object: try container.encodeNil()
        }
    }
}

extension JSONNumber: Codable {
    /// Keeps the lexeme when read by `WireJSONDecoder`.
    public init(from decoder: any Decoder) throws {
        self = try Self.expect(decoder, "a number") { if case .number(let number) = $0 { number } else { nil } }
    }

    /// Keeps the lexeme when written by `WireJSONEncoder`.
    public func encode(to encoder: any Encoder) throws {
        try JSONValue.number(self).encode(to: encoder)
    }
}

extension JSONObject: Codable {
    /// Keeps the order of members when read by `WireJSONDecoder`.
    public init(from decoder: any Decoder) throws {
        self = try JSONNumber.expect(decoder, "an object") {
            if case .object(let object) = $0 { object } else { nil }
        }
    }

    /// Keeps the order of members when written by `WireJSONEncoder`.
    public func encode(to encoder: any Encoder) throws {
        try JSONValue.object(self).encode(to: encoder)
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

extension JSONNumber {
    fileprivate static func expect<T>(
        _ decoder: any Decoder, _ expectation: String, _ extract: (JSONValue) -> T?
    ) throws -> T {
        let value = try JSONValue(from: decoder)
        if let result = extract(value) { return result }
        throw DecodingError.typeMismatch(
            T.self,
            DecodingError.Context(
                codingPath: decoder.codingPath,
                debugDescription: "expected \(expectation), found \(value.kindName)"))
    }
}
