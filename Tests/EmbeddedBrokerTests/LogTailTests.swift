// SPDX-License-Identifier: Apache-2.0

import TestKit
import Testing

@testable import EmbeddedBroker

@Suite struct LogTailTests {
    /// A batch of as many records, of 61 bytes and more.
    private static func batch(_ count: Int, size: Int = 61, mark: UInt8 = 0) -> [UInt8] {
        var frame = Frame()
        frame.int64(0)
        frame.int32(Int32(size - 12))
        frame.int32(-1)
        frame.int8(2)
        frame.bytes += Array(repeating: mark, count: 40)
        frame.int32(Int32(count))
        frame.bytes += Array(repeating: mark, count: size - 61)
        return frame.bytes
    }

    private static func records(_ count: Int, size: Int = 61, mark: UInt8 = 0) throws -> RecordBatch {
        try #require(RecordBatch(batch(count, size: size, mark: mark)[...]))
    }

    @Test func aBatchIsTakenForWhatItIs() throws {
        let bytes = Self.batch(3, size: 70)
        #expect(try Self.records(3, size: 70).count == 3)
        #expect(RecordBatch((bytes + bytes)[...]) == nil, "several")
        #expect(RecordBatch(bytes.dropLast()) == nil, "cut off")
        #expect(RecordBatch([]) == nil)
        var older = bytes
        older[16] = 1
        #expect(RecordBatch(older[...]) == nil)
        let later = try #require(RecordBatch(([9] + bytes).dropFirst()))
        #expect(later.bytes(at: 258) == [0, 0, 0, 0, 0, 0, 1, 2] + bytes.dropFirst(8))
    }

    @Test func whatStandsBeforeTheTailIsNotHere() throws {
        var tail = LogTail(at: 10)
        #expect(tail.batches(from: 10, atMost: 1000, isFirst: true) == [])
        #expect(tail.batches(from: 9, atMost: 1000, isFirst: true) == nil)
        #expect(tail.batches(from: 11, atMost: 1000, isFirst: true) == nil)
        tail.append(try Self.records(2, mark: 1), at: 10)
        tail.append(try Self.records(1, mark: 2), at: 12)
        #expect(tail.end == 13)
        #expect(tail.batches(from: 11, atMost: 1000, isFirst: true)?.map { $0[20] } == [1, 2], "the batch that has it")
        #expect(tail.batches(from: 12, atMost: 1000, isFirst: true)?.map { $0[20] } == [2])
        #expect(tail.batches(from: 13, atMost: 1000, isFirst: true) == [])
    }

    @Test func noMoreIsGivenThanWasAskedFor() throws {
        var tail = LogTail(at: 0)
        for _ in 0..<3 { tail.append(try Self.records(1, size: 100), at: tail.end) }
        #expect(tail.batches(from: 0, atMost: 250, isFirst: false)?.count == 2)
        #expect(tail.batches(from: 0, atMost: 99, isFirst: true)?.count == 1)
        #expect(tail.batches(from: 0, atMost: 99, isFirst: false)?.count == 0)
    }

    @Test func noMoreIsKeptThanTheLimit() throws {
        var tail = LogTail(at: 0)
        for _ in 0..<5 { tail.append(try Self.records(1, size: LogTail.limit / 2), at: tail.end) }
        #expect(tail.start == 3)
        tail.append(try Self.records(1, size: LogTail.limit * 2), at: 5)
        #expect(tail.start == 5)
        #expect(tail.batches(from: 5, atMost: 10, isFirst: true)?.count == 1)
    }

    /// Whatever order batches are told in, a reader is given what the log has, or sent to the broker.
    @Test func aReaderIsGivenWhatTheLogHas() throws {
        var answered = 0
        try runSequences(100) { seed in
            var draw = Draw(random: SplitMix64(seed: seed))
            // The log: the mark of the batch that each offset is in.
            var log: [(offset: Int64, count: Int, mark: UInt8)] = []
            var untold: [Int] = []
            var tail = LogTail(at: 0)
            for step in 0..<60 {
                if draw.chance(60) {
                    let offset = log.last.map { $0.offset + Int64($0.count) } ?? 0
                    log.append((offset, Int.random(in: 1...3, using: &draw.random), UInt8(step)))
                    untold.append(log.count - 1)
                }
                if !untold.isEmpty, draw.chance(70) {
                    let told = untold.remove(at: draw.chance(80) ? 0 : untold.count - 1)
                    let batch = log[told]
                    tail.append(try Self.records(batch.count, size: 9000, mark: batch.mark), at: batch.offset)
                }
                let end = log.last.map { $0.offset + Int64($0.count) } ?? 0
                let offset = Int64.random(in: 0...end, using: &draw.random)
                guard let given = tail.batches(from: offset, atMost: 30_000, isFirst: true) else { continue }
                answered += given.count
                let expected = log.filter { $0.offset + Int64($0.count) > offset }.map(\.mark)
                #expect(given.map { $0[20] } == Array(expected.prefix(given.count)), "TEST_SEED=\(seed)")
                #expect(given.count <= 3 && (given.count > 0 || offset == tail.end), "TEST_SEED=\(seed)")
            }
        }
        #expect(answered > 1000)
    }

    private struct Draw: RandomSource {
        var random: SplitMix64
    }
}

/// Produces and fetches of one partition, and what the relay makes of them.
@Suite struct LogTailsTests {
    private static let version: Int16 = 11

    private func fetch(from offset: Int64) -> KafkaRequest.Fetch {
        KafkaRequest.Fetch(
            topics: [("a", [.init(number: 0, offset: offset, maxBytes: 1000, place: 0..<0)])], wait: .zero,
            maxBytes: 1000, place: 0..<0)
    }

    private func told(end: Int64?) -> LogTails.Found {
        ["a": [0: KafkaResponse.Fetched(bytes: [1], end: end, hasRecords: false)]]
    }

    private var produce: KafkaRequest.Produce {
        KafkaRequest.Produce(topics: [("a", [.init(number: 0, records: [1])])], acknowledgements: -1)
    }

    private func isKnown(_ tails: LogTails, _ offset: Int64) -> Bool {
        !tails.read(fetch(from: offset), version: Self.version).found.isEmpty
    }

    @Test func anEndIsLearntFromTheBroker() {
        let tails = LogTails()
        let reading = tails.read(fetch(from: 5), version: Self.version)
        #expect(reading.found.isEmpty)
        tails.learn(told(end: nil), after: reading)
        #expect(!isKnown(tails, 5), "an error tells no end")
        tails.learn(told(end: 5), after: reading)
        #expect(isKnown(tails, 5))
        #expect(!isKnown(tails, 4))
        let found = tails.read(fetch(from: 5), version: Self.version).found["a"]?[0]
        #expect(found?.isEmpty == true && found?.end == 5)
    }

    @Test func anEndIsNotLearntWhenItMayHaveChanged() {
        let tails = LogTails()
        let reading = tails.read(fetch(from: 5), version: Self.version)
        tails.begin(produce)
        tails.learn(told(end: 5), after: reading)
        #expect(!isKnown(tails, 5))
    }

    /// The broker may have appended it, and its answer was lost.
    @Test func anEndIsForgottenWhenAnAnswerIsLost() {
        let tails = LogTails()
        tails.begin(produce)
        tails.learn(told(end: 5), after: tails.read(fetch(from: 5), version: Self.version))
        #expect(isKnown(tails, 5))
        tails.end(produce, at: nil)
        #expect(!isKnown(tails, 5))
    }

    @Test func recordsThatCannotBeReadAreLeftToTheBroker() {
        let tails = LogTails()
        tails.learn(told(end: 5), after: tails.read(fetch(from: 5), version: Self.version))
        tails.begin(produce)
        tails.end(produce, at: ["a": [:]])
        #expect(isKnown(tails, 5), "refused, so nothing has changed")
        tails.begin(produce)
        tails.end(produce, at: ["a": [0: 5]])
        #expect(!isKnown(tails, 5))
    }
}

/// Batches that the broker dates.
@Suite struct RecordDatesTests {
    /// Of RFC 3720, B.4.
    @Test func theSumIsCastagnolis() {
        #expect(CRC32C.of(Array("123456789".utf8)) == 0xE306_9283)
        #expect(CRC32C.of([UInt8](repeating: 0, count: 32)) == 0x8A91_36AA)
    }

    @Test func onlyWholeBatchesOfVersionTwoAreDated() throws {
        func batch(magic: UInt8 = 2) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: 70)
            bytes.replaceSubrange(8..<12, with: [0, 0, 0, 58])
            bytes[16] = magic
            return bytes
        }
        let two = [0xFF] + batch() + batch()
        let dated = try #require(RecordBatch.dated(two[1...], at: 0x0102_0304_0506_0708))
        #expect(dated.count == 140)
        for start in [0, 70] {
            #expect(dated[start + 22] == 8 && Array(dated[start + 35..<start + 43]) == [1, 2, 3, 4, 5, 6, 7, 8])
            let sum = dated[start + 17..<start + 21].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            #expect(sum == CRC32C.of(dated[start + 21..<start + 70]))
        }
        for odd in [batch(magic: 1), Array(batch().dropLast()), batch() + [0], [UInt8](repeating: 0, count: 61)] {
            #expect(RecordBatch.dated(odd[...], at: 1) == nil)
        }
    }
}
