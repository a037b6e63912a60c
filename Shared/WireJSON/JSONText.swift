// SPDX-License-Identifier: Apache-2.0

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
