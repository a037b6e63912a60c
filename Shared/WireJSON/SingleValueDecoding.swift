// SPDX-License-Identifier: Apache-2.0

/// A value that is not taken apart.
struct SingleValueDecoding: SingleValueDecodingContainer {
    let node: DecoderNode

    var codingPath: [any CodingKey] { node.codingPath }

    func decodeNil() -> Bool {
        node.value.isNull
    }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        try node.decodeSelf(type)
    }

    func decode(_ type: String.Type) throws -> String {
        try node.string(node.value, nil)
    }

    func decode(_ type: Bool.Type) throws -> Bool {
        try node.bool(node.value, nil)
    }

    func decode(_ type: Double.Type) throws -> Double {
        try node.float(type, node.value, nil)
    }

    func decode(_ type: Float.Type) throws -> Float {
        try node.float(type, node.value, nil)
    }

    func decode(_ type: Int.Type) throws -> Int {
        try node.integer(type, node.value, nil)
    }

    func decode(_ type: Int8.Type) throws -> Int8 {
        try node.integer(type, node.value, nil)
    }

    func decode(_ type: Int16.Type) throws -> Int16 {
        try node.integer(type, node.value, nil)
    }

    func decode(_ type: Int32.Type) throws -> Int32 {
        try node.integer(type, node.value, nil)
    }

    func decode(_ type: Int64.Type) throws -> Int64 {
        try node.integer(type, node.value, nil)
    }

    func decode(_ type: Int128.Type) throws -> Int128 {
        try node.integer(type, node.value, nil)
    }

    func decode(_ type: UInt.Type) throws -> UInt {
        try node.integer(type, node.value, nil)
    }

    func decode(_ type: UInt8.Type) throws -> UInt8 {
        try node.integer(type, node.value, nil)
    }

    func decode(_ type: UInt16.Type) throws -> UInt16 {
        try node.integer(type, node.value, nil)
    }

    func decode(_ type: UInt32.Type) throws -> UInt32 {
        try node.integer(type, node.value, nil)
    }

    func decode(_ type: UInt64.Type) throws -> UInt64 {
        try node.integer(type, node.value, nil)
    }

    func decode(_ type: UInt128.Type) throws -> UInt128 {
        try node.integer(type, node.value, nil)
    }
}
