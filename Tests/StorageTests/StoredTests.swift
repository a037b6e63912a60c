// SPDX-License-Identifier: Apache-2.0

import Contracts
import TestKit
import Testing

@testable import Storage

/// How a value stands in a column as bytes.
@Suite struct StoredTests {
    private static let certificate = ErasureCertificate(
        requestId: "r", erasedAt: Timestamp(milliseconds: 1), completedAt: nil,
        subject: .init(userIds: ["u", "v"], mpids: [.max]),
        done: .init(link: .init(persons: 1, installs: 300), sync: .init(profiles: 2)), heldByOthers: -1,
        remains: [.init(place: .deadLetters, until: nil)])

    @Test(
        arguments: [
            (0, [0]), (-1, [1]), (1, [2]), (63, [126]), (-64, [127]), (64, [128, 1]), (300, [216, 4]),
            (.max, [254, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
            (.min, [255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
        ] as [(Int64, [UInt8])]) func aNumberTakesSevenBitsAByte(_ number: Int64, _ bytes: [UInt8]) throws
    {
        #expect(number.storedBytes == [1] + bytes)
        #expect(try Int64(storedBytes: [1] + bytes) == number)
    }

    @Test func whatIsThereStandsBehindItsCount() {
        #expect("\u{e9}".storedBytes == [1, 2, 0xc3, 0xa9])
        #expect(["a", ""].storedBytes == [1, 2, 1, 0x61, 0])
        #expect(("a" as String?).storedBytes == [1, 1, 1, 0x61])
        #expect((nil as String?).storedBytes == [1, 0])
        #expect(["b": true, "a": false].storedBytes == [1, 2, 1, 0x61, 0, 1, 0x62, 1])
        #expect(IdentityType.email.storedBytes == [1, 5] + Array("email".utf8))
        #expect(Identity(.email, "a").storedBytes == [1, 2, 5] + Array("email".utf8) + [1, 0x61])
    }

    @Test func everythingComesBack() throws {
        #expect(try ErasureCertificate(storedBytes: Self.certificate.storedBytes) == Self.certificate)
        let texts = ["": ["", "\u{0}", "\u{1f600}"], "x": []]
        #expect(try [String: [String]](storedBytes: texts.storedBytes) == texts)
    }

    /// Members that came later are missing, and have their defaults.
    @Test func aRowOfBeforeIsRead() throws {
        var before = Self.certificate.storedBytes
        #expect(before[1] == 7)
        before[1] = 5
        // 1 byte of `heldByOthers`; of `remains` its count, the count of members, a word and nothing.
        before.removeLast(1 + 1 + 1 + 1 + ErasureCertificate.Remainder.Place.deadLetters.rawValue.utf8.count + 1)
        var expected = Self.certificate
        (expected.heldByOthers, expected.remains) = (0, [])
        #expect(try ErasureCertificate(storedBytes: before) == expected)
        before[1] = 4
        #expect(throws: StorageError.self) { try ErasureCertificate(storedBytes: before) }
        before[1] = 8
        #expect(throws: StorageError.self) { try ErasureCertificate(storedBytes: before) }
    }

    @Test func anotherWayOfWritingIsNotRead() {
        #expect(throws: StorageError.self) { try Bool(storedBytes: []) }
        #expect(throws: StorageError.self) { try Bool(storedBytes: [2, 0]) }
        #expect(throws: StorageError.self) { try Bool(storedBytes: [1, 0, 0]) }
    }

    @Test(
        arguments: [
            [0x80], Array(repeating: 0x80, count: 9) + [2], Array(repeating: 0xff, count: 10) + [1],
        ] as [[UInt8]]) func aNumberThatDoesNotEndIsNone(_ bytes: [UInt8])
    {
        #expect(throws: StorageError.self) { try Int64(storedBytes: [1] + bytes) }
    }

    /// Nothing is taken for a count that cannot be there.
    @Test func aCountBeyondTheEndIsNone() {
        let most: [UInt8] = [1] + Array(repeating: 0xff, count: 9) + [1]
        #expect(throws: StorageError.self) { try String(storedBytes: most) }
        #expect(throws: StorageError.self) { try [Bool](storedBytes: most) }
        #expect(throws: StorageError.self) { try String(storedBytes: [1, 2, 0x61]) }
        #expect(throws: StorageError.self) { try String(storedBytes: [1, 1, 0xff]) }
        #expect(throws: StorageError.self) { try MPID(storedBytes: [1, 0]) }
        #expect(throws: StorageError.self) { try Bool(storedBytes: [1, 2]) }
        #expect(throws: StorageError.self) { try IdentityType(storedBytes: [1, 1, 0x61]) }
    }

    /// Whatever happens to the bytes: they are read as something, or refused. A part of them is refused.
    @Test func damagedBytesNeverCrash() throws {
        let bytes = Self.certificate.storedBytes
        for end in 0..<bytes.count {
            #expect(throws: StorageError.self) { try ErasureCertificate(storedBytes: Array(bytes[..<end])) }
        }
        for place in bytes.indices {
            for bit in 0..<8 {
                var damaged = bytes
                damaged[place] ^= 1 << bit
                do { _ = try ErasureCertificate(storedBytes: damaged) } catch {
                    #expect(error.kind == .invalid)
                }
            }
        }
    }
}
