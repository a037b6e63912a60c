// SPDX-License-Identifier: Apache-2.0

import Contracts
import TestKit
import Testing

@testable import Storage

/// How a value stands in a column as bytes.
@Suite struct StoredTests {
    private static func bytes(_ value: some Stored) -> [UInt8] {
        var bytes = StoredWriter()
        value.store(in: &bytes)
        return bytes.bytes
    }

    /// - Throws: for bytes that are none of such a value, also when some are left over.
    private static func read<Value: Stored>(_ bytes: [UInt8], as type: Value.Type) throws -> Value {
        var reader = try StoredReader(bytes)
        let value = try Value(stored: &reader)
        guard reader.isAtEnd else { throw StoredReader.damaged }
        return value
    }

    private static let certificate = ErasureCertificate(
        requestId: "r", erasedAt: Timestamp(milliseconds: 1), completedAt: nil,
        subject: .init(userIds: ["u", "v"], mpids: [.max]),
        done: .init(link: .init(persons: 1, installs: 300), sync: .init(profiles: 2)), heldByOthers: -1,
        remains: [.init(place: .deadLetters, until: nil)])

    @Test(arguments: [
        (0, [0]), (-1, [1]), (1, [2]), (63, [126]), (-64, [127]), (64, [128, 1]), (300, [216, 4]),
        (.max, [254, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
        (.min, [255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
    ] as [(Int64, [UInt8])]) func aNumberTakesSevenBitsAByte(_ number: Int64, _ bytes: [UInt8]) throws {
        #expect(Self.bytes(number) == [1] + bytes)
        #expect(try Self.read([1] + bytes, as: Int64.self) == number)
    }

    @Test func whatIsThereStandsBehindItsCount() {
        #expect(Self.bytes("\u{e9}") == [1, 2, 0xc3, 0xa9])
        #expect(Self.bytes(["a", ""]) == [1, 2, 1, 0x61, 0])
        #expect(Self.bytes("a" as String?) == [1, 1, 1, 0x61])
        #expect(Self.bytes(nil as String?) == [1, 0])
        #expect(Self.bytes(["b": true, "a": false]) == [1, 2, 1, 0x61, 0, 1, 0x62, 1])
        #expect(Self.bytes(IdentityType.email) == [1, 5] + Array("email".utf8))
        #expect(Self.bytes(Identity(.email, "a")) == [1, 2, 5] + Array("email".utf8) + [1, 0x61])
    }

    @Test func everythingComesBack() throws {
        #expect(try Self.read(Self.bytes(Self.certificate), as: ErasureCertificate.self) == Self.certificate)
        let texts = ["": ["", "\u{0}", "\u{1f600}"], "x": []]
        #expect(try Self.read(Self.bytes(texts), as: [String: [String]].self) == texts)
    }

    /// Members that came later are missing, and have their defaults.
    @Test func aRowOfBeforeIsRead() throws {
        var before = Self.bytes(Self.certificate)
        #expect(before[1] == 7)
        before[1] = 5
        // 1 byte of `heldByOthers`; of `remains` its count, the count of members, a word and nothing.
        before.removeLast(1 + 1 + 1 + 1 + ErasureCertificate.Remainder.Place.deadLetters.rawValue.utf8.count + 1)
        var expected = Self.certificate
        (expected.heldByOthers, expected.remains) = (0, [])
        #expect(try Self.read(before, as: ErasureCertificate.self) == expected)
        before[1] = 4
        #expect(throws: StorageError.self) { try Self.read(before, as: ErasureCertificate.self) }
        before[1] = 8
        #expect(throws: StorageError.self) { try Self.read(before, as: ErasureCertificate.self) }
    }

    @Test func anotherWayOfWritingIsNotRead() {
        #expect(throws: StorageError.self) { try Self.read([], as: Bool.self) }
        #expect(throws: StorageError.self) { try Self.read([2, 0], as: Bool.self) }
    }

    @Test(arguments: [
        [0x80], Array(repeating: 0x80, count: 9) + [2], Array(repeating: 0xff, count: 10) + [1],
    ] as [[UInt8]]) func aNumberThatDoesNotEndIsNone(_ bytes: [UInt8]) {
        #expect(throws: StorageError.self) { try Self.read([1] + bytes, as: Int64.self) }
    }

    /// Nothing is taken for a count that cannot be there.
    @Test func aCountBeyondTheEndIsNone() {
        let most: [UInt8] = [1] + Array(repeating: 0xff, count: 9) + [1]
        #expect(throws: StorageError.self) { try Self.read(most, as: String.self) }
        #expect(throws: StorageError.self) { try Self.read(most, as: [Bool].self) }
        #expect(throws: StorageError.self) { try Self.read([1, 2, 0x61], as: String.self) }
        #expect(throws: StorageError.self) { try Self.read([1, 1, 0xff], as: String.self) }
        #expect(throws: StorageError.self) { try Self.read([1, 0], as: MPID.self) }
        #expect(throws: StorageError.self) { try Self.read([1, 2], as: Bool.self) }
        #expect(throws: StorageError.self) { try Self.read([1, 1, 0x61], as: IdentityType.self) }
    }

    /// Whatever happens to the bytes: they are read as something, or refused. A part of them is refused.
    @Test func damagedBytesNeverCrash() throws {
        let bytes = Self.bytes(Self.certificate)
        for end in 0..<bytes.count {
            #expect(throws: StorageError.self) { try Self.read(Array(bytes[..<end]), as: ErasureCertificate.self) }
        }
        for place in bytes.indices {
            for bit in 0..<8 {
                var damaged = bytes
                damaged[place] ^= 1 << bit
                do { _ = try Self.read(damaged, as: ErasureCertificate.self) } catch {
                    #expect((error as? StorageError)?.kind == .invalid)
                }
            }
        }
    }
}
