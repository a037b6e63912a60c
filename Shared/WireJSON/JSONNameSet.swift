// SPDX-License-Identifier: Apache-2.0

/// The member names of one object under construction, to find repetitions in constant time per name.
///
/// Plain names (ASCII, no escapes) set one of 64 bits each; only a name whose bit is set already is compared
/// with the others. That is almost never for the objects of these services. Beyond `hashFrom` members a
/// hashed set takes over, so that a hostile document cannot make the comparison quadratic.
struct JSONNameSet {
    private static var hashFrom: Int { 24 }

    private var marks: UInt64 = 0
    private var hasUnusual = false
    private var hashed: Set<String> = []

    /// Whether `name` differs from the names of all `members`, and remembers it.
    ///
    /// - Parameter mark: one bit, a function of the name's bytes; used only when `isPlain`.
    @inline(__always)
    mutating func insert(
        _ name: String, isPlain: Bool, mark: UInt64, after members: [JSONObject.Member]
    ) -> Bool {
        if members.count < Self.hashFrom, isPlain, !hasUnusual, marks & mark == 0 {
            marks |= mark
            return true
        }
        return insertSlowly(name, isPlain: isPlain, mark: mark, after: members)
    }

    @inline(never)
    private mutating func insertSlowly(
        _ name: String, isPlain: Bool, mark: UInt64, after members: [JSONObject.Member]
    ) -> Bool {
        if isPlain { marks |= mark } else { hasUnusual = true }
        if members.count < Self.hashFrom {
            return !members.contains { $0.name == name }
        }
        if hashed.isEmpty {
            hashed = Set(members.map(\.name))
        }
        return hashed.insert(name).inserted
    }
}
