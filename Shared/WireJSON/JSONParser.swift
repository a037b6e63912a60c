// SPDX-License-Identifier: Apache-2.0

/// A strict recursive descent parser over one contiguous document, which writes down where the values stand.
///
/// `base` is valid for `count` bytes for as long as the parser is used. Every read goes through `peek`, which
/// checks its bound, or through a scan that is bounded by `count`.
struct JSONParser {
    private let base: UnsafeRawPointer
    private let count: Int
    private let maxDepth: Int
    /// Whether names are known to be different from each other.
    private let trustsNames: Bool
    private var position = 0
    private var depth = 0
    private var entries: [JSONEntry] = []

    private init(base: UnsafeRawPointer, count: Int, maxDepth: Int, trustsNames: Bool = false) {
        self.base = base
        self.count = count
        self.maxDepth = maxDepth
        self.trustsNames = trustsNames
    }

    /// The entries of a document.
    static func entries(
        of bytes: UnsafeRawBufferPointer, _ limits: JSONLimits
    ) throws(JSONParseError) -> [JSONEntry] {
        guard bytes.count <= limits.maxBytes else {
            throw JSONParseError(
                reason: .tooLarge, offset: limits.maxBytes,
                expectation: "at most \(limits.maxBytes) bytes, got \(bytes.count)", found: .unspecified)
        }
        guard let base = bytes.baseAddress, !bytes.isEmpty else {
            throw JSONParseError(reason: .notJSON, offset: 0, expectation: "a value", found: .end)
        }
        var parser = JSONParser(base: base, count: bytes.count, maxDepth: limits.maxDepth)
        return try parser.document()
    }

    /// The entries of what ``JSONValue/serialized()`` wrote: well-formed, and bounded by nothing but its value.
    static func entries(trusting bytes: UnsafeRawBufferPointer) -> [JSONEntry] {
        guard let base = bytes.baseAddress else { preconditionFailure("a value is never written as nothing") }
        var parser = JSONParser(base: base, count: bytes.count, maxDepth: .max, trustsNames: true)
        do {
            return try parser.document()
        } catch {
            preconditionFailure("a value was written as no JSON: \(error)")
        }
    }

    /// The next byte, or 0 at the end; a 0 byte is not allowed anywhere, so the two need no telling apart
    /// before an error is worded.
    @inline(__always)
    private func peek() -> UInt8 {
        byte(at: position)
    }

    /// The byte at `index`, or 0 beyond the end. `index` is never negative.
    @inline(__always)
    private func byte(at index: Int) -> UInt8 {
        index < count ? base.load(fromByteOffset: index, as: UInt8.self) : 0
    }

    private mutating func document() throws(JSONParseError) -> [JSONEntry] {
        if byte(at: 0) == 0xEF, byte(at: 1) == 0xBB, byte(at: 2) == 0xBF {
            throw JSONParseError(
                reason: .notJSON, offset: 0, expectation: "a value, not a byte order mark", found: .unspecified)
        }
        // Our messages have an entry for every 13 bytes or more.
        entries.reserveCapacity(count / 12 + 4)
        skipSpace()
        try value()
        skipSpace()
        guard position == count else { throw unexpected("nothing after the value") }
        return entries
    }

    private mutating func value() throws(JSONParseError) {
        let start = position
        switch peek() {
        case UInt8(ascii: "\""): try string()
        case UInt8(ascii: "{"): try object()
        case UInt8(ascii: "["): try array()
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            try number()
            append(.number, from: start)
        case UInt8(ascii: "t"):
            try word("true")
            append(.true, from: start)
        case UInt8(ascii: "f"):
            try word("false")
            append(.false, from: start)
        case UInt8(ascii: "n"):
            try word("null")
            append(.null, from: start)
        default: throw unexpected("a value")
        }
    }

    /// Writes down what ends here.
    @inline(__always)
    private mutating func append(_ kind: JSONEntry.Kind, from start: Int, _ form: JSONEntry.Form = .plain) {
        entries.append(
            JSONEntry(
                start: UInt32(truncatingIfNeeded: start), end: UInt32(truncatingIfNeeded: position),
                next: UInt32(truncatingIfNeeded: entries.count &+ 1), kind: kind, form: form))
    }

    /// Completes the entry of an array or object that ends here.
    @inline(__always)
    private mutating func close(_ index: Int) {
        leave()
        entries[index].end = UInt32(truncatingIfNeeded: position)
        entries[index].next = UInt32(truncatingIfNeeded: entries.count)
    }

    private mutating func object() throws(JSONParseError) {
        let index = entries.count
        append(.object, from: position)
        try enter()
        if peek() == UInt8(ascii: "}") { return close(index) }
        var names = JSONNameSet()
        while true {
            guard peek() == UInt8(ascii: "\"") else { throw unexpected("a member name in double quotes") }
            let start = position
            let name = entries.count
            try string()
            guard trustsNames || names.insert(name, of: index, in: entries, base) else {
                throw JSONParseError(
                    reason: .duplicateMember, offset: start,
                    expectation: "a name not used before in this object", found: .unspecified)
            }
            skipSpace()
            guard peek() == UInt8(ascii: ":") else { throw unexpected("':' after a member name") }
            position &+= 1
            skipSpace()
            try value()
            skipSpace()
            switch peek() {
            case UInt8(ascii: ","):
                position &+= 1
                skipSpace()
            case UInt8(ascii: "}"): return close(index)
            default: throw unexpected("',' or '}' after a member")
            }
        }
    }

    private mutating func array() throws(JSONParseError) {
        let index = entries.count
        append(.array, from: position)
        try enter()
        if peek() == UInt8(ascii: "]") { return close(index) }
        while true {
            try value()
            skipSpace()
            switch peek() {
            case UInt8(ascii: ","):
                position &+= 1
                skipSpace()
            case UInt8(ascii: "]"): return close(index)
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

    // MARK: Numbers and strings

    /// Parses a number by RFC 8259's grammar, without interpreting it.
    private mutating func number() throws(JSONParseError) {
        if peek() == UInt8(ascii: "-") { position &+= 1 }
        if peek() == UInt8(ascii: "0") {
            position &+= 1
            if isDigit(peek()) { throw unexpected("no digit after a leading zero") }
        } else {
            try digits("a digit")
        }
        if peek() == UInt8(ascii: ".") {
            position &+= 1
            try digits("a digit after the decimal point")
        }
        if peek() | 0x20 == UInt8(ascii: "e") {
            position &+= 1
            if peek() == UInt8(ascii: "+") || peek() == UInt8(ascii: "-") { position &+= 1 }
            try digits("a digit in the exponent")
        }
    }

    private mutating func digits(_ expectation: @autoclosure () -> String) throws(JSONParseError) {
        guard isDigit(peek()) else { throw unexpected(expectation()) }
        repeat { position &+= 1 } while isDigit(peek())
    }

    @inline(__always)
    private func isDigit(_ byte: UInt8) -> Bool {
        byte &- UInt8(ascii: "0") <= 9
    }

    /// Parses a string; the present byte is the opening quote.
    @inline(__always)
    private mutating func string() throws(JSONParseError) {
        let start = position
        let end = JSONText.firstSpecial(base, from: start &+ 1, count: count)
        guard byte(at: end) == UInt8(ascii: "\"") else { return try unusualString(from: start, plainTo: end) }
        position = end &+ 1
        append(.string, from: start)
    }

    /// A string with escapes or bytes above 0x7F, or one that is at fault.
    @inline(never)
    private mutating func unusualString(from start: Int, plainTo end: Int) throws(JSONParseError) {
        var form = JSONEntry.Form.verbatim
        position = end
        while true {
            switch peek() {
            case UInt8(ascii: "\""):
                position &+= 1
                return append(.string, from: start, form)
            case UInt8(ascii: "\\"):
                form = .escaped
                _ = try escape()
            case 0x80...:
                let length = sequenceLength(at: position)
                guard length > 0 else { throw notUTF8(at: position) }
                position &+= length
            case 0x00..<0x20:
                throw unexpected("a string without raw control characters and with a closing quote")
            default:
                position = JSONText.firstSpecial(base, from: position, count: count)
            }
        }
    }

    /// The text of a string's content, which was parsed before.
    @inline(never)
    static func unescaped(_ content: UnsafeRawBufferPointer) -> String {
        guard let base = content.baseAddress else { return "" }
        var parser = JSONParser(base: base, count: content.count, maxDepth: 1)
        var decoded: [UInt8] = []
        decoded.reserveCapacity(content.count)
        while parser.position < content.count {
            let start = parser.position
            while parser.position < content.count, parser.peek() != UInt8(ascii: "\\") { parser.position &+= 1 }
            decoded.append(contentsOf: content[start..<parser.position])
            guard parser.position < content.count else { break }
            guard let scalar = try? parser.escape() else { preconditionFailure("an escape that was parsed before") }
            decoded.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
        }
        return String(decoding: decoded, as: UTF8.self)
    }

    /// Parses one escape (two, for a surrogate pair); the present byte is the backslash.
    private mutating func escape() throws(JSONParseError) -> Unicode.Scalar {
        let start = position
        position &+= 1
        let letter = peek()
        guard letter != UInt8(ascii: "u") else {
            position &+= 1
            return try unicodeEscape(startingAt: start)
        }
        let scalar: UInt8
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): scalar = letter
        case UInt8(ascii: "b"): scalar = 0x08
        case UInt8(ascii: "f"): scalar = 0x0C
        case UInt8(ascii: "n"): scalar = 0x0A
        case UInt8(ascii: "r"): scalar = 0x0D
        case UInt8(ascii: "t"): scalar = 0x09
        default: throw unexpected("an escape letter, one of \"\\/bfnrtu")
        }
        position &+= 1
        return Unicode.Scalar(scalar)
    }

    /// Parses the digits behind `\u`, and the second half of a surrogate pair.
    private mutating func unicodeEscape(startingAt start: Int) throws(JSONParseError) -> Unicode.Scalar {
        let first = try fourHexDigits()
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard first < 0xDC00, peek() == UInt8(ascii: "\\"), byte(at: position &+ 1) == UInt8(ascii: "u") else {
            throw loneSurrogate(at: start)
        }
        position &+= 2
        let second = try fourHexDigits()
        guard second >= 0xDC00, second <= 0xDFFF,
            let scalar = Unicode.Scalar(0x10000 &+ ((first &- 0xD800) &<< 10) &+ (second &- 0xDC00))
        else { throw loneSurrogate(at: start) }
        return scalar
    }

    private func loneSurrogate(at offset: Int) -> JSONParseError {
        JSONParseError(
            reason: .notJSON, offset: offset,
            expectation: "a high and a low surrogate escape in a pair, found one alone", found: .unspecified)
    }

    private mutating func fourHexDigits() throws(JSONParseError) -> UInt32 {
        var result: UInt32 = 0
        for _ in 0..<4 {
            let byte = peek()
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte &- UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte &- UInt8(ascii: "a") &+ 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte &- UInt8(ascii: "A") &+ 10
            default: throw unexpected("four hexadecimal digits after \\u")
            }
            result = result &<< 4 | UInt32(digit)
            position &+= 1
        }
        return result
    }

    /// The length of the well-formed multi-byte UTF-8 sequence at `index`, 0 when it is ill-formed or cut
    /// short. The byte ranges are those of table 3-7 in the Unicode standard.
    private func sequenceLength(at index: Int) -> Int {
        let second = byte(at: index &+ 1)
        let range: ClosedRange<UInt8>
        let length: Int
        switch byte(at: index) {
        case 0xC2...0xDF: (length, range) = (2, 0x80...0xBF)
        case 0xE0: (length, range) = (3, 0xA0...0xBF)
        case 0xED: (length, range) = (3, 0x80...0x9F)
        case 0xE1...0xEF: (length, range) = (3, 0x80...0xBF)
        case 0xF0: (length, range) = (4, 0x90...0xBF)
        case 0xF1...0xF3: (length, range) = (4, 0x80...0xBF)
        case 0xF4: (length, range) = (4, 0x80...0x8F)
        default: return 0
        }
        guard range.contains(second) else { return 0 }
        // Beyond the end `byte` gives 0, which is no continuation byte.
        for offset in 2..<4 where offset < length {
            guard byte(at: index &+ offset) & 0xC0 == 0x80 else { return 0 }
        }
        return length
    }

    // MARK: Errors

    /// The error for the byte at the present position.
    private func unexpected(_ expectation: String) -> JSONParseError {
        guard position < count else {
            return JSONParseError(reason: .notJSON, offset: count, expectation: expectation, found: .end)
        }
        let byte = byte(at: position)
        if byte >= 0x80, sequenceLength(at: position) == 0 {
            return notUTF8(at: position)
        }
        return JSONParseError(reason: .notJSON, offset: position, expectation: expectation, found: .byte(byte))
    }

    private func notUTF8(at index: Int) -> JSONParseError {
        JSONParseError(
            reason: .notUTF8, offset: index, expectation: "well-formed UTF-8",
            found: index < count ? .byte(byte(at: index)) : .end)
    }
}

/// The member names of one object under construction, to find repetitions in constant time per name.
///
/// Plain names (ASCII, no escapes) set one of 64 bits each; only a name whose bit is set already is compared
/// with the others. That is rare for the objects of these services. Beyond `hashFrom` members a
/// hashed set takes over, so that a hostile document cannot make the comparison quadratic.
private struct JSONNameSet {
    private static var hashFrom: Int { 24 }

    private var marks: UInt64 = 0
    private var count = 0
    private var hasUnusual = false
    private var hashed: Set<String> = []

    /// Whether the name, the newest of `entries`, differs from those before it in the object, and remembers it.
    @inline(__always)
    mutating func insert(_ name: Int, of object: Int, in entries: [JSONEntry], _ base: UnsafeRawPointer) -> Bool {
        count &+= 1
        let entry = entries[name]
        if entry.form == .plain, !hasUnusual, count <= Self.hashFrom {
            // One bit derived from the length and the outer bytes; the quotes stand in for those of an empty name.
            let first = base.load(fromByteOffset: Int(entry.start &+ 1), as: UInt8.self)
            let last = base.load(fromByteOffset: Int(entry.end &- 2), as: UInt8.self)
            let number = Int(first) &+ Int(last) &* 7 &+ Int(entry.end &- entry.start) &* 5
            let mark: UInt64 = 1 &<< UInt64(truncatingIfNeeded: number)
            if marks & mark == 0 {
                marks |= mark
                return true
            }
        }
        return insertSlowly(name, of: object, in: JSONTape(base: base, entries: entries))
    }

    @inline(never)
    private mutating func insertSlowly(_ name: Int, of object: Int, in tape: JSONTape) -> Bool {
        let entry = tape.entries[name]
        if entry.form != .plain { hasUnusual = true }
        if count > Self.hashFrom {
            if hashed.isEmpty { forEach(before: name, of: object, in: tape) { hashed.insert(tape.text($0)) } }
            return hashed.insert(tape.text(entry)).inserted
        }
        var isNew = true
        if hasUnusual {
            // `==` and not the bytes: what Swift takes for equal would be merged by a dictionary.
            let text = tape.text(entry)
            forEach(before: name, of: object, in: tape) { if tape.text($0) == text { isNew = false } }
        } else {
            let content = tape.content(entry)
            forEach(before: name, of: object, in: tape) { other in
                let other = tape.content(other)
                if other.count == content.count, JSONText.equal(other, content) { isNew = false }
            }
        }
        return isNew
    }

    private func forEach(before name: Int, of object: Int, in tape: JSONTape, _ body: (JSONEntry) -> Void) {
        var place = object + 1
        while place < name {
            body(tape.entries[place])
            place = Int(tape.entries[place + 1].next)
        }
    }
}
