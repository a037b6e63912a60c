// SPDX-License-Identifier: Apache-2.0

import Apps
import TestKit
import Testing

struct NearestTests {
    @Test func theNearestWordIsFound() {
        let words = ["link.request", "link.query", "user.create"]
        #expect(nearest(to: "link.requst", in: words) == "link.request")
        #expect(nearest(to: "LINK.QUERY", in: words) == "link.query")
        #expect(nearest(to: "user.craete", in: words) == "user.create")
        #expect(nearest(to: "nosuch.thing", in: words) == nil && nearest(to: "", in: words) == nil)
        #expect(nearest(to: "link.request", in: []) == nil)
    }

    /// Three steps are too many for a word of eleven letters, and not for one of twelve.
    @Test func aWordThatIsTooFarHidesNoneThatIsNearEnough() {
        #expect(nearest(to: "abcdefghijkl", in: ["abcdefghixy", "abcdefghixyz"]) == "abcdefghixyz")
    }

    /// By the definition: the fewest letters that are put in, taken out, replaced, or exchanged with their neighbour.
    @Test func randomWordsAreAsNearAsTheirLettersSay() {
        runSequences(20) { seed in
            var typist = Typist(random: SplitMix64(seed: seed))
            for _ in 0..<15 {
                let meant = typist.word()
                let words = (0..<5).map { $0 < 2 ? typist.word() : typist.mistyped(meant) }
                let near = words.map { ($0, Steps(from: meant, to: $0).count) }
                    .filter { $0.1 <= max(1, min($0.0.count, meant.count) / 4) }
                let fewest = near.map(\.1).min()
                #expect(
                    nearest(to: meant, in: words) == near.first { $0.1 == fewest }?.0,
                    "TEST_SEED=\(seed): \(meant) in \(words)")
            }
        }
    }
}

private struct Typist: RandomSource {
    var random: SplitMix64

    mutating func word() -> String { String((0..<Int.random(in: 0...12, using: &random)).map { _ in letter() }) }

    mutating func mistyped(_ word: String) -> String {
        var letters = Array(word)
        for _ in 0..<Int.random(in: 0...4, using: &random) where !letters.isEmpty {
            let place = Int.random(in: letters.indices, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0: letters.remove(at: place)
            case 1: letters.insert(letter(), at: place)
            case 2: letters[place] = letter()
            default: letters.swapAt(place, max(0, place - 1))
            }
        }
        return String(letters)
    }

    private mutating func letter() -> Character { pick(["a", "b", "c"]) }
}

/// From the last letters to the first, each pair of places once.
private struct Steps {
    private let left: [Character]
    private let right: [Character]
    private var known: [[Int]: Int] = [:]

    init(from left: String, to right: String) { (self.left, self.right) = (Array(left), Array(right)) }

    var count: Int {
        var copy = self
        return copy.steps(left.count, right.count)
    }

    private mutating func steps(_ here: Int, _ there: Int) -> Int {
        if here == 0 || there == 0 { return here + there }
        if let steps = known[[here, there]] { return steps }
        var ways = [
            steps(here - 1, there) + 1, steps(here, there - 1) + 1,
            steps(here - 1, there - 1) + (left[here - 1] == right[there - 1] ? 0 : 1),
        ]
        if here > 1, there > 1, left[here - 2..<here].reversed() == Array(right[there - 2..<there]) {
            ways.append(steps(here - 2, there - 2) + 1)
        }
        known[[here, there]] = ways.min()
        return ways.min() ?? 0
    }
}
