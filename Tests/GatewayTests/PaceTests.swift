// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Gateway

/// A group of requests that ask and are answered, a tenth of a second at a time, with a reply time-out of 8 s.
@Suite struct PaceTests {
    private static let start = ContinuousClock.now
    private static let crowd = 250

    /// What became of a group: how many waited, how long the last one that was answered had waited, how many were refused.
    private struct Group {
        var pace = Pace(timeout: .seconds(8), crowd: crowd, now: start)
        var tick = 0
        /// When those who wait came.
        var waiting: [Int] = []
        /// How many more wait for what nobody answers.
        var stalled = 0
        var longest = 0.0
        var refused = 0
        var now: ContinuousClock.Instant { start + .milliseconds(100 * tick) }

        /// - Parameters:
        ///   - asked: requests in each second.
        ///   - answered: how many in each second could be answered.
        mutating func run(seconds: Double, asked: Int, answered: Int) {
            for _ in 0..<Int(seconds * 10) {
                tick += 1
                for _ in 0..<(asked / 10) {
                    let isRefused = pace.isTooSlow(for: waiting.count + stalled, at: now)
                    if isRefused { refused += 1 } else { waiting.append(tick) }
                }
                for _ in 0..<min(answered / 10, waiting.count) {
                    longest = max(longest, Double(tick - waiting.removeFirst()) / 10)
                    pace.answered(at: now)
                }
            }
        }
    }

    @Test func whoIsAnsweredInTimeIsNeverRefused() {
        var group = Group()
        group.run(seconds: 60, asked: 5000, answered: 5000)
        #expect(group.refused == 0)
    }

    /// As at a start, and after a quiet night.
    @Test func aBurstIsLetIn() {
        var group = Group()
        group.run(seconds: 3600, asked: 0, answered: 100)
        group.run(seconds: 0.1, asked: 8000, answered: 1000)
        group.run(seconds: 1, asked: 0, answered: 1000)
        #expect(group.refused == 0)
    }

    /// As where a group of consumers comes together anew.
    @Test func aPauseOfTwoSecondsIsWaitedFor() {
        var group = Group()
        group.run(seconds: 20, asked: 200, answered: 400)
        group.run(seconds: 2, asked: 200, answered: 0)
        group.run(seconds: 20, asked: 200, answered: 400)
        #expect(group.refused == 0 && group.longest < 4)
    }

    /// More is asked than is answered: some are refused, and none of the others waits for too long, with a pause too.
    @Test(arguments: [0, 2]) func whoWouldBeAnsweredLateIsRefused(_ pause: Double) {
        var group = Group()
        group.run(seconds: 60, asked: 500, answered: 200)
        group.run(seconds: pause, asked: 500, answered: 0)
        group.run(seconds: 60, asked: 500, answered: 200)
        #expect(group.longest < 8, "nobody's time is over")
        #expect(group.longest > 2, "no more are refused than have to be")
        #expect((300 * 110...300 * 130).contains(group.refused))
    }

    /// One partition of many: what it stops is a few, and the others are answered.
    @Test func aStalledPartHoldsUpNobodyElse() {
        var group = Group()
        group.run(seconds: 20, asked: 600, answered: 600)
        group.stalled = 400
        group.run(seconds: 60, asked: 600, answered: 600)
        #expect(group.refused == 0)
    }

    /// Nothing is answered any more: a crowd waits, and whoever comes later is told at once; when all is well again, all are
    /// let in.
    @Test func whoComesToAStalledServiceIsRefusedUntilItIsWell() {
        var group = Group()
        group.run(seconds: 10, asked: 200, answered: 0)
        #expect(group.waiting.count < 1000 && group.refused > 1000)
        group.run(seconds: 30, asked: 200, answered: 400)
        group.refused = 0
        group.run(seconds: 60, asked: 200, answered: 400)
        #expect(group.refused == 0)
    }
}
