// SPDX-License-Identifier: Apache-2.0

/// Members of an object by key.
struct KeyedDecoding<Key: CodingKey>: KeyedDecodingContainerProtocol {
    /// A node whose value is an object.
    let node: DecoderNode

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
        if let direct = DecoderNode.direct(type, value) { return direct }
        return try T(from: DecoderNode(value: value, parent: node, key: key))
    }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        guard let value = present(key) else { return nil }
        if let direct = DecoderNode.direct(type, value) { return direct }
        return try T(from: DecoderNode(value: value, parent: node, key: key))
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        try DecoderNode(value: try require(key), parent: node, key: key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try DecoderNode(value: try require(key), parent: node, key: key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder {
        // A missing member reads as null, so that a superclass without members of its own can be decoded.
        let key = JSONSuperKey()
        return DecoderNode(value: node.find(key.stringValue) ?? .null, parent: node, key: key)
    }

    func superDecoder(forKey key: Key) throws -> any Decoder {
        DecoderNode(value: node.find(key.stringValue) ?? .null, parent: node, key: key)
    }
}
