// SPDX-License-Identifier: Apache-2.0

/// The scalar overloads that Codable's synthesized code calls.
extension KeyedDecoding {
    func decode(_ type: String.Type, forKey key: Key) throws -> String {
        try node.string(try require(key), key)
    }

    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        try present(key).map { try node.string($0, key) }
    }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
        try node.bool(try require(key), key)
    }

    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
        try present(key).map { try node.bool($0, key) }
    }

    func decode(_ type: Double.Type, forKey key: Key) throws -> Double {
        try node.float(type, try require(key), key)
    }

    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
        try present(key).map { try node.float(type, $0, key) }
    }

    func decode(_ type: Float.Type, forKey key: Key) throws -> Float {
        try node.float(type, try require(key), key)
    }

    func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? {
        try present(key).map { try node.float(type, $0, key) }
    }

    func decode(_ type: Int.Type, forKey key: Key) throws -> Int {
        try node.integer(type, try require(key), key)
    }

    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
        try present(key).map { try node.integer(type, $0, key) }
    }

    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 {
        try node.integer(type, try require(key), key)
    }

    func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? {
        try present(key).map { try node.integer(type, $0, key) }
    }

    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 {
        try node.integer(type, try require(key), key)
    }

    func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? {
        try present(key).map { try node.integer(type, $0, key) }
    }

    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 {
        try node.integer(type, try require(key), key)
    }

    func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? {
        try present(key).map { try node.integer(type, $0, key) }
    }

    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 {
        try node.integer(type, try require(key), key)
    }

    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
        try present(key).map { try node.integer(type, $0, key) }
    }

    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 {
        try node.integer(type, try require(key), key)
    }

    func decodeIfPresent(_ type: Int128.Type, forKey key: Key) throws -> Int128? {
        try present(key).map { try node.integer(type, $0, key) }
    }

    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt {
        try node.integer(type, try require(key), key)
    }

    func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? {
        try present(key).map { try node.integer(type, $0, key) }
    }

    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 {
        try node.integer(type, try require(key), key)
    }

    func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? {
        try present(key).map { try node.integer(type, $0, key) }
    }

    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 {
        try node.integer(type, try require(key), key)
    }

    func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? {
        try present(key).map { try node.integer(type, $0, key) }
    }

    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 {
        try node.integer(type, try require(key), key)
    }

    func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? {
        try present(key).map { try node.integer(type, $0, key) }
    }

    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 {
        try node.integer(type, try require(key), key)
    }

    func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? {
        try present(key).map { try node.integer(type, $0, key) }
    }

    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 {
        try node.integer(type, try require(key), key)
    }

    func decodeIfPresent(_ type: UInt128.Type, forKey key: Key) throws -> UInt128? {
        try present(key).map { try node.integer(type, $0, key) }
    }
}
