// SPDX-License-Identifier: Apache-2.0

/// When a service decided once what a replay decides again, and what it refused, as its own messages of then tell
/// (docs/loop.md, "A replay"). Empty while nothing is replayed.
///
/// All functions work inside the caller's transaction and on its thread.
public enum DecisionTimes {
    /// A decision, or rather a message that it led to. The first one tells the time.
    public struct Row: Sendable, Hashable {
        /// Its id (`DerivedID`); of a record that was not decided the one by which a note names it.
        public var message: String
        /// In milliseconds since 1970.
        public var decidedAt: Int64
        /// Of a reply, why the command was refused (`Rejection.description`). Of a record that was refused, nothing.
        public var rejection: String?

        public init(message: String, decidedAt: Int64, rejection: String? = nil) {
            self.message = message
            self.decidedAt = decidedAt
            self.rejection = rejection
        }
    }

    /// Of several times of a message the first one stands: a later one is another replay's, which may have told something
    /// else under its id, in another partition.
    public static func keep(_ rows: [Row], in transaction: any SQLTransaction) throws(StorageError) {
        let rows = Dictionary(rows.map { ($0.message, $0) }) { $0.decidedAt <= $1.decidedAt ? $0 : $1 }
            .values.sorted { $0.message < $1.message }
        try transaction.send(insert, count: rows.count) { (index, binder) throws(StorageError) in
            try binder.bind(rows[index].message)
            try binder.bind(rows[index].decidedAt)
            if let rejection = rows[index].rejection { try binder.bind(rejection) } else { try binder.bindNull() }
        }
    }

    /// - Returns: of those messages that were told.
    public static func find(
        _ messages: Set<String>, in transaction: any SQLTransaction
    ) throws(StorageError) -> [String: Row] {
        let messages = Array(messages)
        let told = try transaction.queryEach(
            "SELECT decided_at, rejection FROM decision_times WHERE message = $1", messages.map { [.text($0)] })
        var found: [String: Row] = [:]
        for (message, rows) in zip(messages, told) {
            guard let row = rows.first else { continue }
            found[message] = Row(
                message: message, decidedAt: try row.integer(0), rejection: try row.optionalText(1))
        }
        return found
    }

    public static func forget(in transaction: any SQLTransaction) throws(StorageError) {
        try transaction.execute("DELETE FROM decision_times")
    }

    static let table = """
        CREATE TABLE decision_times (
            message TEXT NOT NULL PRIMARY KEY,
            decided_at BIGINT NOT NULL,
            rejection TEXT
        )
        """

    private static let insert = SQLRowStatement.insert(
        into: "decision_times", [("message", .text), ("decided_at", .integer), ("rejection", .text)],
        ending: """
             ON CONFLICT (message) DO UPDATE SET decided_at = excluded.decided_at, rejection = excluded.rejection \
            WHERE excluded.decided_at < decision_times.decided_at
            """)
}
