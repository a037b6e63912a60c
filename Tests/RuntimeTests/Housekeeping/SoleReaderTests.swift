// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Runtime

/// What becomes of a replica with a SQLite file, by what it has of the topics (docs/loop.md). A step is a second, a state of
/// the assignment, whether the store holds decisions, and what follows: `+` decides, `-` waits, `ends`.
@Suite struct SoleReaderTests {
    /// With a session timeout of ten seconds.
    @Test(arguments: [
        // Who has all from the beginning decides.
        "0 all empty +",
        // A newcomer that is given a part ends after three seconds, even if it is given the rest meanwhile: what was decided
        // stands in the other one's file.
        "0 part empty -, 3 part empty -, 3.1 part empty ends",
        "0 part empty -, 1 all empty -, 3.1 all empty ends",
        // Who has decided before may share with the process that it follows, until that one's session has ended.
        "0 part decided -, 20 part decided -, 20.1 part decided ends",
        "0 part decided -, 15 all decided +",
        // The store did not say at first.
        "0 part away -, 1 part away -, 2 part decided -, 15 all decided +",
        "0 part away -, 3.1 part empty ends",
        // Who had all waits longer than every newcomer, and goes on deciding.
        "0 all empty +, 1 part empty +, 41 part empty +, 41.1 part empty ends",
        "0 all empty +, 1 part empty +, 40 all empty +, 50 part empty +, 90 part empty +, 90.1 part empty ends",
    ])
    func aReaderIsAloneOrEnds(_ story: String) throws {
        struct Away: Error {}
        let start = ContinuousClock.now
        var reader = SoleReader(sessionTimeout: .seconds(10))
        for step in story.split(separator: ", ") {
            let words = step.split(separator: " ")
            let seconds = try #require(Double(words[0]))
            var ends = false
            do {
                ends = try reader.look(hasAll: words[1] == "all", now: start + .seconds(seconds)) {
                    if words[2] == "away" { throw Away() }
                    return words[2] == "decided"
                }
            } catch is Away {}
            #expect((ends ? "ends" : reader.mayDecide ? "+" : "-") == words[3], "\(step)")
        }
    }
}
