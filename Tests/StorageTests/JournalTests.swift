// SPDX-License-Identifier: Apache-2.0

import Contracts
import TestKit
import Testing

@testable import Storage

@Suite struct JournalTests {
    static let topic = "identity.link.commands.v1"

    static func entry(
        offset: Int64, partition: Int32 = 0, incarnation: Int64 = 0, id: CommandID? = nil, loggedAt: Int64? = nil,
        keyed: Bool = true, messages: [UInt8] = [1, 2]
    ) -> JournalEntry {
        JournalEntry(
            position: JournalPosition(topic: topic, partition: partition, incarnation: incarnation, offset: offset),
            key: keyed
                ? CommandKey(app: "app", source: "source", id: id ?? CommandID("\(incarnation)-\(partition)-\(offset)"))
                : nil,
            digest: [9, UInt8(offset & 0xff)], type: "type", subject: offset % 2 == 0 ? "even" : nil,
            outcome: "succeeded", reason: offset % 3 == 0 ? "reason" : nil, messages: messages,
            loggedAt: loggedAt ?? offset, decidedAt: offset + 1000)
    }

    @Test(arguments: SQLEngine.allCases)
    func findsWhatWasAppended(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let entries = (0..<100).map { Self.entry(offset: $0, messages: [UInt8](repeating: 1, count: Int($0) * 40)) }
        try database.transaction { try Journal.append(entries, in: $0) }
        let missing = CommandKey(app: "app", source: "source", id: "missing")
        let keys = entries.compactMap(\.key)
        let found = try database.transaction { try Journal.find(keys + [missing] + keys.prefix(3), in: $0) }
        #expect(found == Dictionary(uniqueKeysWithValues: zip(keys, entries)))
        #expect(try database.transaction { try Journal.find([], in: $0) }.isEmpty)
        // The three parts of a key are kept apart.
        let shifted = CommandKey(app: "appsource", source: "", id: keys[0].id)
        #expect(try database.transaction { try Journal.find([shifted], in: $0) }.isEmpty)
    }

    @Test(arguments: SQLEngine.allCases)
    func aCommandIsRecordedOnce(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        try database.transaction { try Journal.append([Self.entry(offset: 1, id: "same")], in: $0) }
        let repeats = [
            [Self.entry(offset: 2, id: "same")],
            [Self.entry(offset: 1, id: "other")],
            [Self.entry(offset: 3, id: "twice"), Self.entry(offset: 4, id: "twice")],
        ]
        for entries in repeats {
            #expect(failure { try database.transaction { try Journal.append(entries, in: $0) } }?.kind == .conflict)
        }
        // The same position in another incarnation is another message.
        try database.transaction { try Journal.append([Self.entry(offset: 1, incarnation: 1, id: "new")], in: $0) }
        #expect(try database.read("SELECT COUNT(*) FROM journal") == [SQLRow([2])])
    }

    @Test(arguments: SQLEngine.allCases)
    func unauthenticatedInputHasNoKeyToCollideWith(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let entries = (0..<3).map { Self.entry(offset: $0, keyed: false) }
        try database.transaction { try Journal.append(entries, in: $0) }
        let read = try database.transaction {
            try Journal.unpublished(topic: Self.topic, partition: 0, incarnation: 0, after: -1, limit: 10, in: $0)
        }
        #expect(read == entries)
    }

    @Test(arguments: SQLEngine.allCases)
    func unpublishedEntriesComeInOrder(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        var entries: [JournalEntry] = []
        for offset: Int64 in [7, 2, 100, 9, 11, 10, 3] {
            entries.append(Self.entry(offset: offset))
            entries.append(Self.entry(offset: offset, partition: 1))
            entries.append(Self.entry(offset: offset, incarnation: 1))
        }
        try database.transaction { try Journal.append(entries, in: $0) }
        func offsets(after: Int64, limit: Int) throws -> [Int64] {
            try database.transaction {
                try Journal.unpublished(
                    topic: Self.topic, partition: 0, incarnation: 0, after: after, limit: limit, in: $0)
            }.map(\.position.offset)
        }
        #expect(try offsets(after: -1, limit: 100) == [2, 3, 7, 9, 10, 11, 100])
        #expect(try offsets(after: 3, limit: 3) == [7, 9, 10])
        #expect(try offsets(after: 100, limit: 3) == [])
    }

    @Test(arguments: SQLEngine.allCases)
    func historyIsReadNewestFirst(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        try database.transaction {
            try Journal.append((0..<6).map { Self.entry(offset: $0, id: CommandID("id\($0)")) }, in: $0)
        }
        try database.transaction { transaction in
            let even = try Journal.history(subject: "even", limit: 2, in: transaction)
            #expect(even.map(\.position.offset) == [4, 2])
            let all = try Journal.history(app: "app", limit: 100, in: transaction)
            #expect(all.map(\.position.offset) == [5, 4, 3, 2, 1, 0])
            #expect(try Journal.history(app: "app", source: "other", limit: 100, in: transaction).isEmpty)
            let one = try Journal.history(app: "app", source: "source", id: "id3", limit: 100, in: transaction)
            #expect(one.map(\.position.offset) == [3])
            #expect(try Journal.history(app: "app", id: "id2", limit: 100, in: transaction).count == 1)
        }
    }
}
