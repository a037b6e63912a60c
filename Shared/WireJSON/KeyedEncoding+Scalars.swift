// SPDX-License-Identifier: Apache-2.0

/// The scalar overloads that Codable's synthesized code calls.
extension KeyedEncoding {
    mutating func encode(_ value: String, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Bool, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Double, forKey key: Key) throws {
        let text = try output.text(value, key)
        try member(key) { JSONWriter.appendPlain(text, to: &$0) }
    }

    mutating func encode(_ value: Float, forKey key: Key) throws {
        let text = try output.text(value, key)
        try member(key) { JSONWriter.appendPlain(text, to: &$0) }
    }

    mutating func encode(_ value: Int, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Int8, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Int16, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Int32, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Int64, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Int128, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt8, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt16, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt32, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt64, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt128, forKey key: Key) throws {
        try member(key) { JSONWriter.append(value, to: &$0) }
    }
}
