// SPDX-License-Identifier: Apache-2.0

/// A document that was parsed and is not taken apart: its bytes, and where in them each value stands. Values are made
/// from it only where somebody asks.
final class JSONDocument: Sendable {
    private let bytes: [UInt8]
    let entries: [JSONEntry]

    init(bytes: [UInt8], entries: [JSONEntry]) {
        self.bytes = bytes
        self.entries = entries
    }

    /// - Parameter body: must not let the tape escape.
    @inline(__always)
    func withTape<Result, Failure: Error>(
        _ body: (JSONTape) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try bytes.withUnsafeBufferPointer { (buffer) throws(Failure) -> Result in
            guard let base = UnsafeRawPointer(buffer.baseAddress) else {
                preconditionFailure("a document has at least one byte")
            }
            return try body(JSONTape(base: base, entries: entries))
        }
    }
}

/// One value of a document that was parsed.
///
/// Keeps the whole document alive, and shares it with every other view of it.
public struct JSONView: Sendable {
    let document: JSONDocument
    let index: Int

    init(document: JSONDocument, index: Int) {
        self.document = document
        self.index = index
    }

    /// Parses one document; what is refused, and how, is what ``JSONValue/init(parsing:limits:)`` says.
    public init(parsing bytes: [UInt8], limits: JSONLimits = .init()) throws(JSONParseError) {
        let entries = try bytes.withUnsafeBufferPointer { (buffer) throws(JSONParseError) in
            try JSONParser.entries(of: UnsafeRawBufferPointer(buffer), limits)
        }
        self.init(document: JSONDocument(bytes: bytes, entries: entries), index: 0)
    }

    /// A view of a value that was made otherwise.
    public init(_ value: JSONValue) {
        let bytes = value.serialized()
        let entries = bytes.withUnsafeBytes { JSONParser.entries(trusting: $0) }
        self.init(document: JSONDocument(bytes: bytes, entries: entries), index: 0)
    }

    @inline(__always)
    private var entry: JSONEntry { document.entries[index] }

    /// The value, taken apart.
    public var value: JSONValue { document.withTape { $0.value(at: index) } }

    /// The kind with its article, see ``JSONValue/kindName``.
    public var kindName: String { entry.kind.name }

    /// Whether this is `null`.
    public var isNull: Bool { entry.kind == .null }

    /// Whether this is an object.
    public var isObject: Bool { entry.kind == .object }

    /// The boolean, nil for any other kind.
    public var boolValue: Bool? {
        switch entry.kind {
        case .true: true
        case .false: false
        default: nil
        }
    }

    /// The string, nil for any other kind.
    public var stringValue: String? {
        let entry = entry
        return entry.kind == .string ? document.withTape { $0.text(entry) } : nil
    }

    /// Whether this is a string with exactly these UTF-8 bytes.
    public func isString(_ text: String) -> Bool {
        let entry = entry
        return entry.kind == .string && document.withTape { $0.isText(entry, text) }
    }

    /// Calls `body` with the bytes that ``JSONValue/canonicalBytes()`` gives; they are copied only where the document
    /// says the same in another way.
    public func withCanonicalBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        document.withTape { tape in
            if tape.isCanonical(at: index) { return body(tape.bytes(tape.entries[index])) }
            var bytes: [UInt8] = []
            bytes.reserveCapacity(Int(entry.end - entry.start))
            tape.appendCanonical(at: index, to: &bytes)
            return bytes.withUnsafeBytes(body)
        }
    }

    /// The members with these names, found in one pass over the object; nothing for any other kind.
    public func members(_ names: JSONNames) -> JSONMembers {
        var members = JSONMembers(document: document)
        let entry = entry
        guard entry.kind == .object else { return members }
        document.withTape { tape in
            var place = index + 1
            while place < entry.next {
                let name = tape.entries[place]
                let number =
                    name.form == .escaped
                    ? names.number(of: tape.text(name)) : names.number(of: tape.content(name))
                if let number { members.places[number] = UInt32(place + 1) }
                place = Int(tape.entries[place + 1].next)
            }
        }
        return members
    }
}

/// Names of members that are looked for together: at most 24, of 1 to 16 bytes each.
public struct JSONNames: Sendable {
    static let limit = 24
    private static let longest = 16

    /// A name as two words, which together with its length are all of it.
    private struct Name {
        var head: UInt64
        var tail: UInt64
        var number: Int
    }

    /// Sorted by length.
    private var names: [Name] = []
    /// Where the names of each length begin.
    private var starts: [Int] = []

    /// - Precondition: the names are different from each other, and within the limits.
    public init(_ list: [String]) {
        precondition(list.count <= Self.limit && list.allSatisfy { (1...Self.longest).contains($0.utf8.count) })
        for length in 0...Self.longest {
            starts.append(names.count)
            for (number, name) in list.enumerated() where name.utf8.count == length {
                let words = Array(name.utf8).withUnsafeBytes { Self.words($0) }
                names.append(Name(head: words.head, tail: words.tail, number: number))
            }
        }
        starts.append(names.count)
    }

    @inline(__always)
    func number(of text: UnsafeRawBufferPointer) -> Int? {
        guard text.count <= Self.longest else { return nil }
        let words = Self.words(text)
        for index in starts[text.count]..<starts[text.count + 1]
        where names[index].head == words.head && names[index].tail == words.tail {
            return names[index].number
        }
        return nil
    }

    func number(of text: String) -> Int? {
        var text = text
        return text.withUTF8 { number(of: UnsafeRawBufferPointer($0)) }
    }

    /// The first eight bytes and the last eight, or all of them and zero.
    @inline(__always)
    private static func words(_ text: UnsafeRawBufferPointer) -> (head: UInt64, tail: UInt64) {
        if text.count >= 8 {
            return (
                text.loadUnaligned(fromByteOffset: 0, as: UInt64.self),
                text.loadUnaligned(fromByteOffset: text.count - 8, as: UInt64.self)
            )
        }
        var head: UInt64 = 0
        for byte in text { head = head << 8 | UInt64(byte) }
        return (head, 0)
    }
}

/// Which of some ``JSONNames`` an object has. Members are asked for by the number of their name.
public struct JSONMembers {
    private let document: JSONDocument
    /// The entry of each member's value; 0 for one that is not there.
    fileprivate(set) var places = InlineArray<24, UInt32>(repeating: 0)

    fileprivate init(document: JSONDocument) { self.document = document }

    /// The value of a member; nil when there is none.
    public subscript(_ number: Int) -> JSONView? {
        let place = places[number]
        return place == 0 ? nil : JSONView(document: document, index: Int(place))
    }
}

/// Where one value, or the name of a member, stands in a document.
///
/// The entries of a document are in its order: an object is followed by its members, each the entry of its name and then
/// its value; an array by its elements.
struct JSONEntry {
    enum Kind: UInt8 {
        case null, `true`, `false`, number, string, array, object
    }

    /// How the content of a string is written.
    enum Form: UInt8 {
        /// ASCII without escapes.
        case plain
        /// Without escapes.
        case verbatim
        case escaped
    }

    /// The bytes from here, quotes and brackets included, up to and without `end`.
    var start: UInt32
    var end: UInt32
    /// The entry behind this value and all that is in it.
    var next: UInt32
    var kind: Kind
    var form = Form.plain
}

extension JSONEntry.Kind {
    /// As ``JSONValue/kindName``.
    var name: String {
        switch self {
        case .null: "null"
        case .true, .false: "a boolean"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}

/// A document that was parsed: its bytes and its entries. Valid only as long as the memory at `base` is.
struct JSONTape {
    let base: UnsafeRawPointer
    let entries: [JSONEntry]

    // All reads below are in bounds: the parser set starts and ends inside the document.

    /// A string's content as it is written.
    @inline(__always)
    func content(_ entry: JSONEntry) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base + Int(entry.start) + 1, count: Int(entry.end &- entry.start) &- 2)
    }

    @inline(__always)
    func bytes(_ entry: JSONEntry) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base + Int(entry.start), count: Int(entry.end &- entry.start))
    }

    /// The text of a string.
    @inline(__always)
    func text(_ entry: JSONEntry) -> String {
        let content = content(entry)
        return entry.form == .escaped
            ? JSONParser.unescaped(content) : String(decoding: content, as: UTF8.self)
    }

    /// Whether a string has exactly these UTF-8 bytes.
    @inline(__always)
    func isText(_ entry: JSONEntry, _ text: UnsafeRawBufferPointer) -> Bool {
        guard entry.form != .escaped else { return self.text(entry).utf8.elementsEqual(text) }
        let content = content(entry)
        return content.count == text.count && JSONText.equal(content, text)
    }

    @inline(__always)
    func isText(_ entry: JSONEntry, _ text: String) -> Bool {
        text.utf8.withContiguousStorageIfAvailable { isText(entry, UnsafeRawBufferPointer($0)) }
            ?? text.utf8.elementsEqual(self.text(entry).utf8)
    }

    func number(_ entry: JSONEntry) -> JSONNumber {
        JSONNumber(uncheckedLexeme: String(decoding: bytes(entry), as: UTF8.self))
    }

    /// The value of an entry with all that is in it.
    func value(at index: Int) -> JSONValue {
        let entry = entries[index]
        switch entry.kind {
        case .null: return .null
        case .true: return .bool(true)
        case .false: return .bool(false)
        case .number: return .number(number(entry))
        case .string: return .string(text(entry))
        case .array:
            var elements: [JSONValue] = []
            var place = index + 1
            while place < entry.next {
                elements.append(value(at: place))
                place = Int(entries[place].next)
            }
            return .array(elements)
        case .object:
            var members: [JSONObject.Member] = []
            var place = index + 1
            while place < entry.next {
                members.append(JSONObject.Member(name: text(entries[place]), value: value(at: place + 1)))
                place = Int(entries[place + 1].next)
            }
            return .object(JSONObject(uniqueMembers: members))
        }
    }

    /// Whether the text of the value is what ``JSONValue/canonicalBytes()`` would write: no white space, no escapes,
    /// names in order, no `-0`. A text with escapes may be canonical all the same; that is not looked into.
    func isCanonical(at index: Int) -> Bool {
        let entry = entries[index]
        switch entry.kind {
        case .null, .true, .false: return true
        case .number:
            return !(entry.end - entry.start == 2 && bytes(entry).elementsEqual("-0".utf8))
        case .string: return entry.form != .escaped
        case .array:
            var place = index + 1
            var expected = entry.start + 1
            while place < entry.next {
                let element = entries[place]
                guard element.start == expected, isCanonical(at: place) else { return false }
                expected = element.end + 1
                place = Int(element.next)
            }
            return expected == (place == index + 1 ? entry.end - 1 : entry.end)
        case .object:
            var place = index + 1
            var expected = entry.start + 1
            var last: JSONEntry?
            while place < entry.next {
                let name = entries[place]
                let value = entries[place + 1]
                guard name.start == expected, name.form != .escaped, value.start == name.end + 1,
                    isCanonical(at: place + 1)
                else { return false }
                if let last, !content(last).lexicographicallyPrecedes(content(name)) { return false }
                last = name
                expected = value.end + 1
                place = Int(value.next)
            }
            return expected == (last == nil ? entry.end - 1 : entry.end)
        }
    }

    /// Appends what ``JSONValue/canonicalBytes()`` gives.
    func appendCanonical(at index: Int, to bytes: inout [UInt8]) {
        let entry = entries[index]
        switch entry.kind {
        case .array:
            bytes.append(UInt8(ascii: "["))
            var place = index + 1
            while place < entry.next {
                if place > index + 1 { bytes.append(UInt8(ascii: ",")) }
                appendCanonical(at: place, to: &bytes)
                place = Int(entries[place].next)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object:
            bytes.append(UInt8(ascii: "{"))
            withSortedNames(of: index) { names in
                for (number, name) in names.enumerated() {
                    if number > 0 { bytes.append(UInt8(ascii: ",")) }
                    appendCanonical(at: Int(name), to: &bytes)
                    bytes.append(UInt8(ascii: ":"))
                    appendCanonical(at: Int(name) + 1, to: &bytes)
                }
            }
            bytes.append(UInt8(ascii: "}"))
        case .string where entry.form == .escaped: JSONWriter.append(text(entry), to: &bytes)
        case .number where !isCanonical(at: index): bytes.append(UInt8(ascii: "0"))
        default: bytes.append(contentsOf: self.bytes(entry))
        }
    }

    /// The entries of an object's names, in the order of the names' bytes.
    private func withSortedNames(of object: Int, _ body: (UnsafeMutableBufferPointer<UInt32>) -> Void) {
        let end = Int(entries[object].next)
        // Each member has two entries or more.
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: (end - object) / 2) { names in
            var count = 0
            var place = object + 1
            while place < end {
                names.initializeElement(at: count, to: UInt32(place))
                count += 1
                place = Int(entries[place + 1].next)
            }
            var names = UnsafeMutableBufferPointer(rebasing: names[..<count])
            names.sort { precedes(entries[Int($0)], entries[Int($1)]) }
            body(names)
        }
    }

    private func precedes(_ one: JSONEntry, _ other: JSONEntry) -> Bool {
        if one.form == .escaped || other.form == .escaped { return JSONText.precedes(text(one), text(other)) }
        return content(one).lexicographicallyPrecedes(content(other))
    }
}
