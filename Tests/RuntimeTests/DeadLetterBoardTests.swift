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
            let found = board.measure(all, now: Timestamp(milliseconds: second * 1000)) { offsets in
                asked.append(offsets)
                return offsets.compactMapValues { log[$0] }
            }
            return [Double(found.count), found.oldest]
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
}
