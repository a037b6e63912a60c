// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import WireJSON

/// Compares the readers of the product with those of before: what they read, and what they refuse word by word. Each
/// answer says what differs, or is `nil`.
public enum ReferenceComparison {
    /// Everything that can be asked about one document.
    /// - Parameter decoding: what is to be decoded from a document that is accepted.
    public static func difference(
        json bytes: [UInt8], maxDepth: Int = 32, decoding: (JSONView, JSONValue) -> String? = { _, _ in nil }
    ) -> String? {
        let expected = reference(bytes, maxDepth: maxDepth)
        let found = Result { () throws(JSONParseError) in
            try JSONView(parsing: bytes, limits: JSONLimits(maxDepth: maxDepth))
        }
        switch (expected, found) {
        case (.failure(let one), .failure(let other)):
            return one == other && one.description == other.description ? nil : "\(other) instead of \(one)"
        case (.success(let value), .success(let view)):
            guard view.value == value, view.value.serialized() == value.serialized() else { return "another value" }
            guard view.withCanonicalBytes({ Array($0) }) == value.canonicalBytes() else { return "not canonical" }
            return decoding(view, value)
        case (.success, .failure(let error)): return "refused: \(error)"
        case (.failure(let error), .success): return "accepted in spite of: \(error)"
        }
    }

    private static func reference(_ bytes: [UInt8], maxDepth: Int) -> Result<JSONValue, JSONParseError> {
        bytes.withUnsafeBytes { buffer in
            guard let base = buffer.baseAddress, !bytes.isEmpty else {
                return .failure(JSONParseError(reason: .notJSON, offset: 0, expectation: "a value", found: .end))
            }
            var parser = ReferenceParser(base: base, count: bytes.count, maxDepth: maxDepth)
            return Result { () throws(JSONParseError) in try parser.document() }
        }
    }

    /// One type, decoded from the document and from its value.
    public static func difference<T: Decodable & Equatable>(
        decoding type: T.Type, _ view: JSONView, _ value: JSONValue
    ) -> String? {
        let expected = outcome { try ReferenceDecoder().decode(type, from: value) }
        for from in [view, JSONView(value)] {
            let found = outcome { try WireJSONDecoder().decode(type, from: from) }
            if expected.value != found.value || expected.error != found.error {
                return "\(type): \(found) instead of \(expected)"
            }
        }
        return nil
    }

    private static func outcome<T>(_ body: () throws -> T) -> (value: T?, error: String?) {
        do { return (try body(), nil) } catch { return (nil, WireJSONError.explain(error)) }
    }

    /// Attributes, data and digest of a record.
    public static func difference(envelope value: [UInt8]?, _ headers: [Header]) -> String? {
        let expected = Result { () throws(EnvelopeError) in
            try ReferenceEnvelopeReader.read(value: value, headers: headers)
        }
        let found = Result { () throws(EnvelopeError) in try EnvelopeReader.open(value: value, headers: headers) }
        switch (expected, found) {
        case (.failure(let one), .failure(let other)): return one == other ? nil : "\(other) instead of \(one)"
        case (.success(let one), .success(let other)):
            guard one.attributes == other.attributes, one.data == other.data.value else { return "another event" }
            let digest = CommandDigest.bytes(type: "t", data: other.data)
            return digest == CommandDigest.bytes(type: "t", data: one.data) ? nil : "another digest"
        case (.success, .failure(let error)): return "refused: \(error)"
        case (.failure(let error), .success): return "accepted in spite of: \(error)"
        }
    }
}
