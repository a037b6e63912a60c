// SPDX-License-Identifier: Apache-2.0

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
