// SPDX-License-Identifier: Apache-2.0

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
    func isText(_ entry: JSONEntry, _ text: String) -> Bool {
        guard entry.form != .escaped else { return JSONText.sameBytes(self.text(entry), text) }
        let content = content(entry)
        guard content.count == text.utf8.count else { return false }
        return text.utf8.withContiguousStorageIfAvailable {
            JSONText.equal(content, UnsafeRawBufferPointer($0))
        } ?? text.utf8.elementsEqual(content)
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
