// SPDX-License-Identifier: Apache-2.0

import Glibc
public import WireJSON

/// An instant in milliseconds since 1970-01-01T00:00:00Z, as contracts write it: RFC 3339.
///
/// Conversion is arithmetic on the proleptic Gregorian calendar and needs no locale, time zone database or lock, so it
/// is safe and cheap on the decode path.
public struct Timestamp: Sendable, Hashable, Comparable {
    public var milliseconds: Int64

    public init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// The system's clock.
    public static var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }

    public static func < (left: Timestamp, right: Timestamp) -> Bool { left.milliseconds < right.milliseconds }

    /// Reads `2030-01-31T12:00:00Z`, with an optional fraction (cut to milliseconds) and any numeric offset.
    /// A leap second (`:60`) counts as the first instant of the next minute. `nil` when the text is anything else, or
    /// when its offset leads out of the years 0 to 9999, which are all that can be written.
    public init?(rfc3339 text: String) {
        var text = text
        guard let read = text.withUTF8({ Self.read(rfc3339: UnsafeRawBufferPointer($0)) }) else { return nil }
        self = read
    }

    private static func read(rfc3339 bytes: UnsafeRawBufferPointer) -> Timestamp? {
        guard bytes.count >= 20, bytes.count <= 40 else { return nil }
        func digit(_ index: Int) -> Int64? {
            guard index < bytes.count, bytes[index] >= 0x30, bytes[index] <= 0x39 else { return nil }
            return Int64(bytes[index] - 0x30)
        }
        func number(_ start: Int, _ length: Int) -> Int64? {
            var result: Int64 = 0
            for index in start..<start + length {
                guard let digit = digit(index) else { return nil }
                result = result * 10 + digit
            }
            return result
        }
        guard let year = number(0, 4), bytes[4] == 0x2D, let month = number(5, 2), bytes[7] == 0x2D,
            let day = number(8, 2), bytes[10] | 0x20 == 0x74, let hour = number(11, 2), bytes[13] == 0x3A,
            let minute = number(14, 2), bytes[16] == 0x3A, let second = number(17, 2),
            (1...12).contains(month), day >= 1, day <= days(in: month, of: year),
            hour < 24, minute < 60, second <= 60
        else { return nil }
        var index = 19
        var fraction: Int64 = 0
        if bytes[index] == 0x2E {
            index += 1
            guard digit(index) != nil else { return nil }
            var weight: Int64 = 100
            while let digit = digit(index) {
                fraction += digit * weight
                weight /= 10
                index += 1
            }
        }
        guard index < bytes.count else { return nil }
        var offsetMinutes: Int64 = 0
        switch bytes[index] {
        case 0x5A, 0x7A:
            guard index == bytes.count - 1 else { return nil }
        case 0x2B, 0x2D:
            guard bytes.count == index + 6, bytes[index + 3] == 0x3A, let hours = number(index + 1, 2),
                let minutes = number(index + 4, 2), hours < 24, minutes < 60
            else { return nil }
            offsetMinutes = (hours * 60 + minutes) * (bytes[index] == 0x2D ? -1 : 1)
        default:
            return nil
        }
        let days = daysSince1970(year, month, day)
        let minutes = (days * 24 + hour) * 60 + minute - offsetMinutes
        let milliseconds = (minutes * 60 + second) * 1000 + fraction
        return writable.contains(milliseconds) ? Timestamp(milliseconds: milliseconds) : nil
    }

    /// From the beginning of the year 0 to the end of 9999.
    private static let writable: ClosedRange<Int64> = -62_167_219_200_000...253_402_300_799_999

    /// The same, or a day, which stands for its beginning in UTC.
    public init?(rfc3339OrDay text: String) {
        guard let instant = Timestamp(rfc3339: text) ?? Timestamp(rfc3339: "\(text)T00:00:00Z") else { return nil }
        self = instant
    }

    /// `2026-11-21T10:24:04.123Z`.
    public var rfc3339: String {
        let (days, rest) = Self.floorDivide(milliseconds, 86_400_000)
        let (year, month, day) = Self.civil(days)
        var text: [UInt8] = []
        text.reserveCapacity(24)
        func append(_ value: Int64, digits: Int, then end: Unicode.Scalar) {
            var divisor: Int64 = 1
            for _ in 1..<digits { divisor *= 10 }
            while divisor > 0 {
                text.append(UInt8(ascii: "0") + UInt8(value / divisor % 10))
                divisor /= 10
            }
            text.append(UInt8(ascii: end))
        }
        if (0...9999).contains(year) {
            append(year, digits: 4, then: "-")
        } else {
            text.append(contentsOf: "\(year)-".utf8)
        }
        append(month, digits: 2, then: "-")
        append(day, digits: 2, then: "T")
        append(rest / 3_600_000, digits: 2, then: ":")
        append(rest / 60_000 % 60, digits: 2, then: ":")
        append(rest / 1000 % 60, digits: 2, then: ".")
        append(rest % 1000, digits: 3, then: "Z")
        return String(decoding: text, as: UTF8.self)
    }

    // MARK: Calendar arithmetic (era of 400 years = 146,097 days, years counted from March)

    private static func floorDivide(_ value: Int64, _ divisor: Int64) -> (Int64, Int64) {
        let remainder = value % divisor
        return remainder < 0 ? (value / divisor - 1, remainder + divisor) : (value / divisor, remainder)
    }

    private static func days(in month: Int64, of year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    private static func daysSince1970(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let (era, yearOfEra) = floorDivide(shifted, 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    private static func civil(_ days: Int64) -> (Int64, Int64, Int64) {
        let (era, dayOfEra) = floorDivide(days + 719_468, 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }
}

/// RFC 3339 with milliseconds in messages.
extension Timestamp: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let time = Timestamp(rfc3339: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "expected an RFC 3339 time such as 2030-01-31T12:00:00Z")
        }
        self = time
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rfc3339)
    }
}

extension Timestamp: WireReadable {
    public init?(usual view: JSONView) {
        guard let text = view.stringValue else { return nil }
        self.init(rfc3339: text)
    }
}

extension Timestamp: WireWritable {
    public func write(to json: inout JSONOutput) { json.write(rfc3339) }
}

/// Durations as plain numbers, for what is told outside of this process. What is left over is cut off.
extension Duration {
    public var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) * 1e-18
    }

    public var inMilliseconds: Int64 { count(of: 1000) }
    public var inMicroseconds: Int64 { count(of: 1_000_000) }
    public var inNanoseconds: Int64 { count(of: 1_000_000_000) }

    /// Seconds with one digit behind the point.
    package var inTenths: Double { (inSeconds * 10).rounded() / 10 }

    /// `0.4 s`, `12 s`, `4 min 10 s` or `2 h 5 min`.
    package var inWords: String {
        let seconds = components.seconds
        if seconds < 10 { return "\(inTenths) s" }
        if seconds < 60 { return "\(seconds) s" }
        if seconds < 3600 { return "\(seconds / 60) min \(seconds % 60) s" }
        return "\(seconds / 3600) h \(seconds % 3600 / 60) min"
    }

    private func count(of perSecond: Int64) -> Int64 {
        let (seconds, attoseconds) = components
        return seconds * perSecond + attoseconds / (1_000_000_000_000_000_000 / perSecond)
    }
}
