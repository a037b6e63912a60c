// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestKit
import Testing

@testable import Contracts

@Suite struct TimestampTests {
    struct Reading: Sendable, CustomTestStringConvertible {
        var text: String
        var milliseconds: Int64?
        var testDescription: String { text }
        init(_ text: String, _ milliseconds: Int64?) {
            self.text = text
            self.milliseconds = milliseconds
        }
    }

    static let readings = [
        Reading("1970-01-01T00:00:00Z", 0), Reading("1970-01-01T00:00:00.001Z", 1),
        Reading("1969-12-31T23:59:59.999Z", -1), Reading("1970-01-01t00:00:00z", 0),
        Reading("2026-11-21T10:24:04.123Z", 1_795_256_644_123), Reading("2000-02-29T00:00:00Z", 951_782_400_000),
        Reading("2024-02-29T12:00:00Z", 1_709_208_000_000), Reading("1900-03-01T00:00:00Z", -2_203_891_200_000),
        Reading("0000-01-01T00:00:00Z", -62_167_219_200_000), Reading("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        // Offsets
        Reading("1970-01-01T01:00:00+01:00", 0), Reading("1969-12-31T23:30:00-00:30", 0),
        Reading("1970-01-01T00:00:00+00:00", 0), Reading("1970-01-01T00:00:00-00:00", 0),
        Reading("1970-01-01T23:59:00+23:59", 0), Reading("1970-01-01T00:00:00.5-23:59", 86_340_500),
        // Fractions are cut to milliseconds
        Reading("1970-01-01T00:00:00.1Z", 100), Reading("1970-01-01T00:00:00.12Z", 120),
        Reading("1970-01-01T00:00:00.1239Z", 123), Reading("1970-01-01T00:00:00.999999999Z", 999),
        Reading("1969-12-31T23:59:59.9999Z", -1), Reading("1970-01-01T00:00:00.0000000000000000000Z", 0),
        // A leap second
        Reading("2016-12-31T23:59:60Z", 1_483_228_800_000),
        // Years that cannot be written
        Reading("0000-01-01T00:00:00+00:01", nil), Reading("9999-12-31T23:59:59-00:01", nil),
        Reading("9999-12-31T23:59:60Z", nil),
        // Dates that do not exist
        Reading("2023-02-29T00:00:00Z", nil), Reading("1900-02-29T00:00:00Z", nil),
        Reading("2100-02-29T00:00:00Z", nil),
        Reading("2024-02-30T00:00:00Z", nil), Reading("2024-04-31T00:00:00Z", nil),
        Reading("2024-13-01T00:00:00Z", nil),
        Reading("2024-00-01T00:00:00Z", nil), Reading("2024-01-00T00:00:00Z", nil),
        Reading("2024-01-32T00:00:00Z", nil),
        Reading("2024-01-01T24:00:00Z", nil), Reading("2024-01-01T00:60:00Z", nil),
        Reading("2024-01-01T00:00:61Z", nil),
        Reading("2024-01-01T00:00:00+24:00", nil), Reading("2024-01-01T00:00:00+00:60", nil),
        // Other forms
        Reading("", nil), Reading("2024-01-01", nil), Reading("2024-01-01T00:00:00", nil), Reading("now", nil),
        Reading("2024-01-01 00:00:00Z", nil), Reading("2024-01-01T00:00Z", nil), Reading("2024-01-01T00:00:00.Z", nil),
        Reading("2024-01-01T00:00:00,5Z", nil), Reading("2024-01-01T00:00:00+0100", nil),
        Reading("2024-01-01T00:00:00+01", nil), Reading("2024-01-01T00:00:00ZZ", nil),
        Reading("2024-01-01T00:00:00Z ", nil), Reading(" 2024-01-01T00:00:00Z", nil),
        Reading("+024-01-01T00:00:00Z", nil), Reading("-024-01-01T00:00:00Z", nil),
        Reading("2024-1-01T00:00:00.0Z", nil), Reading("2024/01/01T00:00:00Z", nil),
        Reading("20240101T000000Z....", nil), Reading("2024-01-01T00:00:0\u{0663}Z", nil),
        Reading("2024-01-01T00:00:00.123", nil), Reading("2024-01-01T00:00:00+01:0", nil),
        Reading("2024-01-01T00:00:00+01:00Z", nil), Reading("10000-01-01T00:00:00Z", nil),
        Reading("2024-01-01T00:00:00." + String(repeating: "0", count: 1000) + "Z", nil),
    ]

    @Test(arguments: readings) func reads(_ reading: Reading) {
        #expect(Timestamp(rfc3339: reading.text)?.milliseconds == reading.milliseconds)
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (1_795_256_644_123, "2026-11-21T10:24:04.123Z"),
            (-1, "1969-12-31T23:59:59.999Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] as [(Int64, String)]) func writes(_ milliseconds: Int64, _ text: String)
    {
        #expect(Timestamp(milliseconds: milliseconds).rfc3339 == text)
    }

    /// A dead letter's time may come from anywhere: no number may crash its writer.
    @Test func writesAnyNumberWithoutCrashing() {
        for edge in [Int64.min, .max, 0, -62_167_219_200_000, 253_402_300_799_999] {
            for step in Int64(-2000)...2000 {
                let (value, overflow) = edge.addingReportingOverflow(step)
                if !overflow { #expect(Timestamp(milliseconds: value).rfc3339.hasSuffix("Z")) }
            }
        }
        var random = SplitMix64(seed: testSeed)
        for _ in 0..<20_000 {
            #expect(Timestamp(milliseconds: Int64(bitPattern: random.next())).rfc3339.hasSuffix("Z"))
        }
    }

    @Test func readsBackWhatItWrites() {
        var random = SplitMix64(seed: testSeed)
        for _ in 0..<20_000 {
            let written = Timestamp(
                milliseconds: .random(in: -62_167_219_200_000...253_402_300_799_999, using: &random))
            #expect(Timestamp(rfc3339: written.rfc3339) == written, "\(written.milliseconds)")
        }
    }

    /// Against Foundation's Gregorian calendar, from 1600 on (before, Foundation's own calendar is another one).
    @Test func agreesWithFoundation() throws {
        var random = SplitMix64(seed: testSeed)
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        for _ in 0..<3000 {
            let milliseconds = Int64.random(in: -11_676_096_000_000...253_402_300_799_000, using: &random)
            let date = Date(timeIntervalSince1970: Double(milliseconds / 1000))
            let whole = Timestamp(milliseconds: milliseconds / 1000 * 1000)
            #expect(whole.rfc3339 == style.format(date), "\(milliseconds)")
            let offset = Int.random(in: -1079...1079, using: &random)
            let zone = try #require(TimeZone(secondsFromGMT: offset * 60))
            let local = Date.ISO8601FormatStyle(timeZoneSeparator: .colon, timeZone: zone).format(date)
            try #require(Timestamp(rfc3339: local) == whole, "\(local)")
        }
    }

    /// Whatever is not a date must be `nil`, never a crash.
    @Test func survivesGarbage() {
        var random = SplitMix64(seed: testSeed)
        let good = Array("2024-02-29T23:59:59.123+01:30".utf8)
        for _ in 0..<50_000 {
            var bytes = good.prefix(Int.random(in: 0...good.count, using: &random)) + []
            for _ in 0..<Int.random(in: 0...3, using: &random) where !bytes.isEmpty {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...127, using: &random)
            }
            _ = Timestamp(rfc3339: String(decoding: bytes, as: UTF8.self))
        }
    }

    @Test func comparesByTime() {
        #expect(Timestamp(milliseconds: 1) < Timestamp(milliseconds: 2))
        #expect(!(Timestamp(milliseconds: 2) < Timestamp(milliseconds: 2)))
    }
}
