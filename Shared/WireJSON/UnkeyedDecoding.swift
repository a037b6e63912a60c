// SPDX-License-Identifier: Apache-2.0

/// Elements of an array in order.
struct UnkeyedDecoding: UnkeyedDecodingContainer {
    private let node: DecoderNode
    private let elements: [JSONValue]
    private(set) var currentIndex = 0

    init(node: DecoderNode, elements: [JSONValue]) {
        self.node = node
        self.elements = elements
    }

    var codingPath: [any CodingKey] { node.codingPath }
    var count: Int? { elements.count }
    var isAtEnd: Bool { currentIndex >= elements.count }
    private var key: JSONIndexKey { JSONIndexKey(currentIndex) }

    @inline(__always)
    private func next(_ type: Any.Type) throws -> JSONValue {
        guard currentIndex < elements.count else {
            throw DecodingError.valueNotFound(
                type, node.context(key, "expected another element, found the end of the array"))
        }
        return elements[currentIndex]
    }

    /// Consumes the element only when it is null, as the protocol demands.
    mutating func decodeNil() throws -> Bool {
        guard try next(Never.self).isNull else { return false }
        currentIndex += 1
        return true
    }

    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        let value = try next(type)
        let result: T
        if let direct = DecoderNode.direct(type, value) {
            result = direct
        } else {
            result = try T(from: DecoderNode(value: value, parent: node, key: key))
        }
        currentIndex += 1
        return result
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> {
        let container = try nextNode().container(keyedBy: type)
        currentIndex += 1
        return container
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        let container = try nextNode().unkeyedContainer()
        currentIndex += 1
        return container
    }

    mutating func superDecoder() throws -> any Decoder {
        let result = try nextNode()
        currentIndex += 1
        return result
    }

    private func nextNode() throws -> DecoderNode {
        DecoderNode(value: try next((any Decoder).self), parent: node, key: key)
    }
}

/// The scalar overloads.
extension UnkeyedDecoding {
    mutating func decode(_ type: String.Type) throws -> String {
        let result = try node.string(try next(type), key)
        currentIndex += 1
        return result
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool {
        let result = try node.bool(try next(type), key)
        currentIndex += 1
        return result
    }

    mutating func decode(_ type: Double.Type) throws -> Double {
        let result = try node.float(type, try next(type), key)
        currentIndex += 1
        return result
    }

    mutating func decode(_ type: Float.Type) throws -> Float {
        let result = try node.float(type, try next(type), key)
        currentIndex += 1
        return result
    }

    mutating func decode(_ type: Int.Type) throws -> Int {
        let result = try node.integer(type, try next(type), key)
        currentIndex += 1
        return result
    }

    mutating func decode(_ type: Int8.Type) throws -> Int8 {
        let result = try node.integer(type, try next(type), key)
        currentIndex += 1
        return result
    }

    mutating func decode(_ type: Int16.Type) throws -> Int16 {
        let result = try node.integer(type, try next(type), key)
        currentIndex += 1
        return result
    }

    mutating func decode(_ type: Int32.Type) throws -> Int32 {
        let result = try node.integer(type, try next(type), key)
        currentIndex += 1
        return result
    }

    mutating func decode(_ type: Int64.Type) throws -> Int64 {
        let result = try node.integer(type, try next(type), key)
        currentIndex += 1
        return result
    }

    mutating func decode(_ type: Int128.Type) throws -> Int128 {
        let result = try node.integer(type, try next(type), key)
        currentIndex += 1
        return result
    }

    mutating func decode(_ type: UInt.Type) throws -> UInt {
        let result = try node.integer(type, try next(type), key)
        currentIndex += 1
        return result
    }

    mutating func decode(_ type: UInt8.Type) throws -> UInt8 {
        let result = try node.integer(type, try next(type), key)
        currentIndex += 1
        return result
    }

    mutating func decode(_ type: UInt16.Type) throws -> UInt16 {
        let result = try node.integer(type, try next(type), key)
        currentIndex += 1
        return result
    }

    mutating func decode(_ type: UInt32.Type) throws -> UInt32 {
        let result = try node.integer(type, try next(type), key)
        currentIndex += 1
        return result
    }

    mutating func decode(_ type: UInt64.Type) throws -> UInt64 {
        let result = try node.integer(type, try next(type), key)
        currentIndex += 1
        return result
    }

    mutating func decode(_ type: UInt128.Type) throws -> UInt128 {
        let result = try node.integer(type, try next(type), key)
        currentIndex += 1
        return result
    }
}
