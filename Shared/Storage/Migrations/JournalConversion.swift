// SPDX-License-Identifier: Apache-2.0

import Contracts

/// Turns the journal, which was inbox and outbox in one table, into these two. What SQL cannot say on both engines: the
/// inbox is keyed by a hash.
///
/// The receipt of a row is what its `messages` were, so a repeated command gets its first answer. Reads and writes each
/// row once.
enum JournalConversion {
    /// What the migration has renamed the journal to. An older replica that still runs finds no journal, so it decides
    /// nothing any more.
    static let journal = "journal_before_inbox"
    private static let step = 500

    static func run(in transaction: any SQLTransaction) throws(StorageError) {
        try keySagas(in: transaction)
        var logs = try logsOfProgress(in: transaction)
        try Logs.enter(Array(logs), in: transaction)
        let unpublished = try Unpublished(in: transaction)
        var last: LogPosition?
        repeat {
            let rows = try read(after: last, in: transaction)
            last = rows.last?.row.position
            let unknown = Set(rows.map(\.row.position.log)).subtracting(logs)
            try Logs.enter(Array(unknown), in: transaction)
            logs.formUnion(unknown)
            // All of it in the generation before the one that new rows go to.
            try Inbox.append(rows.map(\.row), generation: 0, in: transaction)
            try Outbox.append(
                rows.filter { unpublished.holds($0.row.position) && !$0.messages.isEmpty }
                    .map { OutboxRow(position: $0.row.position, messages: $0.messages) }, in: transaction)
        } while last != nil
        try transaction.execute("UPDATE inbox_state SET begun_at = (SELECT COALESCE(MAX(log_time), -1) FROM progress)")
        try transaction.execute("DROP TABLE \(journal)")
    }

    private static func logsOfProgress(in transaction: any SQLTransaction) throws(StorageError) -> Set<LogID> {
        var logs: Set<LogID> = []
        for row in try transaction.query("SELECT topic, partition, incarnation FROM progress") {
            let place = TopicPartition(topic: try row.text(0), partition: Int32(truncatingIfNeeded: try row.integer(1)))
            logs.insert(LogID(place, incarnation: try row.integer(2)))
        }
        return logs
    }

    private static func keySagas(in transaction: any SQLTransaction) throws(StorageError) {
        var last: [SQLValue]?
        repeat {
            let rows = try transaction.query(
                """
                SELECT app, source, id FROM saga\(last == nil ? "" : " WHERE (app, source, id) > ($2, $3, $4)")
                ORDER BY app, source, id LIMIT $1
                """, [SQLValue(step)] + (last ?? []))
            last = rows.last?.values
            try key(rows, in: transaction)
        } while last != nil
    }

    private static func key(_ sagas: [SQLRow], in transaction: any SQLTransaction) throws(StorageError) {
        var keys: [[SQLValue]] = []
        for row in sagas {
            let key = CommandKey(
                app: AppID(try row.text(0)), source: SourceID(try row.text(1)), id: CommandID(try row.text(2)))
            keys.append([
                .text(key.app.text), .text(key.source.text), .text(key.id.text), .blob(StoredKey(key).bytes),
            ])
        }
        try transaction.executeEach(
            "UPDATE saga SET inbox_key = $4 WHERE app = $1 AND source = $2 AND id = $3", keys)
    }

    private static func read(
        after last: LogPosition?, in transaction: any SQLTransaction
    ) throws(StorageError) -> [(row: InboxRow, messages: [UInt8])] {
        let columns = """
            topic, partition, incarnation, log_offset, app, source, id, digest, outcome, messages,
            COALESCE(logged_at, decided_at), decided_at
            """
        let rows: [SQLRow]
        if let last {
            rows = try transaction.query(
                """
                SELECT \(columns) FROM \(journal)
                WHERE (topic, partition, incarnation, log_offset) > ($1, $2, $3, $4)
                ORDER BY topic, partition, incarnation, log_offset LIMIT $5
                """,
                [
                    .text(last.log.partition.topic), SQLValue(last.log.partition.partition),
                    .integer(last.log.incarnation), .integer(last.offset), SQLValue(step),
                ])
        } else {
            rows = try transaction.query(
                "SELECT \(columns) FROM \(journal) ORDER BY topic, partition, incarnation, log_offset LIMIT $1",
                [SQLValue(step)])
        }
        var found: [(row: InboxRow, messages: [UInt8])] = []
        for row in rows { found.append((try inboxRow(row), try row.blob(9))) }
        return found
    }

    private static func inboxRow(_ row: SQLRow) throws(StorageError) -> InboxRow {
        var key: CommandKey?
        if let app = try row.optionalText(4), let source = try row.optionalText(5), let id = try row.optionalText(6) {
            key = CommandKey(app: AppID(app), source: SourceID(source), id: CommandID(id))
        }
        guard let verdict = Verdict(rawValue: try row.text(8)) else {
            throw .invalid("the journal has an outcome that no version wrote")
        }
        return InboxRow(
            position: LogPosition(
                topic: try row.text(0), partition: Int32(truncatingIfNeeded: try row.integer(1)),
                incarnation: try row.integer(2), offset: try row.integer(3)),
            key: key, digest: try row.blob(7), verdict: verdict, receipt: try row.blob(9),
            loggedAt: try row.integer(10), decidedAt: try row.integer(11))
    }

    /// How far each log is published.
    private struct Unpublished {
        private var through: [LogID: Int64] = [:]
        private var newest: [TopicPartition: Int64] = [:]

        init(in transaction: any SQLTransaction) throws(StorageError) {
            for table in ["set_aside", "progress"] {
                for row in try transaction.query(
                    "SELECT topic, partition, incarnation, published_through FROM \(table)")
                {
                    let place = TopicPartition(
                        topic: try row.text(0), partition: Int32(truncatingIfNeeded: try row.integer(1)))
                    through[LogID(place, incarnation: try row.integer(2))] = try row.integer(3)
                    newest[place] = max(newest[place] ?? 0, try row.integer(2))
                }
            }
        }

        /// A partition whose row is gone has not published what the journal holds of its newest incarnation.
        func holds(_ position: LogPosition) -> Bool {
            if let through = through[position.log] { return position.offset > through }
            return newest[position.log.partition].map { position.log.incarnation > $0 } ?? true
        }
    }
}
