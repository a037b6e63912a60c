// SPDX-License-Identifier: Apache-2.0

public import WireJSON

/// The decoder over a tree, of before there was a tape: what the present one is compared with.
public struct ReferenceDecoder {
    public init() {}

    public func decode<T: Decodable>(_ type: T.Type, from value: JSONValue) throws -> T {
        try ReferenceNode(value: value, parent: nil, key: nil).decodeSelf(type)
    }
}

/// One value being decoded, linked to the node it was found in.
///
/// The coding path is put together from the links when somebody asks, which is when something failed.
final class ReferenceNode: Decoder {
    let value: JSONValue
    private let parent: ReferenceNode?
    private let key: (any CodingKey)?
    /// The members of an object; empty for any other value.
    let members: [JSONObject.Member]
    /// Where the member found last stands.
    private var cursor = 0

    init(value: JSONValue, parent: ReferenceNode?, key: (any CodingKey)?) {
        self.value = value
        self.parent = parent
        self.key = key
        if case .object(let object) = value { members = object.members } else { members = [] }
    }

    var userInfo: [CodingUserInfoKey: Any] { [:] }

    var codingPath: [any CodingKey] {
        var reversed: [any CodingKey] = []
        var node: ReferenceNode? = self
        while let current = node {
            if let key = current.key { reversed.append(key) }
            node = current.parent
        }
        return reversed.reversed()
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard case .object = value else { throw mismatch([String: JSONValue].self, "an object", value) }
        return KeyedDecodingContainer(ReferenceKeyed<Key>(node: self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .array(let elements) = value else { throw mismatch([JSONValue].self, "an array", value) }
        return ReferenceUnkeyed(node: self, elements: elements)
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        ReferenceSingle(node: self)
    }

    /// The value of the member with exactly these UTF-8 bytes as its name.
    ///
    /// Takes constant time as long as members are asked for in document order, or again. That is how a struct
    /// is usually read, and always how a dictionary is, so that decoding a hostile object with very many
    /// members into a dictionary stays linear.
    @inline(__always)
    func find(_ name: String) -> JSONValue? {
        let count = members.count
        var index = cursor
        for _ in 0..<count {
            if JSONText.sameBytes(members[index].name, name) {
                cursor = index
                return members[index].value
            }
            index &+= 1
            if index == count { index = 0 }
        }
        return nil
    }

    /// Decodes this node's own value as any type.
    @inline(__always)
    func decodeSelf<T: Decodable>(_ type: T.Type) throws -> T {
        if let direct = Self.direct(type, value) { return direct }
        return try T(from: self)
    }

    /// The value for the few types that need no decoder, without the cost of making one.
    @inline(__always)
    static func direct<T>(_ type: T.Type, _ value: JSONValue) -> T? {
        if type == String.self, case .string(let text) = value { return text as? T }
        if type == JSONValue.self { return value as? T }
        if type == JSONObject.self, case .object(let object) = value { return object as? T }
        if type == JSONNumber.self, case .number(let number) = value { return number as? T }
        return nil
    }
}

/// Unboxing of scalars. `key` is the last step of the path in errors; nil when the value is the node's own.
extension ReferenceNode {
    @inline(__always)
    func string(_ value: JSONValue, _ key: @autoclosure () -> (any CodingKey)?) throws -> String {
        if case .string(let text) = value { return text }
        throw mismatch(String.self, "a string", value, at: key())
    }

    @inline(__always)
    func bool(_ value: JSONValue, _ key: @autoclosure () -> (any CodingKey)?) throws -> Bool {
        if case .bool(let flag) = value { return flag }
        throw mismatch(Bool.self, "a boolean", value, at: key())
    }

    @inline(__always)
    func integer<T: FixedWidthInteger>(
        _ type: T.Type, _ value: JSONValue, _ key: @autoclosure () -> (any CodingKey)?
    ) throws -> T {
        if case .number(let number) = value, let result = number.integer(type) { return result }
        throw notInteger(type, value, at: key())
    }

    @inline(__always)
    func float<T: WireFloat>(
        _ type: T.Type, _ value: JSONValue, _ key: @autoclosure () -> (any CodingKey)?
    ) throws -> T {
        guard case .number(let number) = value else { throw mismatch(type, "a number", value, at: key()) }
        guard let result = T(number.lexeme), result.isFinite else {
            throw DecodingError.dataCorrupted(
                context(key(), "expected a number in the range of \(type), found one beyond it"))
        }
        return result
    }

    @inline(never)
    func mismatch(
        _ type: Any.Type, _ expectation: String, _ value: JSONValue, at key: (any CodingKey)? = nil
    ) -> DecodingError {
        let context = context(key, "expected \(expectation), found \(value.kindName)")
        return value.isNull ? .valueNotFound(type, context) : .typeMismatch(type, context)
    }

    @inline(never)
    private func notInteger<T: FixedWidthInteger>(
        _ type: T.Type, _ value: JSONValue, at key: (any CodingKey)?
    ) -> DecodingError {
        guard case .number(let number) = value else { return mismatch(type, "an integer", value, at: key) }
        guard number.isInteger else {
            return .typeMismatch(
                type, context(key, "expected an integer, found a number with a fraction or an exponent"))
        }
        return .dataCorrupted(
            context(key, "expected an integer from \(T.min) to \(T.max), found one outside that range"))
    }

    func context(_ key: (any CodingKey)?, _ text: String) -> DecodingError.Context {
        DecodingError.Context(codingPath: codingPath + (key.map { [$0] } ?? []), debugDescription: text)
    }
}

/// What `Double` and `Float` have in common here.
typealias WireFloat = BinaryFloatingPoint & LosslessStringConvertible
