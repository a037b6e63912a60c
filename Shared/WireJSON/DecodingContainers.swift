// SPDX-License-Identifier: Apache-2.0

/// Elements of an array in order. Three words, so that handing it out as a container allocates nothing.
struct UnkeyedDecoding: UnkeyedDecodingContainer {
    private let node: DecoderNode
    private var position: UInt32 = 0
    /// The entry of the next element.
    private var place: UInt32

    init(node: DecoderNode) {
        self.node = node
        place = UInt32(truncatingIfNeeded: node.index + 1)
    }

    var codingPath: [any CodingKey] { node.codingPath }
    var currentIndex: Int { Int(position) }
    var isAtEnd: Bool { place >= node.entry.next }
    private var key: JSONIndexKey { JSONIndexKey(currentIndex) }

    var count: Int? {
        var count = 0
        var place = node.index + 1
        while place < node.entry.next {
            count += 1
            place = Int(node.pass.entry(place).next)
        }
        return count
    }

    @inline(__always)
    private func next(_ type: Any.Type) throws -> Int {
        guard !isAtEnd else {
            throw DecodingError.valueNotFound(
                type, node.context(key, "expected another element, found the end of the array"))
        }
        return Int(place)
    }

    @inline(__always)
    private mutating func step() {
        position += 1
        place = node.pass.entry(Int(place)).next
    }

    /// Consumes the element only when it is null, as the protocol demands.
    mutating func decodeNil() throws -> Bool {
        guard node.pass.entry(try next(Never.self)).kind == .null else { return false }
        step()
        return true
    }

    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        let result = try node.child(try next(type)).decodeSelf(type)
        step()
        return result
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> {
        let container = try nextNode().container(keyedBy: type)
        step()
        return container
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        let container = try nextNode().unkeyedContainer()
        step()
        return container
    }

    mutating func superDecoder() throws -> any Decoder {
        let result = try nextNode()
        step()
        return result
    }

    private func nextNode() throws -> DecoderNode {
        node.child(try next((any Decoder).self))
    }
}

/// The scalars; see ``KeyedDecoding``.
extension UnkeyedDecoding {
    mutating func decode(_ type: String.Type) throws -> String {
        let result = try node.string(try next(type), key)
        step()
        return result
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool {
        let result = try node.bool(try next(type), key)
        step()
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
        step()
        return result
    }

    @inline(__always)
    mutating func decode<T: WireFloat & Decodable>(_ type: T.Type) throws -> T {
        let result = try node.float(type, try next(type), key)
        step()
        return result
    }
}

/// A value that is not taken apart.
struct SingleValueDecoding: SingleValueDecodingContainer {
    let node: DecoderNode

    var codingPath: [any CodingKey] { node.codingPath }

    func decodeNil() -> Bool {
        node.isNull
    }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        try node.decodeSelf(type)
    }

    func decode(_ type: String.Type) throws -> String {
        try node.string(node.index, nil)
    }

    func decode(_ type: Bool.Type) throws -> Bool {
        try node.bool(node.index, nil)
    }

    @inline(__always)
    func decode<T: FixedWidthInteger & Decodable>(_ type: T.Type) throws -> T {
        try node.integer(type, node.index, nil)
    }

    func decode(_ type: Int128.Type) throws -> Int128 {
        try node.integer(type, node.index, nil)
    }

    func decode(_ type: UInt128.Type) throws -> UInt128 {
        try node.integer(type, node.index, nil)
    }

    @inline(__always)
    func decode<T: WireFloat & Decodable>(_ type: T.Type) throws -> T {
        try node.float(type, node.index, nil)
    }
}
