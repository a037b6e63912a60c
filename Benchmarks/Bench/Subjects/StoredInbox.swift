// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Runtime
import Storage

/// Fills the store of the service under test with decisions on commands that are long over, as a service has them that has
/// run for weeks: generations of the same size. A minute later the newest one has lasted half of the retention, so
/// the oldest one, all of which is due, is looked through and emptied beside what is measured.
enum StoredInbox {
    private static let chunk = 5000
    private static let generations = Inbox.tables.count
    /// What a link command's receipt takes.
    private static let receiptBytes = 140

    static func load(_ count: Int, into stage: Stage) throws {
        // The service makes its tables.
        try stage.start().stop()
        let service = stage.services[0]
        let database = try stage.store(of: service)
        defer { database.close() }
        let retention = Int64(ProcessInfo.processInfo.environment["JOURNAL_RETENTION_HOURS"].flatMap { Int($0) } ?? 336)
        // Of a generation: half of the retention.
        let lasts = Double(retention) * 1_800_000
        let oldest = Double(Timestamp.now.milliseconds) - lasts * Double(generations)
        let partitions = stage.broker.partitions
        var random = SeededGenerator(seed: 5)
        let start = ContinuousClock.now
        for first in stride(from: 0, to: count, by: chunk) {
            let generation = first * generations / count
            let entries = (first..<min(first + chunk, count)).map { number in
                let time = Int64(oldest + lasts * Double(number * generations) / Double(count))
                return InboxRow(
                    // All at the beginning of their log, which the service has published long since when it looks.
                    position: LogPosition(
                        topic: stage.commands, partition: Int32(number % partitions), incarnation: 0, offset: 0),
                    key: CommandKey(
                        app: Stage.app, source: "https://shop.example/backend", id: CommandID("old-\(random.next())")),
                    digest: bytes(Inbox.digestByteCount, &random), verdict: .succeeded,
                    receipt: bytes(receiptBytes, &random), loggedAt: time, decidedAt: time)
            }
            try database.transaction { try Inbox.append(entries, generation: Int64(generation), in: $0) }
            Progress.show(first + entries.count, of: count, "decisions", since: start)
        }
        let begun = Timestamp.now.milliseconds - Int64(lasts) + 60_000
        try database.transaction {
            try $0.execute(
                "UPDATE inbox_state SET newest = $1, begun_at = $2 WHERE id = 1",
                [SQLValue(generations - 1), .integer(begun)])
        }
        if stage.engine == .postgresql {
            // As autovacuum would have done meanwhile.
            try database.transaction { transaction in
                for table in Inbox.tables { try transaction.execute("ANALYZE \(table)") }
            }
        }
    }

    /// What is left of it, and how large the store is.
    static func tell(_ loaded: Int, _ stage: Stage, _ report: inout Report) throws {
        let database = try stage.store(of: stage.services[0])
        defer { database.close() }
        func number(_ query: String) throws -> Double {
            Double(try database.transaction { try $0.query(query) }.first?.integer(0) ?? 0)
        }
        let all = try Inbox.tables.map { try number("SELECT COUNT(*) FROM \($0)") }.reduce(0, +)
        let old = try Inbox.tables.map { try number("SELECT COUNT(*) FROM \($0) WHERE log_offset = 0") }
            .reduce(0, +)
        report.add("forgotten meanwhile", Double(loaded) - old)
        report.add("decisions in the store afterwards", all)
        let bytes =
            switch stage.engine {
            case .sqlite: try number("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
            case .postgresql:
                try Inbox.tables.map { try number("SELECT pg_total_relation_size('\($0)')") }.reduce(0, +)
            }
        report.add("size of the store", bytes / 1_048_576, "MiB")
    }

    private static func bytes(_ count: Int, _ random: inout SeededGenerator) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 8)
        while bytes.count < count { withUnsafeBytes(of: random.next()) { bytes.append(contentsOf: $0) } }
        return Array(bytes.prefix(count))
    }
}
