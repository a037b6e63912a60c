// SPDX-License-Identifier: Apache-2.0

import TestKit
import Testing

@testable import Storage

@Suite struct OutboxTests {
    static func row(_ offset: Int64, partition: Int32 = 0, incarnation: Int64 = 0) -> OutboxRow {
        OutboxRow(
            position: LogPosition(log: InboxTests.log(partition, incarnation: incarnation), offset: offset),
            messages: [UInt8(offset & 0xff), 7])
    }

    private func unpublished(
        _ database: any SQLDatabase, _ log: LogID = InboxTests.log(), after: Int64 = -1, limit: Int = 100
    ) throws -> [OutboxRow] {
        try database.transaction { try Outbox.unpublished(log, after: after, limit: limit, in: $0) }
    }

    @Test(arguments: SQLEngine.allCases)
    func unpublishedRowsComeInOrder(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        var rows: [OutboxRow] = []
        for offset: Int64 in [7, 2, 100, 9, 11, 10, 3] {
            rows += [Self.row(offset), Self.row(offset, partition: 1), Self.row(offset, incarnation: 1)]
        }
        try database.transaction { try Outbox.append(rows, in: $0) }
        #expect(try unpublished(database) == [2, 3, 7, 9, 10, 11, 100].map { Self.row($0) })
        #expect(try unpublished(database, after: 3, limit: 3) == [7, 9, 10].map { Self.row($0) })
        #expect(try unpublished(database, after: 100).isEmpty)
        let error = failure { try database.transaction { try Outbox.append([Self.row(9)], in: $0) } }
        #expect(error?.kind == .conflict)
    }

    @Test(arguments: SQLEngine.allCases)
    func whatIsPublishedIsGone(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let (first, second) = (InboxTests.log(), InboxTests.log(1))
        try database.transaction { transaction in
            try Outbox.append((0..<10).flatMap { [Self.row($0), Self.row($0, partition: 1)] }, in: transaction)
            try Outbox.remove(
                [
                    Outbox.Published(first, after: -1, through: 6), Outbox.Published(second, after: -1, through: -1),
                ], in: transaction)
        }
        #expect(try unpublished(database, first) == (7..<10).map { Self.row($0) })
        #expect(try unpublished(database, second).count == 10)
        try database.transaction { try Outbox.remove([Outbox.Published(second, after: -1, through: 99)], in: $0) }
        #expect(try unpublished(database, second).isEmpty)
        #expect(try unpublished(database, first).count == 3)
        // What is said to be gone is not looked for.
        try database.transaction { try Outbox.remove([Outbox.Published(first, after: 8, through: 9)], in: $0) }
        #expect(try unpublished(database, first) == [7, 8].map { Self.row($0) })
    }
}
