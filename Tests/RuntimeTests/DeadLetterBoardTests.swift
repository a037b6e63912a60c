// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Testing

@testable import Runtime

@Suite struct DeadLetterBoardTests {
    private let places = (0..<2).map { TopicPartition(topic: "dlq", partition: $0) }

    /// The log is asked once about the oldest record of each partition.
    @Test func theOldestIsLookedUpOnce() {
        var board = DeadLetterBoard(service: "link")
        var asked: [[TopicPartition: Int64]] = []
        func measure(_ bounds: [(Int64, Int64)], at second: Int64, _ log: [Int64: Int64] = [:]) -> [Double?] {
            let all = Dictionary(uniqueKeysWithValues: zip(places, bounds.map { (low: $0.0, high: $0.1) }))
            let found = board.measure(all, closed: [:], now: Timestamp(milliseconds: second * 1000)) { offsets in
                asked.append(offsets)
                return offsets.compactMapValues { log[$0] }
            }
            #expect(found.open == found.letters)
            return [Double(found.letters), found.age]
        }
        #expect(measure([(0, 0), (5, 5)], at: 10) == [0, 0])
        #expect(asked.isEmpty)
        #expect(measure([(0, 2), (5, 6)], at: 20, [0: 12_000, 5: 15_000]) == [3, 8])
        #expect(measure([(0, 9), (5, 6)], at: 30) == [10, 18])
        #expect(asked.count == 1)
        // Retention takes the first ones.
        #expect(measure([(9, 9), (5, 6)], at: 40) == [1, 25])
        #expect(measure([(9, 9), (5, 6)], at: 41) == [1, 26])
        #expect(asked.count == 1)
        // Nobody says when it was written: it is asked again.
        #expect(measure([(9, 10), (6, 6)], at: 50) == [1, nil])
        #expect(measure([(9, 10), (6, 6)], at: 51, [9: 45_000]) == [1, 6])
        #expect(asked.map(\.count) == [2, 1, 1])
    }

    /// What was sent again or dismissed is not open, and not the oldest.
    @Test func whatIsDoneIsNotOpen() {
        var board = DeadLetterBoard(service: "link")
        let bounds = Dictionary(
            uniqueKeysWithValues: zip(places, [(low: Int64(4), high: Int64(8)), (low: 0, high: 1)]))
        func measure(_ closed: [Int64], _ other: [Int64] = []) -> DeadLetterBoard.Count {
            let closed = [places[0]: Set(closed), places[1]: Set(other)]
            return board.measure(bounds, closed: closed, now: Timestamp(milliseconds: 100_000)) { offsets in
                offsets.mapValues { $0 * 1000 + 10_000 }
            }
        }
        #expect(measure([]) == .init(letters: 5, open: 5, age: 90))
        // Letters that retention has taken do not count.
        #expect(measure([1, 4, 6], [0]) == .init(letters: 5, open: 2, age: 85))
        #expect(measure([4, 5, 6, 7], [0]) == .init(letters: 5, open: 0, age: 0))
    }

    /// A topic that was made anew is read from its beginning.
    @Test func actionsAreReadInTheirOrder() throws {
        var actions = DeadLetterActions(letters: "dlq", actions: "actions")
        func take(_ act: LetterHandling.Act, _ offset: Int64, at position: Int64) throws {
            let handling = LetterHandling(
                act, LetterPlace(partition: 1, offset: offset, written: 5), id: "h", run: "r", by: "eva")
            let record = try handling.record(to: "actions", service: "link", key: nil, now: .now)
            actions.take(
                KafkaRecord(
                    topicPartition: TopicPartition(topic: "actions", partition: 0), offset: position, key: nil,
                    value: record.value, headers: record.headers))
        }
        try take(.claimed, 7, at: 0)
        #expect(actions.closed.isEmpty)
        try take(.sent, 7, at: 1)
        try take(.dismissed, 9, at: 2)
        #expect(actions.closed == [places[1]: [7, 9]])
    }
}
