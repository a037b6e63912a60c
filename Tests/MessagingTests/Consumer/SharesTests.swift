// SPDX-License-Identifier: Apache-2.0

import Messaging
import Testing

@Suite struct SharesTests {
    /// What is taken of sources that have so much.
    private func deal(_ room: Int, _ available: [Int], first: Int = 0) -> (taken: [Int], order: [Int]) {
        var taken = available.map { _ in 0 }
        var order: [Int] = []
        Shares.deal(room, among: available.count, first: first) { source, share, _ in
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
}
