// SPDX-License-Identifier: Apache-2.0

import WireJSON

extension ReferenceParser {
    /// Parses a number by RFC 8259's grammar, without interpreting it.
    mutating func number() throws(JSONParseError) -> JSONNumber {
        let start = position
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
        return JSONNumber(uncheckedLexeme: text(from: start, to: position))
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
    mutating func string() throws(JSONParseError) -> String {
        let start = position &+ 1
        let end = JSONText.firstSpecial(base, from: start, count: count)
        guard byte(at: end) == UInt8(ascii: "\"") else { return try unusualString(from: start, plainTo: end) }
        position = end &+ 1
        lastStringIsPlain = true
        let outer = Int(byte(at: start)) &+ Int(byte(at: end &- 1)) &* 7
        lastStringMark = 1 &<< UInt64(truncatingIfNeeded: outer &+ (end &- start) &* 5)
        return text(from: start, to: end)
    }

    /// A string with escapes or bytes above 0x7F, or one that is at fault.
    @inline(never)
    private mutating func unusualString(from start: Int, plainTo end: Int) throws(JSONParseError) -> String {
        lastStringIsPlain = false
        position = end
        var decoded: [UInt8] = []
        var pending = start
        while true {
            let byte = peek()
            switch byte {
            case UInt8(ascii: "\""):
                position &+= 1
                if pending == start { return text(from: start, to: position &- 1) }
                append(from: pending, to: position &- 1, onto: &decoded)
                return String(decoding: decoded, as: UTF8.self)
            case UInt8(ascii: "\\"):
                append(from: pending, to: position, onto: &decoded)
                appendUTF8(try escape(), onto: &decoded)
                pending = position
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
    func sequenceLength(at index: Int) -> Int {
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

    /// The bytes in `start..<end` as a string; they have been checked to be UTF-8.
    @inline(__always)
    private func text(from start: Int, to end: Int) -> String {
        // In bounds: start <= end <= count, both found by scanning.
        String(decoding: UnsafeRawBufferPointer(start: base + start, count: end &- start), as: UTF8.self)
    }

    private func append(from start: Int, to end: Int, onto bytes: inout [UInt8]) {
        // In bounds: start <= end <= count, both found by scanning.
        bytes.append(contentsOf: UnsafeRawBufferPointer(start: base + start, count: end &- start))
    }

    private func appendUTF8(_ scalar: Unicode.Scalar, onto bytes: inout [UInt8]) {
        bytes.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
    }
}
