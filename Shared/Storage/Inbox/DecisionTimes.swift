// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// When a service decided once what a replay decides again, and what it refused, as its own messages of then tell
/// (docs/loop.md, "A replay"). Empty while nothing is replayed.
///
/// All functions work inside the caller's transaction and on its thread.
public enum DecisionTimes {
    /// A decision, or rather a message that it led to. The first one tells the time.
    public struct Row: Sendable, Hashable {
        /// `DerivedID.message(of:index:)`.
        public var message: String
        /// In milliseconds since 1970.
        public var decidedAt: Int64
        /// Of a reply, why the command was refused (`Rejection.description`).
        public var rejection: String?
        /// Of a reply, the digest of the command that it answers.
        public var digest: String?
        /// Of a reply, that the command was carried out, or begun.
        public var isDone: Bool

        public init(
            message: String, decidedAt: Int64, rejection: String? = nil, digest: String? = nil, isDone: Bool = false
        ) {
            self.message = message
            self.decidedAt = decidedAt
            self.rejection = rejection
            self.digest = digest
            self.isDone = isDone
        }
    }

    /// What is known of a command's decision.
    public struct Found: Sendable, Hashable {
        /// In milliseconds since 1970.
        public var decidedAt: Int64
        public var rejection: String?
        /// What the command said: another one under its id was refused.
        public var digest: String?
        /// It was carried out, or begun.
        public var isDone: Bool

        public init(decidedAt: Int64, rejection: String? = nil, digest: String? = nil, isDone: Bool = false) {
            self.decidedAt = decidedAt
            self.rejection = rejection
            self.digest = digest
            self.isDone = isDone
        }
    }

    /// How many of a command's messages are looked for: its reply stands behind its events.
    private static let messagesLookedFor = 8

    /// Of several times of a message the first one stands: a later one is another replay's, which may have told something
    /// else under its id, in another partition.
    public static func keep(_ rows: [Row], in transaction: any SQLTransaction) throws(StorageError) {
        let rows = Dictionary(rows.map { ($0.message, $0) }) { $0.decidedAt <= $1.decidedAt ? $0 : $1 }
            .values.sorted { $0.message < $1.message }
        try transaction.send(insert, count: rows.count) { (index, binder) throws(StorageError) in
            try binder.bind(rows[index].message)
            try binder.bind(rows[index].decidedAt)
            for text in [rows[index].rejection, rows[index].digest] {
                if let text { try binder.bind(text) } else { try binder.bindNull() }
            }
            try binder.bind(Int64(rows[index].isDone ? 1 : 0))
        }
    }

    /// - Returns: of those commands of which something is told.
    public static func find(
        _ commands: some Sequence<CommandKey>, in transaction: any SQLTransaction
    ) throws(StorageError) -> [CommandKey: Found] {
        let asked = Set(commands).flatMap { key in (0..<messagesLookedFor).map { (key: key, index: $0) } }
        let rows = try transaction.queryEach(
            "SELECT decided_at, rejection, digest, is_done FROM decision_times WHERE message = $1",
            asked.map { [.text(DerivedID.message(of: $0.key, index: $0.index))] })
        var found: [CommandKey: Found] = [:]
        for (asked, rows) in zip(asked, rows) {
            guard let row = rows.first else { continue }
            if asked.index == 0 { found[asked.key] = Found(decidedAt: try row.integer(0)) }
            if let rejection = try row.optionalText(1) { found[asked.key]?.rejection = rejection }
            if let digest = try row.optionalText(2) {
                found[asked.key]?.digest = digest
                found[asked.key]?.isDone = try row.integer(3) == 1
            }
        }
        return found
    }

    /// - Parameter messages: ids of messages about records (`DerivedID.message(cluster:…)`).
    /// - Returns: of those that told of a refusal, why.
    public static func rejections(
        _ messages: [String], in transaction: any SQLTransaction
    ) throws(StorageError) -> [String: String] {
        let rows = try transaction.queryEach(
            "SELECT rejection FROM decision_times WHERE message = $1", messages.map { [.text($0)] })
        var found: [String: String] = [:]
        for (message, rows) in zip(messages, rows) { found[message] = try rows.first?.optionalText(0) }
        return found
    }

    public static func forget(in transaction: any SQLTransaction) throws(StorageError) {
        try transaction.execute("DELETE FROM decision_times")
    }

    static let table = """
        CREATE TABLE decision_times (
            message TEXT NOT NULL PRIMARY KEY,
            decided_at BIGINT NOT NULL,
            rejection TEXT,
            digest TEXT,
            is_done BIGINT NOT NULL
        )
        """

    private static let insert = SQLRowStatement.insert(
        into: "decision_times",
        [("message", .text), ("decided_at", .integer), ("rejection", .text), ("digest", .text), ("is_done", .integer)],
        ending: """
             ON CONFLICT (message) DO UPDATE SET decided_at = excluded.decided_at, rejection = excluded.rejection, \
            digest = excluded.digest, is_done = excluded.is_done \
            WHERE excluded.decided_at < decision_times.decided_at
            """)
}
