// SPDX-License-Identifier: Apache-2.0

public import WireJSON

/// The parser that made a tree at once, of before there was a tape: what the present one is compared with.
///
/// `base` is valid for `count` bytes for as long as the parser is used. Every read goes through `peek`, which
/// checks its bound, or through a scan that is bounded by `count`.
public struct ReferenceParser {
    let base: UnsafeRawPointer
    let count: Int
    let maxDepth: Int
    var position = 0
    /// Whether the string parsed last had only ASCII bytes and no escapes.
    var lastStringIsPlain = false
    /// One bit derived from the length and the outer bytes of the string parsed last, if it was plain.
    var lastStringMark: UInt64 = 0
    private var depth = 0

    public init(base: UnsafeRawPointer, count: Int, maxDepth: Int) {
        self.base = base
        self.count = count
        self.maxDepth = maxDepth
    }

    /// The next byte, or 0 at the end; a 0 byte is not allowed anywhere, so the two need no telling apart
    /// before an error is worded.
    @inline(__always)
    func peek() -> UInt8 {
        byte(at: position)
    }

    /// The byte at `index`, or 0 beyond the end. `index` is never negative.
    @inline(__always)
    func byte(at index: Int) -> UInt8 {
        index < count ? base.load(fromByteOffset: index, as: UInt8.self) : 0
    }

    public mutating func document() throws(JSONParseError) -> JSONValue {
        if byte(at: 0) == 0xEF, byte(at: 1) == 0xBB, byte(at: 2) == 0xBF {
            throw JSONParseError(
                reason: .notJSON, offset: 0, expectation: "a value, not a byte order mark", found: .unspecified)
        }
        skipSpace()
        let result = try value()
        skipSpace()
        guard position == count else { throw unexpected("nothing after the value") }
        return result
    }

    private mutating func value() throws(JSONParseError) -> JSONValue {
        switch peek() {
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "{"): return .object(try object())
        case UInt8(ascii: "["): return .array(try array())
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number(try number())
        case UInt8(ascii: "t"):
            try word("true")
            return .bool(true)
        case UInt8(ascii: "f"):
            try word("false")
            return .bool(false)
        case UInt8(ascii: "n"):
            try word("null")
            return .null
        default: throw unexpected("a value")
        }
    }

    private mutating func object() throws(JSONParseError) -> JSONObject {
        try enter()
        if peek() == UInt8(ascii: "}") {
            leave()
            return JSONObject()
        }
        var members: [JSONObject.Member] = []
        members.reserveCapacity(8)
        var seen = ReferenceNameSet()
        while true {
            guard peek() == UInt8(ascii: "\"") else { throw unexpected("a member name in double quotes") }
            let start = position
            let name = try string()
            let fresh = seen.insert(name, isPlain: lastStringIsPlain, mark: lastStringMark, after: members)
            guard fresh else {
                throw JSONParseError(
                    reason: .duplicateMember, offset: start,
                    expectation: "a name not used before in this object", found: .unspecified)
            }
            skipSpace()
            guard peek() == UInt8(ascii: ":") else { throw unexpected("':' after a member name") }
            position &+= 1
            skipSpace()
            members.append(JSONObject.Member(name: name, value: try value()))
            skipSpace()
            switch peek() {
            case UInt8(ascii: ","):
                position &+= 1
                skipSpace()
            case UInt8(ascii: "}"):
                leave()
                return JSONObject(uniqueMembers: members)
            default: throw unexpected("',' or '}' after a member")
            }
        }
    }

    private mutating func array() throws(JSONParseError) -> [JSONValue] {
        try enter()
        if peek() == UInt8(ascii: "]") {
            leave()
            return []
        }
        var elements: [JSONValue] = []
        while true {
            elements.append(try value())
            skipSpace()
            switch peek() {
            case UInt8(ascii: ","):
                position &+= 1
                skipSpace()
            case UInt8(ascii: "]"):
                leave()
                return elements
            default: throw unexpected("',' or ']' after an element")
            }
        }
    }

    /// Steps over an opening bracket and the white space behind it.
    @inline(__always)
    private mutating func enter() throws(JSONParseError) {
        guard depth < maxDepth else {
            throw JSONParseError(
                reason: .tooDeep, offset: position,
                expectation: "at most \(maxDepth) nested arrays and objects", found: .unspecified)
        }
        depth &+= 1
        position &+= 1
        skipSpace()
    }

    /// Steps over a closing bracket.
    @inline(__always)
    private mutating func leave() {
        depth &-= 1
        position &+= 1
    }

    @inline(__always)
    private mutating func skipSpace() {
        while true {
            switch peek() {
            case 0x20, 0x0A, 0x0D, 0x09: position &+= 1
            default: return
            }
        }
    }

    private mutating func word(_ text: StaticString) throws(JSONParseError) {
        for index in 0..<text.utf8CodeUnitCount {
            // In bounds: index is below the literal's length.
            guard peek() == text.utf8Start[index] else { throw unexpected("'\(text)'") }
            position &+= 1
        }
    }

    /// The error for the byte at the present position.
    func unexpected(_ expectation: String) -> JSONParseError {
        guard position < count else {
            return JSONParseError(reason: .notJSON, offset: count, expectation: expectation, found: .end)
        }
        let byte = byte(at: position)
        if byte >= 0x80, sequenceLength(at: position) == 0 {
            return notUTF8(at: position)
        }
        return JSONParseError(reason: .notJSON, offset: position, expectation: expectation, found: .byte(byte))
    }

    func notUTF8(at index: Int) -> JSONParseError {
        JSONParseError(
            reason: .notUTF8, offset: index, expectation: "well-formed UTF-8",
            found: index < count ? .byte(byte(at: index)) : .end)
    }
}

/// The member names of one object under construction, to find repetitions in constant time per name.
///
/// Plain names (ASCII, no escapes) set one of 64 bits each; only a name whose bit is set already is compared
/// with the others. That is almost never for the objects of these services. Beyond `hashFrom` members a
/// hashed set takes over, so that a hostile document cannot make the comparison quadratic.
struct ReferenceNameSet {
    private static var hashFrom: Int { 24 }

    private var marks: UInt64 = 0
    private var hasUnusual = false
    private var hashed: Set<String> = []

    /// Whether `name` differs from the names of all `members`, and remembers it.
    ///
    /// - Parameter mark: one bit, a function of the name's bytes; used only when `isPlain`.
    @inline(__always)
    mutating func insert(
        _ name: String, isPlain: Bool, mark: UInt64, after members: [JSONObject.Member]
    ) -> Bool {
        if members.count < Self.hashFrom, isPlain, !hasUnusual, marks & mark == 0 {
            marks |= mark
            return true
        }
        return insertSlowly(name, isPlain: isPlain, mark: mark, after: members)
    }

    @inline(never)
    private mutating func insertSlowly(
        _ name: String, isPlain: Bool, mark: UInt64, after members: [JSONObject.Member]
    ) -> Bool {
        if isPlain { marks |= mark } else { hasUnusual = true }
        if members.count < Self.hashFrom {
            return !members.contains { $0.name == name }
        }
        if hashed.isEmpty {
            hashed = Set(members.map(\.name))
        }
        return hashed.insert(name).inserted
    }
}
