// SPDX-License-Identifier: Apache-2.0

import WireJSON

/// Members of an object by key.
struct ReferenceKeyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
    /// A node whose value is an object.
    let node: ReferenceNode

    var codingPath: [any CodingKey] { node.codingPath }

    /// All member names that `Key` accepts, in document order.
    var allKeys: [Key] {
        node.members.compactMap { Key(stringValue: $0.name) }
    }

    func contains(_ key: Key) -> Bool {
        node.find(key.stringValue) != nil
    }

    @inline(__always)
    func require(_ key: Key) throws -> JSONValue {
        if let value = node.find(key.stringValue) { return value }
        throw missing(key)
    }

    /// The value for an optional member: nil when it is missing or `null`.
    @inline(__always)
    func present(_ key: Key) -> JSONValue? {
        guard let value = node.find(key.stringValue), !value.isNull else { return nil }
        return value
    }

    @inline(never)
    private func missing(_ key: Key) -> DecodingError {
        .keyNotFound(key, node.context(nil, "required member is missing"))
    }

    func decodeNil(forKey key: Key) throws -> Bool {
        try require(key).isNull
    }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        let value = try require(key)
        if let direct = ReferenceNode.direct(type, value) { return direct }
        return try T(from: ReferenceNode(value: value, parent: node, key: key))
    }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        guard let value = present(key) else { return nil }
        if let direct = ReferenceNode.direct(type, value) { return direct }
        return try T(from: ReferenceNode(value: value, parent: node, key: key))
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        try ReferenceNode(value: try require(key), parent: node, key: key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try ReferenceNode(value: try require(key), parent: node, key: key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder {
        // A missing member reads as null, so that a superclass without members of its own can be decoded.
        let key = JSONSuperKey()
        return ReferenceNode(value: node.find(key.stringValue) ?? .null, parent: node, key: key)
    }

    func superDecoder(forKey key: Key) throws -> any Decoder {
        ReferenceNode(value: node.find(key.stringValue) ?? .null, parent: node, key: key)
    }
}

/// The scalars. One generic method answers for all integers that Codable's synthesized code asks for; the widest two stand
/// by themselves, because the standard library has defaults for them, which would win over a generic method. So would its
/// defaults for `decodeIfPresent`, which call these methods but search for the member three times; what messages hold has
/// methods of its own.
///
/// Inlined, here and below: the compiler specialises a generic witness only then, and without it decoding takes half as
/// long again.
extension ReferenceKeyed {
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

    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
        try present(key).map { try node.integer(type, $0, key) }
    }

    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
        try present(key).map { try node.integer(type, $0, key) }
    }

    @inline(__always)
    func decode<T: FixedWidthInteger & Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try node.integer(type, try require(key), key)
    }

    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 {
        try node.integer(type, try require(key), key)
    }

    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 {
        try node.integer(type, try require(key), key)
    }

    @inline(__always)
    func decode<T: WireFloat & Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try node.float(type, try require(key), key)
    }
}

/// Elements of an array in order.
struct ReferenceUnkeyed: UnkeyedDecodingContainer {
    private let node: ReferenceNode
    private let elements: [JSONValue]
    private(set) var currentIndex = 0

    init(node: ReferenceNode, elements: [JSONValue]) {
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
        if let direct = ReferenceNode.direct(type, value) {
            result = direct
        } else {
            result = try T(from: ReferenceNode(value: value, parent: node, key: key))
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

    private func nextNode() throws -> ReferenceNode {
        ReferenceNode(value: try next((any Decoder).self), parent: node, key: key)
    }
}

/// The scalars; see ``ReferenceKeyed``.
extension ReferenceUnkeyed {
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

    @inline(__always)
    mutating func decode<T: FixedWidthInteger & Decodable>(_ type: T.Type) throws -> T {
        try integer(type)
    }

    mutating func decode(_ type: Int128.Type) throws -> Int128 {
        try integer(type)
    }

    mutating func decode(_ type: UInt128.Type) throws -> UInt128 {
        try integer(type)
    }

    @inline(__always)
    private mutating func integer<T: FixedWidthInteger>(_ type: T.Type) throws -> T {
        let result = try node.integer(type, try next(type), key)
        currentIndex += 1
        return result
    }

    @inline(__always)
    mutating func decode<T: WireFloat & Decodable>(_ type: T.Type) throws -> T {
        let result = try node.float(type, try next(type), key)
        currentIndex += 1
        return result
    }
}

/// A value that is not taken apart.
struct ReferenceSingle: SingleValueDecodingContainer {
    let node: ReferenceNode

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

    @inline(__always)
    func decode<T: FixedWidthInteger & Decodable>(_ type: T.Type) throws -> T {
        try node.integer(type, node.value, nil)
    }

    func decode(_ type: Int128.Type) throws -> Int128 {
        try node.integer(type, node.value, nil)
    }

    func decode(_ type: UInt128.Type) throws -> UInt128 {
        try node.integer(type, node.value, nil)
    }

    @inline(__always)
    func decode<T: WireFloat & Decodable>(_ type: T.Type) throws -> T {
        try node.float(type, node.value, nil)
    }
}
