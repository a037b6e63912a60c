// SPDX-License-Identifier: Apache-2.0

/// What was decided, once for each command: inbox, outbox, audit log and receipt in one table.
///
/// All functions work inside the caller's transaction and on its thread.
public enum Journal {
    private static let columns = """
        topic, partition, incarnation, log_offset, app, source, id, digest, type, subject, outcome, reason, messages, \
        decided_at, logged_at
        """
    /// Entries from before the column, and those of an older replica beside this one, have no time from the log.
    static let loggedAt = "COALESCE(logged_at, decided_at)"
    private static let selected = columns.replacing("logged_at", with: loggedAt)

    /// Looks up what was decided on these commands before. One round trip.
    public static func find(
        _ keys: [CommandKey], in transaction: any SQLTransaction
    ) throws(StorageError) -> [CommandKey: JournalEntry] {
        let answers = try transaction.queryEach(
            "SELECT \(selected) FROM journal WHERE app = $1 AND source = $2 AND id = $3",
            keys.map { [.text($0.app), .text($0.source), .text($0.id)] })
        var found: [CommandKey: JournalEntry] = [:]
        for (key, rows) in zip(keys, answers) {
            guard let row = rows.first else { continue }
            found[key] = try entry(row)
        }
        return found
    }

    /// Records decisions. One round trip.
    ///
    /// - Throws: `conflict` when the position or the command of an entry is in the journal already: another replica
    ///   was faster, or the batch holds a command twice.
    public static func append(
        _ entries: [JournalEntry], in transaction: any SQLTransaction
    ) throws(StorageError) {
        try transaction.executeEach(
            """
            INSERT INTO journal (\(columns))
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
            """,
            entries.map(parameters))
    }

    /// The entries behind `after`, in the order of their offsets, at most `limit` of them.
    ///
    /// - Parameter after: the last offset that was published, -1 for none.
    public static func unpublished(
        topic: String, partition: Int32, incarnation: Int64, after: Int64, limit: Int,
        in transaction: any SQLTransaction
    ) throws(StorageError) -> [JournalEntry] {
        let rows = try transaction.query(
            """
            SELECT \(selected) FROM journal
            WHERE topic = $1 AND partition = $2 AND incarnation = $3 AND log_offset > $4
            ORDER BY log_offset LIMIT $5
            """,
            [.text(topic), SQLValue(partition), .integer(incarnation), .integer(after), SQLValue(limit)])
        return try entries(rows)
    }

    /// What was decided about one subject, newest first. Reads the whole table: for people, not for services.
    public static func history(
        subject: String, limit: Int, in transaction: any SQLTransaction
    ) throws(StorageError) -> [JournalEntry] {
        let rows = try transaction.query(
            "SELECT \(selected) FROM journal WHERE subject = $1 ORDER BY decided_at DESC, log_offset DESC LIMIT $2",
            [.text(subject), SQLValue(limit)])
        return try entries(rows)
    }

    /// What was decided about the commands of one app, newest first; of one source or about one id if they are given.
    public static func history(
        app: String, source: String? = nil, id: String? = nil, limit: Int, in transaction: any SQLTransaction
    ) throws(StorageError) -> [JournalEntry] {
        var condition = "app = $1"
        var parameters: [SQLValue] = [.text(app)]
        for (column, value) in [("source", source), ("id", id)] {
            guard let value else { continue }
            parameters.append(.text(value))
            condition += " AND \(column) = $\(parameters.count)"
        }
        parameters.append(SQLValue(limit))
        let rows = try transaction.query(
            """
            SELECT \(selected) FROM journal WHERE \(condition)
            ORDER BY decided_at DESC, log_offset DESC LIMIT $\(parameters.count)
            """,
            parameters)
        return try entries(rows)
    }

    // MARK: Rows

    private static func parameters(_ entry: JournalEntry) -> [SQLValue] {
        [
            .text(entry.position.topic), .integer(Int64(entry.position.partition)),
            .integer(entry.position.incarnation), .integer(entry.position.offset),
            SQLValue(entry.key?.app), SQLValue(entry.key?.source), SQLValue(entry.key?.id),
            .blob(entry.digest), .text(entry.type), SQLValue(entry.subject), .text(entry.outcome),
            SQLValue(entry.reason), .blob(entry.messages), .integer(entry.decidedAt), .integer(entry.loggedAt),
        ]
    }

    private static func entries(_ rows: [SQLRow]) throws(StorageError) -> [JournalEntry] {
        var entries: [JournalEntry] = []
        entries.reserveCapacity(rows.count)
        for row in rows {
            entries.append(try entry(row))
        }
        return entries
    }

    private static func entry(_ row: SQLRow) throws(StorageError) -> JournalEntry {
        var key: CommandKey?
        if let app = try row.optionalText(4), let source = try row.optionalText(5), let id = try row.optionalText(6) {
            key = CommandKey(app: app, source: source, id: id)
        }
        return JournalEntry(
            position: JournalPosition(
                topic: try row.text(0), partition: Int32(truncatingIfNeeded: try row.integer(1)),
                incarnation: try row.integer(2), offset: try row.integer(3)),
            key: key, digest: try row.blob(7), type: try row.text(8), subject: try row.optionalText(9),
            outcome: try row.text(10), reason: try row.optionalText(11), messages: try row.blob(12),
            loggedAt: try row.integer(14), decidedAt: try row.integer(13))
    }
}
