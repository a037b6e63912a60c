// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing
import WireJSON

@testable import Chaos

/// What a run of `identitybus chaos` sends.
@Suite struct ChaosStoriesTests {
    /// The last answer may have its story go on. Who asked the services then what they hold would be told of a link
    /// before it is made.
    @Test func aStoryThatGoesOnIsNotAtRest() throws {
        var stories = ChaosStories(seed: 1, keys: ChaosKeys(), topics: Topics())
        var seen = 0
        while seen < 20 {
            let command = try stories.next()
            guard command.next != nil else { continue }
            seen += 1
            #expect(stories.isAtRest)
            try stories.goOn(command, result: ["authenticationCode": "code"])
            #expect(!stories.isAtRest)
            #expect(stories.nextDue() != nil)
            #expect(stories.isAtRest)
        }
    }
}
