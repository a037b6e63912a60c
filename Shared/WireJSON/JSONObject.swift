// SPDX-License-Identifier: Apache-2.0

/// The members of a JSON object in document order; no two have the same name.
///
/// Names are compared by their UTF-8 bytes, not by Swift's canonical equivalence: `"\u{E9}"` and
/// `"e\u{301}"` are different members, as they are to every other JSON implementation. Lookup is linear,
/// which beats hashing at the sizes these services exchange. Equality ignores member order.
public struct JSONObject: Sendable, Sequence {
    /// One name and its value.
    public struct Member: Sendable, Hashable {
        /// The member's name.
        public let name: String
        /// The member's value.
        public var value: JSONValue

        /// A member.
        public init(name: String, value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    /// All members in order.
    public private(set) var members: [Member]

    /// An object without members.
    public init() {
        members = []
    }

    /// Members in the order given; a later duplicate name replaces the earlier value in place.
    public init(_ pairs: some Sequence<(String, JSONValue)>) {
        members = []
        for (name, value) in pairs {
            self[name] = value
        }
    }

    /// Trusts that no two names are equal; only the parser calls it.
    @inline(__always)
    package init(uniqueMembers: [Member]) {
        members = uniqueMembers
    }

    /// The number of members.
    public var count: Int { members.count }

    /// Whether there are no members.
    public var isEmpty: Bool { members.isEmpty }

    /// The value of a member; setting appends or replaces in place, setting nil removes.
    public subscript(_ name: String) -> JSONValue? {
        get {
            index(of: name).map { members[$0].value }
        }
        set {
            switch (index(of: name), newValue) {
            case (let index?, let value?): members[index].value = value
            case (let index?, nil): members.remove(at: index)
            case (nil, let value?): members.append(Member(name: name, value: value))
            case (nil, nil): break
            }
        }
    }

    /// The members in order.
    public func makeIterator() -> IndexingIterator<[Member]> {
        members.makeIterator()
    }

    private func index(of name: String) -> Int? {
        members.firstIndex { JSONText.sameBytes($0.name, name) }
    }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    /// A later duplicate name replaces the earlier value in place.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self.init(elements)
    }
}

extension JSONObject: Hashable {
    /// Whether both have the same names with equal values, in any order.
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        guard left.count == right.count else { return false }
        // Documents that were written by the same code agree in order, which makes this linear.
        let ordered = zip(left.members, right.members).allSatisfy {
            JSONText.sameBytes($0.name, $1.name) && $0.value == $1.value
        }
        if ordered { return true }
        let lookup = Dictionary(left.members.map { (NameBytes($0.name), $0.value) }) { first, _ in first }
        return right.members.allSatisfy { lookup[NameBytes($0.name)] == $0.value }
    }

    /// Independent of member order.
    public func hash(into hasher: inout Hasher) {
        var combined = 0
        for member in members {
            var one = Hasher()
            one.combine(member.name)
            one.combine(member.value)
            combined ^= one.finalize()
        }
        hasher.combine(combined)
        hasher.combine(count)
    }

    /// A name that hashes and compares by its bytes.
    private struct NameBytes: Hashable {
        let name: String

        init(_ name: String) {
            self.name = name
        }

        static func == (left: NameBytes, right: NameBytes) -> Bool {
            JSONText.sameBytes(left.name, right.name)
        }

        // Strings with equal bytes have equal String hashes, so the standard hash is consistent with ==.
        func hash(into hasher: inout Hasher) {
            hasher.combine(name)
        }
    }
}
