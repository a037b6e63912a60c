// SPDX-License-Identifier: Apache-2.0

/// The word that somebody may have meant: a letter more, less, another or two exchanged, a few times in a long word.
package func nearest(to word: String, in words: [String]) -> String? {
    let near = words.map { ($0, distance(word.lowercased(), $0.lowercased())) }.min { $0.1 < $1.1 }
    guard let (found, steps) = near, steps <= max(1, min(found.count, word.count) / 4) else { return nil }
    return found
}

private func distance(_ left: String, _ right: String) -> Int {
    let (left, right) = (Array(left), Array(right))
    var before: [Int] = []
    var last = Array(0...right.count)
    for (row, letter) in left.enumerated() {
        var line = [row + 1]
        for (column, other) in right.enumerated() {
            var steps = min(last[column + 1] + 1, line[column] + 1, last[column] + (letter == other ? 0 : 1))
            if row > 0, column > 0, letter == right[column - 1], left[row - 1] == other {
                steps = min(steps, before[column - 1] + 1)
            }
            line.append(steps)
        }
        (before, last) = (last, line)
    }
    return last[right.count]
}
