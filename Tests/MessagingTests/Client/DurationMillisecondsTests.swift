// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Messaging

@Suite struct DurationMillisecondsTests {
    @Test(arguments: [
        (Duration.zero, Int32(0)), (.nanoseconds(1), 1), (.microseconds(1500), 2), (.milliseconds(250), 250),
        (.seconds(5), 5000), (.seconds(-3), 0), (.milliseconds(-1), 0), (.seconds(100_000_000), 2_000_000_000),
    ])
    func durationsAreRoundedUpAndClamped(duration: Duration, milliseconds: Int32) {
        #expect(duration.kafkaMilliseconds == milliseconds)
    }
}
