// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Runtime

@Suite struct TickerTests {
    /// A late turn does not make the next ones come sooner.
    @Test func aTickerTicksOnceAnInterval() {
        let start = ContinuousClock.now
        var ticker = Ticker(every: .seconds(2), from: start)
        let ticks = [0, 1, 2, 3, 4, 9, 10, 11].filter { ticker.ticks(start + .seconds($0)) }
        #expect(ticks == [2, 4, 9, 11])
    }
}
