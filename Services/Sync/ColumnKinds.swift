// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage

// What stands in one column and is more than a number or a text. Read and written for nearly every command, so by hand
// and straight from and to the bytes.

/// What is written as some whole numbers.
protocol NumberTuple {
    /// How many there are.
    static var numberCount: Int { get }

    func number(_ place: Int) -> Int64

    /// - Parameter numbers: as many as there are.
    /// - Returns: `nil` when they are not such a thing.
    init?(_ numbers: [Int64])
}

extension MPID: NumberTuple {
    static var numberCount: Int { 1 }

    func number(_ place: Int) -> Int64 { value }

    init?(_ numbers: [Int64]) { self.init(numbers[0]) }
}

extension Int64: NumberTuple {
    static var numberCount: Int { 1 }

    func number(_ place: Int) -> Int64 { self }

    init?(_ numbers: [Int64]) { self = numbers[0] }
}

extension ClosedRange<Int64>: NumberTuple {
    static var numberCount: Int { 2 }

    func number(_ place: Int) -> Int64 { place == 0 ? lowerBound : upperBound }

    init?(_ numbers: [Int64]) { self = numbers[0]...Swift.max(numbers[0], numbers[1]) }
}

extension DeviceRecord.SeenUser: NumberTuple {
    static var numberCount: Int { 3 }

    func number(_ place: Int) -> Int64 {
        switch place {
        case 0: mpid.value
        case 1: firstSeen
        default: lastSeen
        }
    }

    init?(_ numbers: [Int64]) {
        guard let mpid = MPID(numbers[0]) else { return nil }
        self.init(mpid: mpid, firstSeen: numbers[1], lastSeen: numbers[2])
    }
}

/// A list of numbers as `1:2:3,4:5:6`: short, and readable in a database's own shell.
enum NumberList {
    static func text<Element: NumberTuple>(_ list: [Element]) -> String {
        guard !list.isEmpty else { return "" }
        // A number has 20 characters at most, and one stands behind it.
        return String(unsafeUninitializedCapacity: list.count * Element.numberCount * 21) { text in
            var end = 0
            for element in list {
                for number in 0..<Element.numberCount {
                    if end > 0 {
                        text[end] = number == 0 ? UInt8(ascii: ",") : UInt8(ascii: ":")
                        end += 1
                    }
                    write(element.number(number), to: text, &end)
                }
            }
            return end
        }
    }

    /// - Returns: `nil` when the text is not such a list.
    static func read<Element: NumberTuple>(_ text: String) -> [Element]? {
        guard !text.isEmpty else { return [] }
        var text = text
        return text.withUTF8 { bytes in
            var list: [Element] = []
            var numbers: [Int64] = []
            var place = 0
            while true {
                guard let number = number(in: bytes, &place) else { return nil }
                numbers.append(number)
                let isLast = place == bytes.count || bytes[place] == UInt8(ascii: ",")
                if isLast {
                    guard numbers.count == Element.numberCount, let element = Element(numbers) else { return nil }
                    list.append(element)
                    numbers.removeAll(keepingCapacity: true)
                } else if bytes[place] != UInt8(ascii: ":") {
                    return nil
                }
                if place == bytes.count { return list }
                place += 1
            }
        }
    }

    private static func write(_ number: Int64, to text: UnsafeMutableBufferPointer<UInt8>, _ end: inout Int) {
        if number < 0 {
            text[end] = UInt8(ascii: "-")
            end += 1
        }
        let start = end
        var rest = number.magnitude
        repeat {
            text[end] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            end += 1
            rest /= 10
        } while rest > 0
        text[start..<end].reverse()
    }

    private static func number(in bytes: UnsafeBufferPointer<UInt8>, _ place: inout Int) -> Int64? {
        let isNegative = place < bytes.count && bytes[place] == UInt8(ascii: "-")
        if isNegative { place += 1 }
        let start = place
        var number: Int64 = 0
        while place < bytes.count, case let digit = bytes[place] &- UInt8(ascii: "0"), digit < 10 {
            let (tenfold, isTooLarge) = number.multipliedReportingOverflow(by: 10)
            // Downwards, because there is one more of these.
            let (next, isTooLargeNow) = tenfold.subtractingReportingOverflow(Int64(digit))
            guard !isTooLarge, !isTooLargeNow else { return nil }
            number = next
            place += 1
        }
        guard place > start else { return nil }
        if isNegative { return number }
        return number == .min ? nil : -number
    }
}

/// Identities as JSON: `[{"type":"email","value":"a@b.example"}]`.
enum IdentityList {
    /// - Returns: `nil` for values that JSON would have to escape.
    static func text(_ identities: [Identity]) -> String? {
        var text = "["
        for identity in identities {
            let value = identity.value.text
            guard !value.utf8.contains(where: isEscaped) else { return nil }
            if text.utf8.count > 1 { text += "," }
            text += #"{"type":""#
            text += identity.type.rawValue
            text += #"","value":""#
            text += value
            text += #""}"#
        }
        text += "]"
        return text
    }

    /// - Returns: `nil` for what is not written like this to the letter.
    static func read(_ text: String) -> [Identity]? {
        var text = text
        return text.withUTF8 { bytes in
            var rest = bytes[...]
            guard skip("[", &rest) else { return nil }
            var identities: [Identity] = []
            while !skip("]", &rest) {
                guard identities.isEmpty || skip(",", &rest), skip(#"{"type":""#, &rest),
                    let type = IdentityType(rawValue: plain(&rest)), skip(#"","value":""#, &rest)
                else { return nil }
                let value = plain(&rest)
                guard skip(#""}"#, &rest) else { return nil }
                identities.append(Identity(type, IdentityValue(value)))
            }
            return rest.isEmpty ? identities : nil
        }
    }

    /// What JSON has to escape: quotation marks, backslashes and control characters.
    private static func isEscaped(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    private static func skip(_ word: StaticString, _ rest: inout Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        let word = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        guard rest.starts(with: word) else { return false }
        rest = rest.dropFirst(word.count)
        return true
    }

    /// As far as nothing is escaped.
    private static func plain(_ rest: inout Slice<UnsafeBufferPointer<UInt8>>) -> String {
        let end = rest.firstIndex(where: isEscaped) ?? rest.endIndex
        defer { rest = rest[end...] }
        return String(decoding: rest[..<end], as: UTF8.self)
    }
}

extension SQLColumns {
    func numbers<Element: NumberTuple>(
        _ name: StaticString, _ list: inout [Element], _ role: Role = .latest
    ) throws(StorageError) {
        var text = areWritten ? NumberList.text(list) : ""
        try column(name, &text, role)
        guard areRead else { return }
        guard let read: [Element] = NumberList.read(text) else {
            throw StorageError(kind: .invalid, message: "column \(name) holds a list of numbers that is damaged")
        }
        list = read
    }

    /// Any JSON of identities is read; what is written is the same as of any other value.
    func identities(_ name: StaticString, _ identities: inout [Identity]) throws(StorageError) {
        if areWritten, var text = IdentityList.text(identities) { return try column(name, &text) }
        guard areRead else { return try json(name, &identities) }
        var text = ""
        try column(name, &text)
        if let read = IdentityList.read(text) {
            identities = read
        } else {
            identities = try json([Identity].self, from: text, in: name)
        }
    }

    func bucket(
        _ tokens: StaticString, _ at: StaticString, _ bucket: inout TokenBucket?
    ) throws(StorageError) {
        var (thousandths, time) = (bucket?.thousandths, bucket?.at)
        try column(tokens, &thousandths)
        try column(at, &time)
        guard let thousandths, let time else {
            bucket = nil
            return
        }
        bucket = TokenBucket(thousandths: thousandths, at: time)
    }
}
