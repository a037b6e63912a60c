// SPDX-License-Identifier: Apache-2.0

/// A position in an array, as a coding key.
struct JSONIndexKey: CodingKey {
    let index: Int

    init(_ index: Int) {
        self.index = index
    }

    init?(intValue: Int) {
        index = intValue
    }

    init?(stringValue: String) {
        return nil
    }

    var intValue: Int? { index }
    var stringValue: String { "[\(index)]" }
}

/// The member that `superDecoder()` and `superEncoder()` use, as everywhere in Codable.
struct JSONSuperKey: CodingKey {
    init() {}

    init?(intValue: Int) {
        return nil
    }

    init?(stringValue: String) {
        guard stringValue == "super" else { return nil }
    }

    var intValue: Int? { nil }
    var stringValue: String { "super" }
}
