// SPDX-License-Identifier: Apache-2.0

/// Where the last decision about something stands: the beginning of its row's key in the inbox, and which of the places in
/// that row's `before` leads on to the decision before it.
public struct ChainLink: Sendable, Hashable {
    /// The places that a row of the inbox can have.
    static let places: Int64 = 1 << 12
    /// Nothing was decided before.
    static let noPlace = places - 1

    /// As it stands in a table. 0: nothing was decided.
    public var number: Int64

    public init(number: Int64) { self.number = number }

    /// Nothing was decided.
    public static let none = ChainLink(number: 0)

    /// What the links to one decision share.
    var decision: Int64 { number & ~(Self.places - 1) }

    /// Which link of the decision's row leads on.
    var place: Int { Int(number & (Self.places - 1)) }
}

/// The last decision about a row of a service's own, kept with the row. It is no part of what the row says, so rows that
/// differ in nothing else are equal.
public struct LastDecision: Sendable, Hashable {
    public var link: ChainLink

    public init(_ link: ChainLink = .none) { self.link = link }

    public static func == (left: LastDecision, right: LastDecision) -> Bool { true }

    public func hash(into hasher: inout Hasher) {}
}

extension SQLColumns {
    /// The column of every row that is chained.
    @inlinable
    public func lastDecision(_ last: inout LastDecision) throws(StorageError) {
        try column("last_decision", &last.link.number)
    }
}

/// What one decision adds to the chains of the rows that it writes (docs/loop.md "The chain").
public struct DecisionChain: Sendable {
    private let decision: Int64
    /// The decisions before this one, for each place: 8 bytes, the lowest first.
    public private(set) var before: [UInt8] = []
    /// What has no row to be found by, or has it no more.
    public private(set) var mentions: [(text: String, link: ChainLink)] = []

    /// - Parameter key: of the decision's row in the inbox.
    public init(_ key: StoredKey) { decision = key.decision }

    /// Whether nothing leads to the decision yet.
    public private(set) var isEmpty = true

    /// The link to this decision.
    /// - Parameter last: the last decision before it about the same thing.
    /// - Returns: `last` when the decision has no place left: it is then not found from there.
    public mutating func link(after last: ChainLink) -> ChainLink {
        guard last != .none else {
            isEmpty = false
            return ChainLink(number: decision | ChainLink.noPlace)
        }
        if last.decision == decision { return last }
        let place = Int64(before.count / 8)
        guard place < ChainLink.noPlace else { return last }
        isEmpty = false
        withUnsafeBytes(of: last.number.littleEndian) { before.append(contentsOf: $0) }
        return ChainLink(number: decision | place)
    }

    /// The decision is found from this text too, by a row of its own (``Mentions``). For what is rare, or leaves no row.
    /// - Parameter last: the last decision before it about the same thing, which nothing else leads to any more.
    public mutating func mention(_ text: String, after last: ChainLink = .none) {
        guard !text.isEmpty, !mentions.contains(where: { $0.text == text && last == .none }) else { return }
        mentions.append((text, link(after: last)))
    }

    /// The links that stand in a column ``before``.
    static func links(_ before: [UInt8]) -> [ChainLink] {
        stride(from: 0, to: before.count - before.count % 8, by: 8).map { start in
            ChainLink(
                number: before[start..<start + 8].reversed().reduce(0) { $0 << 8 | Int64($1) })
        }
    }
}

extension Table {
    /// Notes the decision with the row that it is about to put.
    @inlinable
    public mutating func chain(_ key: Row.Key, _ chain: inout DecisionChain) {
        func link(_ place: inout Place) {
            let link = chain.link(after: place.last)
            guard link != place.last else { return }
            place.last = link
            place.isChanged = true
        }
        link(&places[key, default: Place()])
    }

    /// Notes the decision with a row that it leaves as it is; the row is written. Nothing where there is none.
    @inlinable
    public mutating func chainKnown(_ key: Row.Key, _ chain: inout DecisionChain) {
        guard places[key]?.row != nil else { return }
        self.chain(key, &chain)
        places[key]?.isTouched = true
    }

    /// The last decision about a row.
    @inlinable public func last(_ key: Row.Key) -> ChainLink { places[key]?.last ?? .none }
}
