// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// When a service decided once what a replay decides again, as its own messages of then tell (docs/loop.md, "A replay"). Empty
/// while nothing is replayed.
///
/// All functions work inside the caller's transaction and on its thread.
public enum DecisionTimes {
    /// A decision, or rather a message that it led to: of none is more looked for than its first one.
    public struct Row: Sendable, Hashable {
        /// `DerivedID.message(of:index:)`.
        public var message: String
        /// In milliseconds since 1970.
        public var decidedAt: Int64

        public init(message: String, decidedAt: Int64) {
            self.message = message
            self.decidedAt = decidedAt
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
        }
    }

    /// - Returns: in milliseconds since 1970, of those commands of which something is told.
    public static func find(
        _ commands: some Sequence<CommandKey>, in transaction: any SQLTransaction
    ) throws(StorageError) -> [CommandKey: Int64] {
        let asked = Array(Set(commands))
        let rows = try transaction.queryEach(
            "SELECT decided_at FROM decision_times WHERE message = $1",
            asked.map { [.text(DerivedID.message(of: $0, index: 0))] })
        var times: [CommandKey: Int64] = [:]
        for (command, rows) in zip(asked, rows) { times[command] = try rows.first?.integer(0) }
        return times
    }

    public static func forget(in transaction: any SQLTransaction) throws(StorageError) {
        try transaction.execute("DELETE FROM decision_times")
    }

    static let table = """
        CREATE TABLE decision_times (
            message TEXT NOT NULL PRIMARY KEY,
            decided_at BIGINT NOT NULL
        )
        """

    private static let insert = SQLRowStatement.insert(
        into: "decision_times", [("message", .text), ("decided_at", .integer)],
        ending: """
             ON CONFLICT (message) DO UPDATE SET decided_at = excluded.decided_at \
            WHERE excluded.decided_at < decision_times.decided_at
            """)
}
