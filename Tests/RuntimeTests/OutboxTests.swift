// SPDX-License-Identifier: Apache-2.0

import Contracts
import TestKit
import Testing

@testable import Runtime

@Suite struct OutboxCodecTests {
    private static func message(_ random: inout SplitMix64) -> OutboxRecord {
        func bytes(_ most: Int) -> [UInt8] {
            (0..<Int.random(in: 0...most, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
        }
        func maybe(_ bytes: [UInt8]) -> [UInt8]? { Bool.random(using: &random) ? bytes : nil }
        let roles: [OutboxRecord.Role] = [.event, .reply, .deadLetter]
        let names = ["", "content-type", "h\u{e9}ader", "a\0b"]
        return OutboxRecord(
            roles.randomElement(using: &random) ?? .event,
            Record(
                topic: "t\(Int.random(in: 0...9, using: &random))", key: maybe(bytes(20)), value: maybe(bytes(100)),
                headers: (0..<Int.random(in: 0...4, using: &random)).map { _ in
                    Header(names.randomElement(using: &random) ?? "", maybe(bytes(10)))
                }))
    }

    @Test func everyMessageComesBack() throws {
        var random = SplitMix64(seed: testSeed)
        for _ in 0..<2000 {
            let messages = (0..<Int.random(in: 0...5, using: &random)).map { _ in Self.message(&random) }
            #expect(try OutboxCodec.decode(OutboxCodec.encode(messages)) == messages)
        }
    }

    /// Rows that stand in databases: the bytes never change.
    @Test func theBytesArePinned() {
        let message = OutboxRecord(.reply, Record(topic: "t", value: [7], headers: [Header("h", nil)]))
        #expect(
            OutboxCodec.encode([message]) == [
                1, 1, 0, 0, 0, 2, 1, 0, 0, 0, 0x74, 255, 255, 255, 255, 1, 0, 0, 0, 1, 0, 0, 0, 0x68, 255, 255, 255,
                255,
                1, 0, 0, 0, 7,
            ])
        #expect(OutboxCodec.encode([]) == [1, 0, 0, 0, 0])
        var outside = message
        outside.mayBeGivenUp = true
        #expect(OutboxCodec.encode([outside])[5] == 0x82)
    }

    /// Kafka does not demand that names of headers be UTF-8.
    @Test func headerNamesKeepTheirBytes() throws {
        let header = Header(nameBytes: [0x68, 0xFF, 0xC3], [1])
        let message = OutboxRecord(.deadLetter, Record(topic: "t", value: nil, headers: [header]))
        let back = try #require(try OutboxCodec.decode(OutboxCodec.encode([message])).first)
        #expect(back == message)
        #expect(back.headers[0].rawName == [0x68, 0xFF, 0xC3])
    }

    @Test func everyTruncationIsCorrupted() {
        var random = SplitMix64(seed: testSeed)
        let bytes = OutboxCodec.encode((0..<3).map { _ in Self.message(&random) })
        for count in bytes.indices {
            #expect(throws: OutboxCodec.Corrupted.self) { try OutboxCodec.decode(Array(bytes[..<count])) }
        }
        #expect(throws: OutboxCodec.Corrupted.self) { try OutboxCodec.decode(bytes + [0]) }
    }

    @Test func noBytesCrashTheReader() {
        var random = SplitMix64(seed: testSeed)
        for _ in 0..<20_000 {
            var bytes = OutboxCodec.encode([Self.message(&random)])
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            _ = try? OutboxCodec.decode(bytes)
        }
        // Counts and lengths that claim more than there is.
        for bytes: [UInt8] in [
            [1, 255, 255, 255, 127], [1, 255, 255, 255, 255], [1, 0, 0, 0, 128], [3, 0, 0, 0, 0],
            [1, 1, 0, 0, 0, 1, 255, 255, 255, 127], [1, 1, 0, 0, 0, 9], [1, 1, 0, 0, 0, 1, 254, 255, 255, 255],
        ] {
            #expect(throws: OutboxCodec.Corrupted.self) { try OutboxCodec.decode(bytes) }
        }
    }
}
