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
