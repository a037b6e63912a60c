// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Runtime

/// What a status says of the time since the one before.
@Suite struct StatusTallyTests {
    private let start = ContinuousClock.now

    @Test func itCountsAndBeginsAnew() {
        var tally = StatusTally(from: start)
        tally.add([["t", "succeeded", ""]: 3, ["t", "rejected", "A"]: 1], took: .milliseconds(4))
        tally.add([["u", "rejected", "A"]: 2, ["u", "rejected", "B"]: 1], took: .milliseconds(2))
        let first = tally.take(start + .seconds(10))
        #expect(first.seconds == 10 && first.commitMilliseconds == 3)
        #expect(first.outcomes == ["succeeded": 3, "rejected": 4] && first.reasons == ["A": 3, "B": 1])
        let second = tally.take(start + .seconds(15))
        #expect(second.seconds == 5 && second.outcomes.isEmpty && second.commitMilliseconds == nil)
    }
}
