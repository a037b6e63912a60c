// SPDX-License-Identifier: Apache-2.0

/// A name pattern in which `*` stands for any characters, none included.
struct Glob {
    private let parts: [Substring]

    init(_ pattern: String) {
        parts = pattern.split(separator: "*", omittingEmptySubsequences: false)
    }

    func matches(_ name: String) -> Bool {
        guard let first = parts.first, let last = parts.last, name.hasPrefix(first) else { return false }
        guard parts.count > 1 else { return name == first }
        var rest = name.dropFirst(first.count)
        for part in parts.dropFirst().dropLast() where !part.isEmpty {
            guard let range = rest.firstRange(of: part) else { return false }
            rest = rest[range.upperBound...]
        }
        return rest.hasSuffix(last)
    }
}
