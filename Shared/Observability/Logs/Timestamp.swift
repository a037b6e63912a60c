// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A moment of wall-clock time with millisecond precision, in UTC.
struct Timestamp: Sendable, Equatable {
    /// Whole seconds since 1970-01-01T00:00:00Z.
    let seconds: Int
    let milliseconds: Int

    static func now() -> Timestamp {
        var time = timeval()
        gettimeofday(&time, nil)
        return Timestamp(seconds: time.tv_sec, milliseconds: Int(time.tv_usec) / 1_000)
    }

    /// Appends `2026-01-02T03:04:05.678Z`.
    func appendRFC3339(to line: inout [UInt8]) {
        let parts = civil()
        Self.append(Int(parts.tm_year) + 1_900, width: 4, to: &line)
        line.append(UInt8(ascii: "-"))
        Self.append(Int(parts.tm_mon) + 1, width: 2, to: &line)
        line.append(UInt8(ascii: "-"))
        Self.append(Int(parts.tm_mday), width: 2, to: &line)
        line.append(UInt8(ascii: "T"))
        appendTimeOfDay(parts, to: &line)
        line.append(UInt8(ascii: "Z"))
    }

    /// Appends `03:04:05.678`.
    func appendTimeOfDay(to line: inout [UInt8]) {
        appendTimeOfDay(civil(), to: &line)
    }

    private func appendTimeOfDay(_ parts: tm, to line: inout [UInt8]) {
        Self.append(Int(parts.tm_hour), width: 2, to: &line)
        line.append(UInt8(ascii: ":"))
        Self.append(Int(parts.tm_min), width: 2, to: &line)
        line.append(UInt8(ascii: ":"))
        Self.append(Int(parts.tm_sec), width: 2, to: &line)
        line.append(UInt8(ascii: "."))
        Self.append(milliseconds, width: 3, to: &line)
    }

    private func civil() -> tm {
        var time = seconds
        var parts = tm()
        gmtime_r(&time, &parts)
        return parts
    }

    private static func append(_ number: Int, width: Int, to line: inout [UInt8]) {
        let digits = String(number)
        line += repeatElement(UInt8(ascii: "0"), count: max(0, width - digits.utf8.count))
        line += digits.utf8
    }
}
