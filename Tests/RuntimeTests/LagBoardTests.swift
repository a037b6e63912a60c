// SPDX-License-Identifier: Apache-2.0

import Contracts
import Observability
import Testing

@testable import Runtime

@Suite struct LagBoardTests {
    private let place = TopicPartition(topic: "t", partition: 0)

    private func at(_ next: Int64, lastTime: Int64? = nil, heldTime: Int64? = nil) -> [TopicPartition: LagBoard.Place] {
        [place: .init(group: "g", epoch: 4, next: next, lastTime: lastTime, heldTime: heldTime)]
    }

    private func measure(_ board: LagBoard, end: Int64, at second: Int64, log: [Int64: Int64] = [:]) -> HealthWatch
        .Backlog?
    {
        board.measure(ends: [place: end], now: Timestamp(milliseconds: second * 1000)) { offsets in
            offsets.compactMapValues { log[$0] }
        }
        return board.backlog
    }

    @Test func lagIsTheEndMinusWhatTheStoreHas() {
        let board = LagBoard()
        #expect(board.backlog == nil)
        board.tell(at(10))
        #expect(measure(board, end: 10, at: 100) == .init(count: 0, oldest: 0))
        #expect(measure(board, end: 40, at: 102, log: [10: 99_000]) == .init(count: 30, oldest: 3))
        // The log was replaced by a shorter one.
        #expect(measure(board, end: 4, at: 104) == .init(count: 0, oldest: 0))
    }

    /// The log is asked once about what stands still, and not at all where it is known otherwise.
    @Test func theAgeIsThatOfTheOldestRecord() {
        let board = LagBoard()
        board.tell(at(10, heldTime: 95_000))
        #expect(measure(board, end: 12, at: 100)?.oldest == 5)
        board.tell(at(11, lastTime: 96_000))
        #expect(measure(board, end: 12, at: 102)?.oldest == 6, "read on: no older than the one before")
        #expect(measure(board, end: 12, at: 110)?.oldest == 14)
        board.tell(at(12))
        #expect(measure(board, end: 12, at: 111)?.oldest == 0)
        #expect(measure(board, end: 13, at: 112)?.oldest == 0, "nobody says when")
        #expect(measure(board, end: 13, at: 114)?.oldest == 2)
        #expect(measure(board, end: 13, at: 116, log: [12: 110_500])?.oldest == 5.5)
        #expect(measure(board, end: 13, at: 118)?.oldest == 7.5)
    }

    /// What was taken away and claimed by nobody still waits.
    @Test func aPartitionIsReportedUntilAnotherReplicaHasIt() {
        let board = LagBoard()
        board.tell(at(10))
        board.tell([:])
        #expect(board.orphans == [place: 4])
        #expect(measure(board, end: 15, at: 1)?.count == 5)
        board.forget([place])
        #expect(board.orphans.isEmpty && board.wanted.isEmpty)
    }
}
