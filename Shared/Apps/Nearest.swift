// SPDX-License-Identifier: Apache-2.0

/// The word that somebody may have meant: a letter more, less, another or two exchanged, a few times in a long word.
package func nearest(to word: String, in words: [String]) -> String? {
    let meant = Array(word.lowercased().unicodeScalars)
    var found: (word: String, steps: Int)?
    for candidate in words {
        let letters = Array(candidate.lowercased().unicodeScalars)
        let most = max(1, min(letters.count, meant.count) / 4)
        let better = min(most, (found?.steps).map { $0 - 1 } ?? most)
        if let steps = distance(meant, letters, atMost: better) { found = (candidate, steps) }
    }
    return found?.word
}

/// - Returns: `nil` for more than `most`. A program compares its whole environment with the names of its settings when it starts,
///   and nearly all of them are far apart: it stops as soon as that is certain.
private func distance(_ left: [Unicode.Scalar], _ right: [Unicode.Scalar], atMost most: Int) -> Int? {
    guard most >= 0, abs(left.count - right.count) <= most else { return nil }
    var before: [Int] = []
    var last = Array(0...right.count)
    for (row, letter) in left.enumerated() {
        var line = [row + 1]
        line.reserveCapacity(last.count)
        for (column, other) in right.enumerated() {
            var steps = min(last[column + 1] + 1, line[column] + 1, last[column] + (letter == other ? 0 : 1))
            if row > 0, column > 0, letter == right[column - 1], left[row - 1] == other {
                steps = min(steps, before[column - 1] + 1)
            }
            line.append(steps)
        }
        // Whatever follows comes from this line, or, with two exchanged, from the one before and a step.
        guard min(line.min() ?? 0, (last.min() ?? 0) + 1) <= most else { return nil }
        (before, last) = (last, line)
    }
    return last[right.count] <= most ? last[right.count] : nil
}
