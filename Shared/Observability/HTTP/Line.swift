// SPDX-License-Identifier: Apache-2.0

/// What waits, in the order in which it has joined. Nothing is looked through, however many leave before their turn.
struct Line<Element> {
    private var elements: [Int: Element] = [:]
    /// Nobody stands before this number.
    private var first = 0
    /// The number of whoever joins next: those that are there have lower ones.
    private(set) var next = 0

    var count: Int { elements.count }

    /// - Returns: the number in the line.
    mutating func join(_ element: Element) -> Int {
        if elements.isEmpty { first = next }
        elements[next] = element
        next += 1
        return next - 1
    }

    mutating func leave(_ number: Int) { elements[number] = nil }

    /// Who waits for the longest. Each number is passed once.
    mutating func longest() -> (number: Int, element: Element)? {
        if elements.isEmpty { return nil }
        while true {
            if let element = elements[first] { return (first, element) }
            first += 1
        }
    }
}
