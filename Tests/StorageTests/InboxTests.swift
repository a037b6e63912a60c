// SPDX-License-Identifier: Apache-2.0

import Contracts
import TestKit
import Testing

@testable import Storage

@Suite struct InboxTests {
    static let topic = "identity.link.commands.v1"

    static func log(_ partition: Int32 = 0, incarnation: Int64 = 0) -> LogID {
        LogID(TopicPartition(topic: topic, partition: partition), incarnation: incarnation)
    }

    static func row(
        offset: Int64, partition: Int32 = 0, incarnation: Int64 = 0, id: CommandID? = nil, loggedAt: Int64? = nil,
        keyed: Bool = true, receipt: [UInt8] = [1, 2]
    ) -> InboxRow {
        InboxRow(
            position: LogPosition(log: log(partition, incarnation: incarnation), offset: offset),
            key: keyed
                ? CommandKey(app: "app", source: "source", id: id ?? CommandID("\(incarnation)-\(partition)-\(offset)"))
                : nil,
            digest: [UInt8](repeating: UInt8(offset & 0xff), count: 32), verdict: .succeeded, receipt: receipt,
            loggedAt: loggedAt ?? offset, decidedAt: offset + 1000, decider: offset % 3)
    }

    static func known(_ row: InboxRow) -> KnownCommand {
        KnownCommand(
            digest: Array(row.digest.prefix(16)), verdict: row.verdict, receipt: row.receipt, decidedAt: row.decidedAt)
    }

    /// As a batch does it.
    static func append(_ rows: [InboxRow], in transaction: any SQLTransaction) throws {
        let found = try Inbox.find(rows.compactMap(\.key), in: transaction)
        try Inbox.append(rows, generation: found.generation, in: transaction)
    }

    static func positions(_ database: any SQLDatabase) throws -> [[Int64]] {
        let tables = Inbox.tables.map { "SELECT log, log_offset FROM \($0)" }.joined(separator: " UNION ALL ")
        return try database.read("SELECT log, log_offset FROM (\(tables)) AS inbox ORDER BY log, log_offset").map {
            [try $0.integer(0), try $0.integer(1)]
        }
    }

    @Test(arguments: SQLEngine.allCases)
    func findsWhatWasAppended(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let rows = (0..<100).map { Self.row(offset: $0, receipt: [UInt8](repeating: 1, count: Int($0) * 40)) }
        try database.transaction { try Self.append(rows, in: $0) }
        let missing = CommandKey(app: "app", source: "source", id: "missing")
        let keys = rows.compactMap(\.key)
        let found = try database.transaction { try Inbox.find(keys + [missing] + keys.prefix(3), in: $0) }
        #expect(found.commands == Dictionary(uniqueKeysWithValues: zip(keys, rows.map(Self.known))))
        #expect(try database.transaction { try Inbox.find([] as [CommandKey], in: $0) }.commands.isEmpty)
        // The three parts of a key are kept apart.
        for shifted in [
            CommandKey(app: "appsource", source: "", id: keys[0].id),
            CommandKey(app: "app", source: SourceID("source" + keys[0].id.text), id: ""),
            CommandKey(app: "", source: "appsource", id: keys[0].id),
        ] {
            #expect(try database.transaction { try Inbox.find([shifted], in: $0) }.commands.isEmpty)
        }
    }

    @Test(arguments: SQLEngine.allCases)
    func aCommandIsRecordedOnce(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        try database.transaction { try Self.append([Self.row(offset: 1, id: "same")], in: $0) }
        let repeats = [
            [Self.row(offset: 2, id: "same")],
            [Self.row(offset: 3, id: "twice"), Self.row(offset: 4, id: "twice")],
            [Self.row(offset: 5, keyed: false), Self.row(offset: 5, keyed: false)],
        ]
        for rows in repeats {
            #expect(failure { try database.transaction { try Self.append(rows, in: $0) } }?.kind == .conflict)
        }
        #expect(try Self.positions(database).count == 1)
    }

    /// What takes no command's id is kept under its position, whatever else is kept.
    @Test(arguments: SQLEngine.allCases)
    func unauthenticatedInputHasNoKeyToCollideWith(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let rows = (0..<3).flatMap { offset in
            (Int32(0)..<2).flatMap { partition in
                (Int64(0)..<2).map {
                    Self.row(offset: offset, partition: partition, incarnation: $0, keyed: false)
                }
            }
        }
        try database.transaction { try Self.append(rows, in: $0) }
        #expect(try Self.positions(database).count == 12)
    }

    @Test func theNumbersOfLogsAndKeysStayWhatTheyAre() throws {
        // What stands in stores must be found by every later version.
        #expect(Self.log(3, incarnation: 7).number == 17_326_217_385_550)
        #expect(
            StoredKey(CommandKey(app: "app", source: "source", id: "id")).bytes
                == [
                    194, 235, 170, 218, 82, 60, 173, 10, 125, 223, 162, 164, 140, 30, 58, 197,
                ])
        #expect(
            StoredKey(LogPosition(log: Self.log(), offset: 5)).bytes
                == [
                    244, 87, 199, 18, 88, 5, 33, 107, 22, 81, 55, 80, 139, 180, 81, 89,
                ])
        let key = StoredKey(CommandKey(app: "a", source: "b", id: "c"))
        #expect(try StoredKey(bytes: key.bytes) == key)
        #expect(Verdict.allCases.map(\.number) == [1, 2, 3, 4, 5, 6, 7, 8])
        for verdict in Verdict.allCases { #expect(try Verdict(number: verdict.number) == verdict) }
        #expect(failure { try Verdict(number: 9) }?.kind == .invalid)
    }

    /// A prepared statement keeps its plan while the table grows.
    @Test func alsoASmallTableIsReadByItsKey() throws {
        let store = try TestStore(.postgresql)
        let database = try store.openMigrated()
        try database.transaction { transaction in
            try Self.append([Self.row(offset: 1)], in: transaction)
            for table in Inbox.tables { try transaction.execute("ANALYZE \(table)") }
        }
        let key = StoredKey(CommandKey(app: "a", source: "b", id: "c"))
        let plan = try database.read("EXPLAIN \(Inbox.findAll)", [.blob(key.bytes)]).map { try $0.text(0) }
        #expect(plan.count > 4 && !plan.contains { $0.contains("Seq Scan") }, "\(plan)")
    }

    /// ```
    /// batch                      keeper
    /// BEGIN, first read
    ///                            a generation begins, COMMIT
    /// find -> conflict
    /// ```
    @Test func aBatchDoesNotGoOnInAnEarlierGeneration() throws {
        let store = try TestStore(.postgresql)
        let batch = try store.openMigrated()
        let keeper = try store.open()
        let error = failure {
            try batch.transaction { transaction in
                _ = try transaction.query("SELECT 1 FROM progress")
                try keeper.transaction { _ = try $0.execute("UPDATE inbox_state SET newest = newest + 1") }
                _ = try Inbox.find([] as [CommandKey], in: transaction)
            }
        }
        #expect(error?.kind == .conflict)
    }

    @Test(arguments: SQLEngine.allCases)
    func whoDecidedHasANumber(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        func number(_ apps: String, _ code: String) throws -> Int64 {
            try database.transaction { try Deciders.number(of: Decider(apps: apps, code: code), in: $0) }
        }
        let numbers = try [number("a", "1"), number("b", "1"), number("a", "2"), number("b", "1"), number("a", "1")]
        #expect(numbers == [1, 2, 3, 2, 1])
    }
}
