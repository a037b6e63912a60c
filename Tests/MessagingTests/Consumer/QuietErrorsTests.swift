// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Messaging

@Suite struct QuietErrorsTests {
    @Test func anErrorIsLoggedOncePerTopicAndMinute() {
        var errors = QuietErrors()
        let start = ContinuousClock.now
        func place(_ topic: String, _ partition: Int32) -> ConsumerErrors.Place {
            .partition(TopicPartition(topic: topic, partition: partition))
        }
        let answers = [
            errors.shouldLog(code: 3, at: .client, now: start),
            errors.shouldLog(code: 3, at: .client, now: start.advanced(by: .seconds(59))),
            errors.shouldLog(code: 3, at: place("t", 0), now: start),
            errors.shouldLog(code: 3, at: place("t", 1), now: start),
            errors.shouldLog(code: 3, at: place("u", 1), now: start),
            errors.shouldLog(code: 4, at: .client, now: start),
            errors.shouldLog(code: 3, at: .client, now: start.advanced(by: .seconds(61))),
        ]
        #expect(answers == [true, false, true, false, true, true, true])
    }
}
