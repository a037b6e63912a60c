// SPDX-License-Identifier: Apache-2.0

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

    mutating func encode(_ value: Double) throws {
        let text = try level.output.text(value, nil)
        try level.scalar(value) { JSONWriter.appendPlain(text, to: &$0) }
    }

    mutating func encode(_ value: Float) throws {
        let text = try level.output.text(value, nil)
        try level.scalar(value) { JSONWriter.appendPlain(text, to: &$0) }
    }

    mutating func encode(_ value: Int) throws {
        try level.scalar(value) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Int8) throws {
        try level.scalar(value) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Int16) throws {
        try level.scalar(value) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Int32) throws {
        try level.scalar(value) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Int64) throws {
        try level.scalar(value) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: Int128) throws {
        try level.scalar(value) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt) throws {
        try level.scalar(value) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt8) throws {
        try level.scalar(value) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt16) throws {
        try level.scalar(value) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt32) throws {
        try level.scalar(value) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt64) throws {
        try level.scalar(value) { JSONWriter.append(value, to: &$0) }
    }

    mutating func encode(_ value: UInt128) throws {
        try level.scalar(value) { JSONWriter.append(value, to: &$0) }
    }
}
