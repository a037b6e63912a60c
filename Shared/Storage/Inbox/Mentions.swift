// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// Decisions that are found from an id which no row leads to: refusals, and what was decided about a row that is gone. One
/// narrow table beside each generation of the inbox, emptied with it.
///
/// All functions work inside the caller's transaction and on its thread.
public enum Mentions {
    public struct Row: Sendable, Hashable {
        /// Stands for the app and the id, keyed by the store's salt: nobody finds the id by guessing.
        public var subject: Int64
        /// In milliseconds since 1970.
        public var decidedAt: Int64
        public var link: ChainLink

        public init(subject: Int64, decidedAt: Int64, link: ChainLink) {
            self.subject = subject
            self.decidedAt = decidedAt
            self.link = link
        }
    }

    /// - Parameter generation: from ``Inbox/find(_:in:)`` in the same transaction.
    public static func append(
        _ rows: [Row], generation: Int64, in transaction: any SQLTransaction
    ) throws(StorageError) {
        let insert = insert[Inbox.slot(generation)]
        try transaction.send(insert, count: rows.count) { (index, binder) throws(StorageError) in
            try binder.bind(rows[index].subject)
            try binder.bind(rows[index].decidedAt)
            try binder.bind(rows[index].link.number)
        }
    }

    /// What mentions a subject, the newest first.
    ///
    /// - Parameter place: what comes behind this; from the newest on when it is `nil`.
    public static func of(
        _ subject: Int64, behind place: Row?, limit: Int, in transaction: any SQLTransaction
    ) throws(StorageError) -> [Row] {
        let parameters: [SQLValue] = [
            .integer(subject), .integer(place?.decidedAt ?? .max), .integer(place?.link.number ?? .max),
            SQLValue(limit),
        ]
        var found: [Row] = []
        for row in try transaction.query(select, parameters) {
            found.append(
                Row(
                    subject: subject, decidedAt: try row.integer(0),
                    link: ChainLink(number: try row.integer(1))))
        }
        return found
    }

    static let tables = (0..<Inbox.slotCount).map { "mentions_\($0)" }

    private static let insert = tables.map {
        SQLRowStatement.insert(
            into: $0, [("subject", .integer), ("decided_at", .integer), ("link", .integer)],
            ending: " ON CONFLICT DO NOTHING")
    }

    private static let select: String = {
        let arms = tables.map {
            """
            SELECT * FROM (SELECT decided_at, link FROM \($0)
            WHERE subject = $1 AND (decided_at, link) < ($2, $3)
            ORDER BY decided_at DESC, link DESC LIMIT $4) AS \($0)
            """
        }
        return "\(arms.joined(separator: " UNION ALL ")) ORDER BY decided_at DESC, link DESC LIMIT $4"
    }()
}

/// A decision as the inbox has it.
public struct StoredDecision: Sendable, Hashable {
    /// What all links to it share.
    public var decision: Int64
    public var log: Int64
    public var offset: Int64
    /// Kafka's time of the record, in milliseconds since 1970.
    public var loggedAt: Int64
    /// In milliseconds since 1970.
    public var decidedAt: Int64
    public var verdict: Verdict
    /// Encoded by whoever appended it.
    public var receipt: [UInt8]
    private var before: [ChainLink]

    fileprivate init(_ row: SQLRow) throws(StorageError) {
        decision = try StoredKey(bytes: row.blob(0)).decision
        (log, offset) = (try row.integer(1), try row.integer(2))
        (loggedAt, decidedAt) = (try row.integer(3), try row.integer(4))
        verdict = try Verdict(number: row.integer(5))
        receipt = try row.blob(6)
        before = DecisionChain.links(try row.blob(7))
    }

    /// The decision before it about the same thing.
    /// - Parameter link: one that led here.
    /// - Returns: `nil` when there was none.
    public func next(after link: ChainLink) -> ChainLink? {
        before.indices.contains(link.place) ? before[link.place] : nil
    }
}

extension ChainLink {
    /// What finds the decision that it leads to, see ``StoredDecision/decision``.
    public var target: Int64 { decision }
}

extension Inbox {
    /// The decisions that links lead to, by their ``ChainLink/target``; those that are not forgotten.
    public static func decisions(
        _ links: [ChainLink], in transaction: any SQLTransaction
    ) throws(StorageError) -> [Int64: StoredDecision] {
        var found: [Int64: StoredDecision] = [:]
        let parameters = Set(links.map(\.decision)).sorted().map { decision -> [SQLValue] in
            let from = UInt64(bitPattern: decision)
            let (to, isLast) = from.addingReportingOverflow(UInt64(ChainLink.places))
            return [.blob(bytes(from)), .blob(isLast ? [UInt8](repeating: 0xFF, count: 17) : bytes(to))]
        }
        for rows in try transaction.queryEach(byBeginning, parameters) {
            for row in rows {
                let decision = try StoredDecision(row)
                found[decision.decision] = decision
            }
        }
        return found
    }

    /// The decision on a command.
    public static func decision(
        _ key: CommandKey, in transaction: any SQLTransaction
    ) throws(StorageError) -> ChainLink? {
        let link = ChainLink(number: StoredKey(key).decision | ChainLink.noPlace)
        return try decisions([link], in: transaction).isEmpty ? nil : link
    }

    private static func bytes(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }

    /// A key's beginning stands for it: that two rows share one is less likely than one in many millions, and then one of
    /// them is passed over.
    private static let byBeginning: String = {
        let arms = tables.map {
            """
            SELECT * FROM (SELECT key, log, log_offset, logged_at, decided_at, outcome, receipt, before FROM \($0)
            WHERE key >= $1 AND key < $2 ORDER BY key LIMIT 1) AS \($0)
            """
        }
        return arms.joined(separator: " UNION ALL ")
    }()
}
