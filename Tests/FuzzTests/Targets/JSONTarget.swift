// SPDX-License-Identifier: Apache-2.0

import Contracts
import TestKit
import WireJSON

enum JSONTarget {
    static func run(_ bytes: [UInt8]) throws {
        // Few levels are soon exceeded.
        for maxDepth in [3, 32] {
            let difference = ReferenceComparison.difference(json: bytes, maxDepth: maxDepth) { view, value in
                func differ<T: Decodable & Equatable>(_ type: T.Type) -> String? {
                    ReferenceComparison.difference(decoding: type, view, value)
                }
                return differ([String: Int64].self) ?? differ([String: [UInt8?]].self) ?? differ([[Double]].self)
                    ?? differ([String: JSONValue?].self) ?? differ(EventAttributes.self) ?? differ(LogInUser.self)
            }
            if let difference { throw Broken(difference) }
        }
        let value: JSONValue
        do throws(JSONParseError) {
            value = try JSONValue(parsing: bytes)
        } catch {
            return try hold(
                error.offset <= bytes.count && !error.description.hasControlCharacter, "refused with: \(error)")
        }
        try written(value)
        try hold(try RawJSON(validating: bytes).bytes == bytes, "raw JSON is changed")
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
