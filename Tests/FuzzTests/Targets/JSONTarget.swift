// SPDX-License-Identifier: Apache-2.0

import Contracts
import TestKit
import WireJSON

enum JSONTarget {
    static func run(_ bytes: [UInt8]) throws {
        let value: JSONValue
        do throws(JSONParseError) {
            value = try JSONValue(parsing: bytes)
        } catch {
            return try hold(
                error.offset <= bytes.count && !error.description.hasControlCharacter, "refused with: \(error)")
        }
        try written(value)
        try hold(try RawJSON(validating: bytes).bytes == bytes, "raw JSON is changed")
        try decoded(try JSONView(parsing: bytes), value)
        // Few levels are soon exceeded.
        if let flat = try? JSONView(parsing: bytes, limits: JSONLimits(maxDepth: 3)) {
            try hold(flat.value == value, "the limit of depth changes a value")
        }
    }

    /// A type is read from a document as from its value. What it cannot be read from is refused in one line.
    private static func decoded(_ view: JSONView, _ value: JSONValue) throws {
        func decode<T: Decodable & Equatable>(_ type: T.Type, from view: JSONView) -> (value: T?, refusal: String) {
            do { return (try WireJSONDecoder().decode(type, from: view), "") } catch {
                return (nil, WireJSONError.explain(error))
            }
        }
        func check<T: Decodable & Equatable>(_ type: T.Type) throws {
            let (one, other) = (decode(type, from: view), decode(type, from: JSONView(value)))
            try hold(one.value == other.value && one.refusal == other.refusal, "\(type) is read in two ways")
            try hold(!one.refusal.hasControlCharacter, "refused with: \(one.refusal)")
        }
        try check([String: Int64].self)
        try check([String: [UInt8?]].self)
        try check([[Double]].self)
        try check([String: JSONValue?].self)
        try check(EventAttributes.self)
        try check(LogInUser.self)
    }

    /// What is written is read again as the same, and one value has one canonical form.
    private static func written(_ value: JSONValue) throws {
        func read(_ bytes: [UInt8]) throws -> JSONValue {
            try JSONValue(parsing: bytes, limits: JSONLimits(maxBytes: bytes.count))
        }
        try hold(try read(value.serialized()) == value, "what is written means something else")
        let canonical = value.canonicalBytes()
        try hold(try read(canonical).canonicalBytes() == canonical, "the canonical form has another canonical form")
        let sorted = try WireJSONEncoder(sortedKeys: true).encode(value)
        try hold(try read(sorted).canonicalBytes() == canonical, "sorted members have another canonical form")
    }
}
