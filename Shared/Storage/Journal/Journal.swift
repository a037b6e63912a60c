// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// What was decided, once for each command: inbox, outbox, audit log and receipt in one table.
///
/// All functions work inside the caller's transaction and on its thread.
public enum Journal {
    /// Entries from before the column, and those of an older replica beside this one, have no time from the log.
    static let loggedAt: StaticString = "COALESCE(logged_at, decided_at)"

    /// Looks up what was decided on these commands before. One round trip.
    public static func find(
        _ keys: [CommandKey], in transaction: any SQLTransaction
    ) throws(StorageError) -> [CommandKey: JournalEntry] {
        var found: [CommandKey: JournalEntry] = [:]
        for entry in try JournalEntry.table.find("app = $1 AND source = $2 AND id = $3", keys, in: transaction) {
            if let key = entry.key { found[key] = entry }
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
        try JournalEntry.table.insert(entries, in: transaction)
    }

    /// The entries behind `after`, in the order of their offsets, at most `limit` of them.
    ///
    /// - Parameter after: the last offset that was published, -1 for none.
    public static func unpublished(
        topic: String, partition: Int32, incarnation: Int64, after: Int64, limit: Int,
        in transaction: any SQLTransaction
    ) throws(StorageError) -> [JournalEntry] {
        try JournalEntry.table.find(
            "topic = $1 AND partition = $2 AND incarnation = $3 AND log_offset > $4 ORDER BY log_offset LIMIT $5",
            [.text(topic), SQLValue(partition), .integer(incarnation), .integer(after), SQLValue(limit)],
            in: transaction)
    }

    /// What was decided about one subject, newest first. Reads the whole table: for people, not for services.
    public static func history(
        subject: String, limit: Int, in transaction: any SQLTransaction
    ) throws(StorageError) -> [JournalEntry] {
        try JournalEntry.table.find(
            "subject = $1 ORDER BY decided_at DESC, log_offset DESC LIMIT $2", [.text(subject), SQLValue(limit)],
            in: transaction)
    }

    /// What was decided about the commands of one app, newest first; of one source or about one id if they are given.
    public static func history(
        app: AppID, source: SourceID? = nil, id: CommandID? = nil, limit: Int, in transaction: any SQLTransaction
    ) throws(StorageError) -> [JournalEntry] {
        var condition = "app = $1"
        var parameters: [SQLValue] = [.text(app.text)]
        for (column, value) in [("source", source?.text), ("id", id?.text)] {
            guard let value else { continue }
            parameters.append(.text(value))
            condition += " AND \(column) = $\(parameters.count)"
        }
        parameters.append(SQLValue(limit))
        return try JournalEntry.table.find(
            "\(condition) ORDER BY decided_at DESC, log_offset DESC LIMIT $\(parameters.count)", parameters,
            in: transaction)
    }
}
