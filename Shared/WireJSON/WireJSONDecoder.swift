// SPDX-License-Identifier: Apache-2.0

/// Decodes `Decodable` types from parsed JSON, without taking it apart first.
///
/// There are no silent conversions: a string is not a number, `1.5` and `5.0` are not integers, and an integer
/// that does not fit is an error. `Date`, `Data` and `Decimal` get no special treatment.
public struct WireJSONDecoder: Sendable {
    /// A decoder; it keeps no state and may be used from any task.
    public init() {}

    /// Decodes `type` from a value. Failures are `DecodingError`s whose coding path leads from there to the member at
    /// fault and whose text names kinds, not content; see `WireJSONError.explain`.
    public func decode<T: Decodable>(_ type: T.Type, from view: JSONView) throws -> T {
        let pass = DecodingPass(document: view.document, root: view.index)
        return try DecoderNode(pass: pass, index: view.index, depth: 0).decodeSelf(type)
    }

    /// Decodes `type` from a value, as from a view of it.
    public func decode<T: Decodable>(_ type: T.Type, from value: JSONValue) throws -> T {
        try decode(type, from: JSONView(value))
    }

    /// Parses and decodes; throws `JSONParseError` or `DecodingError`.
    public func decode<T: Decodable>(
        _ type: T.Type, from bytes: [UInt8], limits: JSONLimits = .init()
    ) throws -> T {
        try decode(type, from: JSONView(parsing: bytes, limits: limits))
    }
}

/// What is shared while one value is decoded.
final class DecodingPass {
    let document: JSONDocument
    /// The value that decoding began with: coding paths lead from there.
    private let root: Int
    /// What stands in front of them.
    private let prefix: [any CodingKey]
    /// For each depth, the object that was looked into last, and the entry of the name that was found in it.
    private var cursors = InlineArray<8, Cursor>(repeating: Cursor())
    private var deeperCursors: [Cursor] = []

    struct Cursor {
        var object = -1
        var name = 0
    }

    init(document: JSONDocument, root: Int, prefix: [any CodingKey] = []) {
        self.document = document
        self.root = root
        self.prefix = prefix
    }

    @inline(__always)
    func entry(_ index: Int) -> JSONEntry { document.entries[index] }

    func text(_ index: Int) -> String { document.withTape { $0.text($0.entries[index]) } }

    func value(_ index: Int) -> JSONValue { document.withTape { $0.value(at: index) } }

    /// The value of the member with exactly these UTF-8 bytes as its name.
    ///
    /// Takes constant time as long as members are asked for in document order, or again. That is how a struct
    /// is usually read, and always how a dictionary is, so that decoding a hostile object with very many
    /// members into a dictionary stays linear.
    func find(_ name: String, in object: Int, depth: Int) -> Int? {
        document.withTape { tape in
            let end = Int(tape.entries[object].next)
            guard object + 1 < end else { return nil }
            let cursor = cursor(depth)
            let first = cursor.object == object ? cursor.name : object + 1
            var place = first
            repeat {
                let value = place + 1
                if tape.isText(tape.entries[place], name) {
                    keep(Cursor(object: object, name: place), depth)
                    return value
                }
                place = Int(tape.entries[value].next)
                if place == end { place = object + 1 }
            } while place != first
            return nil
        }
    }

    @inline(__always)
    private func cursor(_ depth: Int) -> Cursor {
        if depth < 8 { return cursors[depth] }
        return depth - 8 < deeperCursors.count ? deeperCursors[depth - 8] : Cursor()
    }

    @inline(__always)
    private func keep(_ cursor: Cursor, _ depth: Int) {
        if depth < 8 {
            cursors[depth] = cursor
        } else {
            while deeperCursors.count <= depth - 8 { deeperCursors.append(Cursor()) }
            deeperCursors[depth - 8] = cursor
        }
    }

    /// The keys that lead from the root to a value, which is looked for when somebody asks: when something failed.
    func path(to index: Int) -> [any CodingKey] {
        var path = prefix
        var place = root
        while place != index {
            let isObject = entry(place).kind == .object
            var child = place + 1
            var position = 0
            while true {
                let value = isObject ? child + 1 : child
                let next = Int(entry(value).next)
                if index < next {
                    path.append(isObject ? AnyKey(text(child)) : JSONIndexKey(position))
                    place = value
                    break
                }
                child = next
                position += 1
            }
        }
        return path
    }
}

/// One value being decoded.
struct DecoderNode: Decoder {
    let pass: DecodingPass
    private let place: UInt32
    private let level: UInt32

    /// - Parameter depth: how many values that are being decoded it stands in.
    init(pass: DecodingPass, index: Int, depth: Int) {
        self.pass = pass
        place = UInt32(truncatingIfNeeded: index)
        level = UInt32(truncatingIfNeeded: depth)
    }

    var index: Int { Int(place) }
    var depth: Int { Int(level) }
    var entry: JSONEntry { pass.entry(index) }
    var isNull: Bool { entry.kind == .null }
    var value: JSONValue { pass.value(index) }
    var userInfo: [CodingUserInfoKey: Any] { [:] }
    var codingPath: [any CodingKey] { pass.path(to: index) }

    /// A value in this one.
    @inline(__always)
    func child(_ index: Int) -> DecoderNode { DecoderNode(pass: pass, index: index, depth: depth + 1) }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard entry.kind == .object else { throw mismatch([String: JSONValue].self, "an object", index) }
        return KeyedDecodingContainer(KeyedDecoding<Key>(node: self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard entry.kind == .array else { throw mismatch([JSONValue].self, "an array", index) }
        return UnkeyedDecoding(node: self)
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        SingleValueDecoding(node: self)
    }

    /// The value of the member with exactly these UTF-8 bytes as its name.
    @inline(__always)
    func find(_ name: String) -> Int? { pass.find(name, in: index, depth: depth) }

    /// Decodes this node's own value as any type.
    @inline(__always)
    func decodeSelf<T: Decodable>(_ type: T.Type) throws -> T {
        if let direct = direct(type, index) { return direct }
        return try T(from: self)
    }

    /// The value for the few types that need no decoder, without the cost of making one.
    @inline(__always)
    func direct<T>(_ type: T.Type, _ index: Int) -> T? {
        if type == String.self { return pass.entry(index).kind == .string ? pass.text(index) as? T : nil }
        if type == JSONValue.self { return pass.value(index) as? T }
        if type == JSONObject.self, case .object(let object) = pass.value(index) { return object as? T }
        if type == JSONNumber.self, case .number(let number) = pass.value(index) { return number as? T }
        return nil
    }
}

/// Unboxing of scalars. `key` is the last step of the path in errors; nil when the value is the node's own.
extension DecoderNode {
    @inline(__always)
    func string(_ index: Int, _ key: @autoclosure () -> (any CodingKey)?) throws -> String {
        if pass.entry(index).kind == .string { return pass.text(index) }
        throw mismatch(String.self, "a string", index, at: key())
    }

    @inline(__always)
    func bool(_ index: Int, _ key: @autoclosure () -> (any CodingKey)?) throws -> Bool {
        switch pass.entry(index).kind {
        case .true: return true
        case .false: return false
        default: throw mismatch(Bool.self, "a boolean", index, at: key())
        }
    }

    @inline(__always)
    func integer<T: FixedWidthInteger>(
        _ type: T.Type, _ index: Int, _ key: @autoclosure () -> (any CodingKey)?
    ) throws -> T {
        let entry = pass.entry(index)
        if entry.kind == .number,
            let result = pass.document.withTape({ JSONNumber.integer(type, $0.bytes(entry)) })
        {
            return result
        }
        throw notInteger(type, index, at: key())
    }

    @inline(__always)
    func float<T: WireFloat>(
        _ type: T.Type, _ index: Int, _ key: @autoclosure () -> (any CodingKey)?
    ) throws -> T {
        let entry = pass.entry(index)
        guard entry.kind == .number else { throw mismatch(type, "a number", index, at: key()) }
        let number = pass.document.withTape { $0.number(entry) }
        guard let result = T(number.lexeme), result.isFinite else {
            throw DecodingError.dataCorrupted(
                context(key(), "expected a number in the range of \(type), found one beyond it"))
        }
        return result
    }

    @inline(never)
    func mismatch(
        _ type: Any.Type, _ expectation: String, _ index: Int, at key: (any CodingKey)? = nil
    ) -> DecodingError {
        let kind = pass.entry(index).kind
        let context = context(key, "expected \(expectation), found \(kind.name)")
        return kind == .null ? .valueNotFound(type, context) : .typeMismatch(type, context)
    }

    @inline(never)
    private func notInteger<T: FixedWidthInteger>(
        _ type: T.Type, _ index: Int, at key: (any CodingKey)?
    ) -> DecodingError {
        guard case .number(let number) = pass.value(index) else {
            return mismatch(type, "an integer", index, at: key)
        }
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
/// Inlined, here and in the other containers: the compiler specialises a generic witness only then, and without it
/// decoding takes half as long again.
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

/// What `Double` and `Float` have in common here.
typealias WireFloat = BinaryFloatingPoint & LosslessStringConvertible
