// SPDX-License-Identifier: Apache-2.0

import TestKit
import Testing

@testable import Contracts

/// Base64 without padding: bytes have one text (RFC 4648, 3.5).
@Suite struct Base64Tests {
    private static let common = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    private static let digits: [(Base64.Alphabet, [UInt8])] = [
        (.standard, Array("\(common)+/".utf8)), (.url, Array("\(common)-_".utf8)),
    ]

    private func text(_ bytes: [UInt8], _ alphabet: Base64.Alphabet) -> [UInt8] {
        var text: [UInt8] = []
        bytes.withUnsafeBytes { Base64.append($0, to: &text, alphabet) }
        return text.filter { $0 != UInt8(ascii: "=") }
    }

    /// Of all that two digits may be, and of three with any last two, what is read is what is written for these bytes.
    @Test func whatIsReadIsWhatIsWritten() {
        for (alphabet, digits) in Self.digits {
            let pairs = digits.flatMap { one in digits.map { [one, $0] } }
            let one = pairs.filter { Base64.bytes($0, alphabet) != nil }
            #expect(one == (0...255).map { text([$0], alphabet) })
            let two = pairs.map { [digits[37]] + $0 }.filter { Base64.bytes($0, alphabet) != nil }
            #expect(two.count == 64 * 16)
            for digits in two { #expect(Base64.bytes(digits, alphabet).map { text($0, alphabet) } == digits) }
        }
    }

    @Test func everythingComesBack() {
        var random = SplitMix64(seed: fuzzSeed)
        for count in 0..<100 {
            let bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            for alphabet in [Base64.Alphabet.standard, .url] {
                let text = text(bytes, alphabet)
                #expect(Base64.bytes(text, alphabet) == bytes)
                #expect(Base64.bytes(text, .either) == bytes)
                // Padding, and a digit that is too many or too few.
                #expect(Base64.bytes(text + Array("=".utf8), alphabet) == nil)
                if count % 3 == 0 { #expect(Base64.bytes(text + Array("A".utf8), alphabet) == nil) }
                if count % 3 == 1 { #expect(Base64.bytes(text.dropLast(), alphabet) == nil) }
            }
        }
    }

    @Test func eachAlphabetIsReadByItselfOnly() {
        #expect(Base64.bytes(Array("-_-_".utf8), .url) == [0xFB, 0xFF, 0xBF])
        #expect(Base64.bytes(Array("+/+/".utf8), .standard) == [0xFB, 0xFF, 0xBF])
        for byte in UInt8.min...UInt8.max {
            for (alphabet, digits) in Self.digits {
                #expect((Base64.bytes([65, 65, 65, byte], alphabet) != nil) == digits.contains(byte))
            }
            let isEither = Self.digits.contains { $0.1.contains(byte) }
            #expect((Base64.bytes([65, 65, 65, byte], .either) != nil) == isEither)
        }
    }
}
