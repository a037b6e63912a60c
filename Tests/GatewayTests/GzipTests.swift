// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import Gateway

@Suite struct GzipTests {
    /// `printf '{"a":1}' | gzip -n`
    private let small: [UInt8] = [
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0xab, 0x56, 0x4a, 0x54, 0xb2, 0x32, 0xac, 0x05,
        0x00, 0xaf, 0xac, 0x1b, 0x56, 0x07, 0x00, 0x00, 0x00,
    ]

    @Test func reads() throws {
        #expect(try Gzip.decompress(small, limit: 7) == Array(#"{"a":1}"#.utf8))
    }

    @Test func theResultIsLimited() {
        #expect(throws: Gzip.Problem.tooLarge) { try Gzip.decompress(small, limit: 6) }
    }

    @Test func everyCutAndEveryFlippedBitIsNoticedOrHarmless() {
        for count in 0..<small.count {
            #expect(throws: Gzip.Problem.malformed) { try Gzip.decompress(Array(small[..<count]), limit: 100) }
        }
        #expect(throws: Gzip.Problem.malformed) { try Gzip.decompress(small + [0], limit: 100) }
        for bit in 0..<(small.count * 8) {
            var changed = small
            changed[bit / 8] ^= 1 << (bit % 8)
            // The header has bytes that mean nothing; anything else must not pass as another text.
            if let text = try? Gzip.decompress(changed, limit: 100) { #expect(text == Array(#"{"a":1}"#.utf8)) }
        }
    }
}
