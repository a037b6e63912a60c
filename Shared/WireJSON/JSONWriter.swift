// SPDX-License-Identifier: Apache-2.0

extension JSONValue {
    /// The value as JSON text without white space, members in their order, numbers as they were written.
    public func serialized() -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(512)
        JSONWriter.append(self, style: .asIs, to: &bytes)
        return bytes
    }

    /// The value as JSON text that is equal for equal content, for digests and signatures.
    ///
    /// Two documents give the same bytes when they differ only in white space, in the order of members or in
    /// how strings and names are escaped. Members are sorted by the UTF-8 bytes of their names; there is no
    /// white space; only `"`, `\` and control characters are escaped. Integers (no fraction, no exponent) are
    /// written by value, which makes `-0` a `0`; any other number is written as it was read, so `1.0`, `1e0`
    /// and `1` stay three different numbers. Strings are not Unicode normalised.
    public func canonicalBytes() -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(512)
        JSONWriter.append(self, style: .canonical, to: &bytes)
        return bytes
    }
}

/// Appends JSON text to byte arrays: no white space, and only the escapes that RFC 8259 demands.
enum JSONWriter {
    /// A quoted string: `"`, `\` and control characters escaped, everything else (also `/`) as it is.
    @inline(__always)
    static func append(_ text: String, to bytes: inout [UInt8]) {
        let done: Void? = text.utf8.withContiguousStorageIfAvailable { buffer in
            append(UnsafeRawBufferPointer(buffer), to: &bytes)
        }
        if done == nil {
            // Only strings bridged from elsewhere have no contiguous storage.
            Array(text.utf8).withUnsafeBytes { append($0, to: &bytes) }
        }
    }

    /// A quoted string from UTF-8.
    @inline(__always)
    static func append(_ text: UnsafeRawBufferPointer, to bytes: inout [UInt8]) {
        guard let base = text.baseAddress else { return bytes.append(contentsOf: [0x22, 0x22]) }
        let end = JSONText.firstEscape(base, from: 0, count: text.count)
        if end == text.count {
            appendQuoted(base, count: end, to: &bytes)
        } else {
            bytes.append(UInt8(ascii: "\""))
            appendEscaped(base, count: text.count, firstEscape: end, to: &bytes)
            bytes.append(UInt8(ascii: "\""))
        }
    }

    /// A quoted string that needs no escaping, in one step. `base` is valid for `count` bytes.
    @inline(__always)
    private static func appendQuoted(_ base: UnsafeRawPointer, count: Int, to bytes: inout [UInt8]) {
        bytes.append(addingCapacity: count &+ 2) { output in
            output.withUnsafeMutableBufferPointer { buffer, initialized in
                // In bounds: the buffer's free part has room for count + 2 bytes, as asked for above.
                guard let start = buffer.baseAddress else { return }
                let target = start + initialized
                target[0] = UInt8(ascii: "\"")
                UnsafeMutableRawPointer(target + 1).copyMemory(from: base, byteCount: count)
                target[count &+ 1] = UInt8(ascii: "\"")
                initialized &+= count &+ 2
            }
        }
    }

    /// `base` is valid for `count` bytes and `firstEscape` is below `count`.
    @inline(never)
    private static func appendEscaped(
        _ base: UnsafeRawPointer, count: Int, firstEscape: Int, to bytes: inout [UInt8]
    ) {
        var start = 0
        var end = firstEscape
        while true {
            // In bounds: start <= end <= count.
            bytes.append(contentsOf: UnsafeRawBufferPointer(start: base + start, count: end &- start))
            guard end < count else { return }
            appendEscape(base.load(fromByteOffset: end, as: UInt8.self), to: &bytes)
            start = end &+ 1
            end = JSONText.firstEscape(base, from: start, count: count)
        }
    }

    private static func appendEscape(_ byte: UInt8, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
        case 0x08: bytes.append(UInt8(ascii: "b"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0C: bytes.append(UInt8(ascii: "f"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        default:
            let digit = byte & 0x0F
            bytes.append(contentsOf: "u00".utf8)
            bytes.append(UInt8(ascii: "0") &+ byte &>> 4)
            bytes.append(digit < 10 ? UInt8(ascii: "0") &+ digit : UInt8(ascii: "a") &+ digit &- 10)
        }
    }

    /// Text that needs no escaping: numbers and the three words.
    @inline(__always)
    static func appendPlain(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: text.utf8)
    }

    /// A boolean.
    @inline(__always)
    static func append(_ value: Bool, to bytes: inout [UInt8]) {
        appendPlain(value ? "true" : "false", to: &bytes)
    }

    /// An integer in decimal.
    @inline(__always)
    static func append<I: FixedWidthInteger>(_ value: I, to bytes: inout [UInt8]) {
        guard let word = Int64(exactly: value) else { return appendPlain(String(value), to: &bytes) }
        append(word: word, to: &bytes)
    }

    /// Collects the digits from the back in a vector on the stack, which needs no allocation.
    @inline(never)
    private static func append(word: Int64, to bytes: inout [UInt8]) {
        var digits = SIMD32<UInt8>()
        var index = 32
        var rest = word.magnitude
        repeat {
            let (quotient, remainder) = rest.quotientAndRemainder(dividingBy: 10)
            index &-= 1
            digits[index] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: remainder)
            rest = quotient
        } while rest != 0
        if word < 0 {
            index &-= 1
            digits[index] = UInt8(ascii: "-")
        }
        // In bounds: an Int64 has at most 19 digits and a sign, so index is at least 12.
        withUnsafeBytes(of: &digits) { bytes.append(contentsOf: $0[index...]) }
    }

    /// How a value's members and numbers are written.
    enum Style {
        /// Members in their order, numbers as they were read.
        case asIs
        /// Members sorted by the UTF-8 bytes of their names, numbers as they were read.
        case sorted
        /// Sorted, and integers by value; see `JSONValue.canonicalBytes`.
        case canonical
    }

    /// A whole value; recurses as deep as the value is nested, which for parsed values is bounded.
    static func append(_ value: JSONValue, style: Style, to bytes: inout [UInt8]) {
        switch value {
        case .null: appendPlain("null", to: &bytes)
        case .bool(let flag): append(flag, to: &bytes)
        case .number(let number):
            // "-0" is the only integer that RFC 8259 lets one write in two ways.
            let isMinusZero = style == .canonical && number.lexeme == "-0"
            appendPlain(isMinusZero ? "0" : number.lexeme, to: &bytes)
        case .string(let text): append(text, to: &bytes)
        case .array(let elements):
            bytes.append(UInt8(ascii: "["))
            var isFirst = true
            for element in elements {
                if isFirst { isFirst = false } else { bytes.append(UInt8(ascii: ",")) }
                append(element, style: style, to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let object):
            let inOrder = style == .asIs
            append(inOrder ? object.members : sorted(object.members), style: style, to: &bytes)
        }
    }

    private static func sorted(_ members: [JSONObject.Member]) -> [JSONObject.Member] {
        members.sorted { JSONText.precedes($0.name, $1.name) }
    }

    private static func append(_ members: [JSONObject.Member], style: Style, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "{"))
        var isFirst = true
        for member in members {
            if isFirst { isFirst = false } else { bytes.append(UInt8(ascii: ",")) }
            append(member.name, to: &bytes)
            bytes.append(UInt8(ascii: ":"))
            append(member.value, style: style, to: &bytes)
        }
        bytes.append(UInt8(ascii: "}"))
    }
}

/// Byte-level helpers that the parser, the writers and the model share.
package enum JSONText {
    /// Whether two strings have the same UTF-8 bytes.
    ///
    /// `==` on String would also equate canonically equivalent strings, for example K and the Kelvin sign.
    @inline(__always)
    package static func sameBytes(_ one: String, _ other: String) -> Bool {
        let count = one.utf8.count
        guard count == other.utf8.count else { return false }
        let fast = one.utf8.withContiguousStorageIfAvailable { left in
            other.utf8.withContiguousStorageIfAvailable { right in
                equal(UnsafeRawBufferPointer(left), UnsafeRawBufferPointer(right))
            }
        }
        if case .some(.some(let result)) = fast { return result }
        return one.utf8.elementsEqual(other.utf8)
    }

    /// Both buffers must have the same length; every load below stays inside it.
    @inline(__always)
    static func equal(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
        let count = one.count
        var index = 0
        while index &+ 8 <= count {
            let left = one.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            let right = other.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            if left != right { return false }
            index &+= 8
        }
        while index < count {
            if one[index] != other[index] { return false }
            index &+= 1
        }
        return true
    }

    /// Whether the UTF-8 bytes of `one` sort before those of `other`.
    static func precedes(_ one: String, _ other: String) -> Bool {
        one.utf8.lexicographicallyPrecedes(other.utf8)
    }

    /// The first offset in `start..<count` holding a quote, a backslash, a control character or a byte above
    /// 0x7F; `count` when there is none. The caller guarantees that `base` is valid for `count` bytes.
    @inline(__always)
    package static func firstSpecial(_ base: UnsafeRawPointer, from start: Int, count: Int) -> Int {
        var index = start
        while index &+ 8 <= count {
            // In bounds: index + 8 <= count.
            let word = UInt64(littleEndian: base.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            let hits = specialMask(word) | (word & highBits)
            if hits != 0 { return index &+ (hits.trailingZeroBitCount &>> 3) }
            index &+= 8
        }
        while index < count {
            let byte = base.load(fromByteOffset: index, as: UInt8.self)
            if byte < 0x20 || byte == 0x22 || byte == 0x5C || byte >= 0x80 { return index }
            index &+= 1
        }
        return count
    }

    /// Like `firstSpecial` but passes over bytes above 0x7F, which are written as they are.
    @inline(__always)
    static func firstEscape(_ base: UnsafeRawPointer, from start: Int, count: Int) -> Int {
        var index = start
        while index &+ 8 <= count {
            // In bounds: index + 8 <= count.
            let word = UInt64(littleEndian: base.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            let hits = specialMask(word)
            if hits != 0 { return index &+ (hits.trailingZeroBitCount &>> 3) }
            index &+= 8
        }
        while index < count {
            let byte = base.load(fromByteOffset: index, as: UInt8.self)
            if byte < 0x20 || byte == 0x22 || byte == 0x5C { return index }
            index &+= 1
        }
        return count
    }

    private static var lowBits: UInt64 { 0x0101_0101_0101_0101 }
    private static var highBits: UInt64 { 0x8080_8080_8080_8080 }

    /// The high bit of each byte that is below 0x20, a quote or a backslash. Borrows can set wrong bits only
    /// above the first right one, so the lowest bit set is exact; bytes above 0x7F are never marked below it.
    @inline(__always)
    private static func specialMask(_ word: UInt64) -> UInt64 {
        let quote = word ^ (lowBits &* 0x22)
        let slash = word ^ (lowBits &* 0x5C)
        let control = (word &- (lowBits &* 0x20)) & ~word
        return (control | ((quote &- lowBits) & ~quote) | ((slash &- lowBits) & ~slash)) & highBits
    }

    /// The shortest text that reads back as `value`, nil for NaN and infinities.
    static func shortest<F: BinaryFloatingPoint & LosslessStringConvertible>(_ value: F) -> String? {
        guard value.isFinite else { return nil }
        let text = value.description
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}
