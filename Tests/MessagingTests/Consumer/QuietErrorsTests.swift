// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Messaging

@Suite struct QuietErrorsTests {
    @Test func anErrorIsLoggedOncePerPlaceAndPause() {
        var errors = QuietErrors()
        let start = ContinuousClock.now
        let place = ConsumerErrors.Place.partition(TopicPartition(topic: "t", partition: 0))
        let answers = [
            errors.shouldLog(code: 3, at: .client, now: start),
            errors.shouldLog(code: 3, at: .client, now: start.advanced(by: .seconds(9))),
            errors.shouldLog(code: 3, at: place, now: start),
            errors.shouldLog(code: 4, at: .client, now: start),
            errors.shouldLog(code: 3, at: .client, now: start.advanced(by: .seconds(11))),
        ]
        #expect(answers == [true, false, true, true, true])
    }
}
