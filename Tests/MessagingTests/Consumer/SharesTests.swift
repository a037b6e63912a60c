// SPDX-License-Identifier: Apache-2.0

import Messaging
import Testing

@Suite struct SharesTests {
    /// What is taken of sources that have so much.
    private func deal(_ room: Int, _ available: [Int], first: Int = 0) -> (taken: [Int], order: [Int]) {
        var taken = available.map { _ in 0 }
        var order: [Int] = []
        Shares.deal(room, among: available.count, first: first) { source, share in
            let count = min(share, available[source] - taken[source])
            taken[source] += count
            order.append(source)
            return count
        }
        return (taken, order)
    }

    @Test(arguments: [
        // Whoever has little gets it, and the others what is left.
        (1000, [100_000, 3, 0, 5], [992, 3, 0, 5]),
        (9, [100, 100, 100], [3, 3, 3]),
        // The odd ones go to the first.
        (8, [100, 100, 100], [3, 3, 2]),
        (2, [100, 100, 100], [1, 1, 0]),
        (10, [1, 2, 3], [1, 2, 3]),
        (0, [1], [0]),
        (5, [], []),
    ])
    func eachHasAnEqualShare(room: Int, available: [Int], taken: [Int]) {
        #expect(deal(room, available).taken == taken)
    }

    @Test func oneAfterTheOtherComesFirst() {
        #expect(deal(1, [9, 9, 9], first: 2).taken == [0, 0, 1])
        #expect(deal(3, [9, 9, 9], first: 1).order == [1, 2, 0])
    }

    /// Every way to share out little.
    @Test(arguments: 0..<4) func nobodyWaitsForMoreThanItsShare(_ first: Int) {
        for number in 0..<625 {
            let available = [number % 5, number / 5 % 5, number / 25 % 5, number / 125]
            for room in 0...18 {
                let taken = deal(room, available, first: first).taken
                let isFull = taken.reduce(0, +) == min(room, available.reduce(0, +))
                let isFair = zip(taken, available).allSatisfy { count, available in
                    count == available || taken.allSatisfy { $0 <= count + 1 }
                }
                #expect(isFull && isFair, "\(room) among \(available): \(taken)")
            }
        }
    }

    // MARK: Runs

    @Test(arguments: [
        // Whoever has little gets all of it, and one backlog the rest.
        (1000, [100_000, 3, 0, 5], 0, [992, 3, 0, 5]),
        (100, [900, 900, 4, 900], 1, [0, 96, 4, 0]),
        (100, [900, 40, 4, 900], 2, [0, 0, 4, 96]),
        // What a backlog leaves is the next one's.
        (100, [60, 60, 60], 2, [40, 0, 60]),
        (2, [100, 100, 100], 1, [0, 2, 0]),
        (2, [1, 1, 1], 1, [0, 1, 1]),
        (10, [1, 2, 3], 0, [1, 2, 3]),
        (0, [1], 0, [0]),
        (5, [], 0, []),
    ])
    func oneBacklogAtATime(room: Int, waiting: [Int], first: Int, given: [Int]) {
        let runs = Shares.runs(room, waiting: waiting, first: first)
        #expect(waiting.indices.map { source in runs.first { $0.source == source }?.count ?? 0 } == given)
    }

    /// Every way to have little, for as many batches as there are sources: the room is used, and each had its turn.
    @Test(arguments: 0..<4) func nobodyIsPassedOver(_ start: Int) {
        for number in 0..<625 {
            let waiting = [number % 5, number / 5 % 5, number / 25 % 5, number / 125]
            for room in 1...18 {
                var first = start
                var heard = Set<Int>()
                for _ in waiting.indices {
                    let runs = Shares.runs(room, waiting: waiting, first: first)
                    let given = runs.map(\.count).reduce(0, +)
                    #expect(given == min(room, waiting.reduce(0, +)), "\(room) among \(waiting): \(runs)")
                    #expect(runs.allSatisfy { (1...waiting[$0.source]).contains($0.count) })
                    heard.formUnion(runs.map(\.source))
                    if let last = runs.last { first = (last.source + 1) % waiting.count }
                }
                #expect(heard == Set(waiting.indices.filter { waiting[$0] > 0 }), "\(room) among \(waiting)")
            }
        }
    }
}
