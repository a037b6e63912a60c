// SPDX-License-Identifier: Apache-2.0

import Apps
import Runtime
import Testing

@testable import Gateway

@Suite struct TokenBucketsTests {
    private let start = ContinuousClock.now
    private let rate = GatewaySettings.Limits.Rate(perSecond: 10, burst: 5)

    @Test func aBurstAndThenTheRate() {
        let buckets = TokenBuckets<String>(capacity: 100)
        for _ in 0..<5 { #expect(buckets.take("a", rate, at: start) == nil) }
        #expect(buckets.take("a", rate, at: start) == 1)
        #expect(buckets.take("b", rate, at: start) == nil, "another one's")
        // Refusals cost nothing: after a tenth of a second there is one, and no more than the burst ever.
        #expect(buckets.take("a", rate, at: start + .milliseconds(100)) == nil)
        #expect(buckets.take("a", rate, at: start + .milliseconds(150)) == 1)
        let admitted = (0..<20).count { _ in buckets.take("a", rate, at: start + .seconds(60)) == nil }
        #expect(admitted == 5)
        #expect(buckets.take("a", rate, at: start) == 1, "a clock that goes back gives nothing")
    }

    @Test func lookingTakesNothing() {
        let buckets = TokenBuckets<String>(capacity: 100)
        for _ in 0..<50 { #expect(buckets.look("a", rate, at: start) == nil) }
        for _ in 0..<5 { #expect(buckets.take("a", rate, at: start) == nil) }
        #expect(buckets.look("a", rate, at: start) == 1)
        let slow = GatewaySettings.Limits.Rate(perSecond: 0.1, burst: 1)
        #expect(buckets.take("slow", slow, at: start) == nil)
        #expect(buckets.look("slow", slow, at: start) == 10)
    }

    /// Strangers without number cost no memory, and do not wash out who comes all the time.
    @Test func theMemoryIsBounded() {
        let buckets = TokenBuckets<Int>(capacity: 100)
        var admitted = 0
        for number in 1...10_000 {
            _ = buckets.take(number, rate, at: start)
            if number % 50 == 0, buckets.take(0, rate, at: start) == nil { admitted += 1 }
            #expect(buckets.count <= 201)
        }
        #expect(admitted == 5)
    }
}
