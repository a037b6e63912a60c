// SPDX-License-Identifier: Apache-2.0

/// Members of an object by key.
struct KeyedDecoding<Key: CodingKey>: KeyedDecodingContainerProtocol {
    /// A node whose value is an object.
    let node: DecoderNode

    var codingPath: [any CodingKey] { node.codingPath }

    /// All member names that `Key` accepts, in document order.
    var allKeys: [Key] {
        var keys: [Key] = []
        var place = node.index + 1
        while place < node.entry.next {
            if let key = Key(stringValue: node.pass.text(place)) { keys.append(key) }
            place = Int(node.pass.entry(place + 1).next)
        }
        return keys
    }

    func contains(_ key: Key) -> Bool {
        node.find(key.stringValue) != nil
    }

    @inline(__always)
    func require(_ key: Key) throws -> Int {
        if let index = node.find(key.stringValue) { return index }
        throw missing(key)
    }

    /// The value for an optional member: nil when it is missing or `null`.
    @inline(__always)
    func present(_ key: Key) -> Int? {
        guard let index = node.find(key.stringValue), node.pass.entry(index).kind != .null else { return nil }
        return index
    }

    @inline(never)
    private func missing(_ key: Key) -> DecodingError {
        .keyNotFound(key, node.context(nil, "required member is missing"))
    }

    func decodeNil(forKey key: Key) throws -> Bool {
        node.pass.entry(try require(key)).kind == .null
    }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try node.child(try require(key)).decodeSelf(type)
    }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        guard let index = present(key) else { return nil }
        return try node.child(index).decodeSelf(type)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        try node.child(try require(key)).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try node.child(try require(key)).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder {
        decoder(JSONSuperKey())
    }

    func superDecoder(forKey key: Key) throws -> any Decoder {
        decoder(key)
    }

    /// A missing member reads as null, so that a superclass without members of its own can be decoded.
    private func decoder(_ key: any CodingKey) -> any Decoder {
        if let index = node.find(key.stringValue) { return node.child(index) }
        let pass = DecodingPass(document: JSONView(.null).document, root: 0, prefix: codingPath + [key])
        return DecoderNode(pass: pass, index: 0, depth: 0)
    }
}

/// The scalars. One generic method answers for all integers that Codable's synthesized code asks for; the widest two stand
/// by themselves, because the standard library has defaults for them, which would win over a generic method. So would its
/// defaults for `decodeIfPresent`, which call these methods but search for the member three times; what messages hold has
/// methods of its own.
///
/// Inlined, here and below: the compiler specialises a generic witness only then, and without it decoding takes half as
/// long again.
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
