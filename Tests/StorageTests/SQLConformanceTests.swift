// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestKit
import Testing

@testable import Storage

/// What both engines promise about statements and transactions.
@Suite struct SQLConformanceTests {
    @Test(arguments: SQLEngine.allCases)
    func valuesComeBackAsTheyWere(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        let texts = [
            "", " ", "plain", "naïve – 日本語 🧑‍🚀", "12", "1e3", "0x10", "quote ' \" \\ $1 ?1", "line\nbreak\u{1}",
            String(repeating: "long ", count: 10_000),
        ]
        let blobs: [SQLValue] = [
            .null, .blob([]), .blob([0]), .blob([UInt8](0...255)), .blob(Array("12".utf8)),
            .blob([UInt8](repeating: 0xff, count: 1_000_000)),
        ]
        let numbers: [Int64] = [.min, .max, -1, 0, 1, 1 << 53 + 1]
        var rows: [[SQLValue]] = []
        for index in 0..<10 {
            let number = index < numbers.count ? numbers[index] : Int64(1000 + index)
            rows.append([.integer(number), .text(texts[index]), blobs[index % blobs.count]])
        }
        try database.transaction { transaction in
            try transaction.executeEach("INSERT INTO items (id, name, bytes) VALUES ($1, $2, $3)", rows)
        }
        let answers = try database.transaction { transaction in
            try transaction.queryEach("SELECT id, name, bytes FROM items WHERE id = $1", rows.map { [$0[0]] })
        }
        #expect(answers == rows.map { [SQLRow($0)] })
        let byText = try database.transaction { transaction in
            try transaction.queryEach("SELECT id FROM items WHERE name = $1", texts.map { [.text($0)] })
        }
        #expect(byText == rows.map { [SQLRow([$0[0]])] })
    }

    @Test(arguments: SQLEngine.allCases)
    func whatIsUndoneWasSeenAndLeavesNothing(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        let names = { (transaction: any SQLTransaction) in
            try transaction.query("SELECT name FROM items ORDER BY id").map { try $0.text(0) }
        }
        try database.transaction { transaction in
            try transaction.sendEach("INSERT INTO items (id, name) VALUES ($1, 'kept')", [[.integer(1)]])
            for _ in 0..<2 {
                let seen = try transaction.undoing {
                    try transaction.sendEach("INSERT INTO items (id, name) VALUES ($1, 'new')", [[.integer(2)]])
                    try transaction.execute("UPDATE items SET name = 'changed' WHERE id = 1")
                    return try names(transaction)
                }
                #expect(seen == ["changed", "new"])
                #expect(try names(transaction) == ["kept"])
            }
            try transaction.execute("INSERT INTO items (id, name) VALUES (2, 'later')")
        }
        #expect(try database.transaction(names) == ["kept", "later"])
    }

    /// What fails inside fails the transaction, as everywhere.
    @Test(arguments: SQLEngine.allCases)
    func aFailureIsNotUndone(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        #expect(throws: StorageError.self) {
            try database.transaction { transaction in
                try transaction.execute("INSERT INTO items (id, name) VALUES (1, 'one')")
                _ = try? transaction.undoing {
                    try transaction.execute("INSERT INTO items (id, name) VALUES (1, 'two')")
                }
            }
        }
        #expect(try database.read("SELECT id FROM items").isEmpty)
    }

    @Test(arguments: SQLEngine.allCases)
    func rowsRefuseTheWrongType(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let row = try #require(
            try store.openWithItems().transaction { transaction in
                try transaction.query("INSERT INTO items VALUES (7, NULL, $1) RETURNING id, name, bytes", [.blob([1])])
            }.first)
        #expect(try row.integer(0) == 7)
        #expect(try row.optionalInteger(0) == 7)
        #expect(try row.optionalText(1) == nil)
        #expect(try row.blob(2) == [1])
        for wrong in [
            failure { _ = try row.text(0) }, failure { _ = try row.text(1) }, failure { _ = try row.integer(2) },
            failure { _ = try row.optionalText(2) }, failure { _ = try row.value(3) },
            failure { _ = try row.value(-1) },
        ] {
            #expect(wrong?.kind == .invalid)
        }
    }

    @Test(arguments: SQLEngine.allCases)
    func parametersMayStandInAnyOrderAndRepeat(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        try database.transaction { transaction in
            try transaction.execute("INSERT INTO items (name, id) VALUES ($2, $1)", [1, "one"])
            try transaction.execute("INSERT INTO items (id, name) VALUES ($1, '$2 ?1 ' || $2 || $2)", [2, "two"])
        }
        let rows = try database.read(
            "SELECT name FROM items WHERE id >= $1 AND id <= $2 AND id >= $1 ORDER BY id", [1, 2])
        #expect(try rows.map { try $0.text(0) } == ["one", "$2 ?1 twotwo"])
    }

    @Test(arguments: SQLEngine.allCases)
    func answersStandInTheOrderOfTheSets(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        let order = (0..<1500).map { Int64(($0 * 7919) % 1500) }
        try database.transaction { transaction in
            let inserted = try transaction.queryEach(
                "INSERT INTO items (id, name) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING RETURNING id",
                order.map { [.integer($0), SQLValue("n\($0)")] })
            #expect(try inserted.map { try $0.first?.integer(0) } == order)
            let found = try transaction.queryEach(
                "SELECT id FROM items WHERE id >= $1 AND id < $1 + 3 ORDER BY id DESC", order.map { [.integer($0)] })
            for (id, rows) in zip(order, found) {
                #expect(try rows.map { try $0.integer(0) } == (id..<min(id + 3, 1500)).reversed())
            }
        }
    }

    /// Each run of a statement sees what the runs before it did.
    @Test(arguments: SQLEngine.allCases)
    func affectedRowsAreCounted(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        try database.transaction { transaction in
            let inserted = try transaction.executeEach(
                "INSERT INTO items (id) VALUES ($1) ON CONFLICT (id) DO NOTHING", [[1], [2], [1], [3]])
            #expect(inserted == [1, 1, 0, 1])
            #expect(try transaction.execute("UPDATE items SET name = NULL") == 3)
            #expect(try transaction.execute("SELECT id FROM items") == 0)
            #expect(try transaction.execute("CREATE TABLE other (id BIGINT)") == 0)
            #expect(try transaction.executeEach("DELETE FROM items WHERE id <= $1", [[2], [2], [9]]) == [2, 0, 1])
            #expect(try transaction.query("DELETE FROM items RETURNING id").isEmpty)
            #expect(try transaction.queryEach("SELECT 1", []).isEmpty)
            #expect(try transaction.executeEach("DELETE FROM items WHERE id = $1", []).isEmpty)
        }
    }

    /// What is only sent is there for who asks afterwards, and is committed.
    @Test(arguments: SQLEngine.allCases)
    func whatIsSentIsDone(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        try database.transaction { transaction in
            try transaction.sendEach("INSERT INTO items (id, name) VALUES ($1, $2)", [[1, "a"], [2, "b"]])
            try transaction.sendEach("UPDATE items SET name = $2 WHERE id = $1", [[2, "c"]])
            #expect(
                try transaction.query("SELECT id, name FROM items ORDER BY id")
                    == [[1, "a"], [2, "c"]].map { SQLRow($0) })
            try transaction.sendEach("INSERT INTO items (id, name) VALUES ($1, $2)", [])
            try transaction.sendEach("INSERT INTO items (id, name) VALUES ($1, $2)", [[3, "d"]])
            #expect(try transaction.execute("UPDATE items SET name = NULL") == 3)
            try transaction.sendEach("DELETE FROM items WHERE id = $1", [[1], [9]])
        }
        #expect(
            try database.read("SELECT id, name FROM items ORDER BY id") == [[2, nil], [3, nil]].map { SQLRow($0) })
        let connection = database.connectionNumber
        let error = failure {
            try database.transaction { transaction in
                try transaction.sendEach("DELETE FROM items WHERE id = $1", [[2]])
                // SQLite throws this one at once.
                try? transaction.sendEach("INSERT INTO items (id) VALUES ($1)", [[3]])
                throw StorageError.unavailable("something else")
            }
        }
        #expect(error?.message == "something else")
        #expect(try database.read("SELECT id FROM items ORDER BY id") == [[2], [3]].map { SQLRow($0) })
        #expect(database.connectionNumber == connection)
    }

    /// A failure of what is only sent is told at the latest by the commit; nothing is committed, and the connection is
    /// as good as before.
    @Test(
        arguments: SQLEngine.allCases, [0, 1, 2])
    func whatIsSentAndFailsIsNotCommitted(_ engine: SQLEngine, _ later: Int) throws {
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        try database.transaction { try $0.execute("INSERT INTO items (id) VALUES (1)") }
        let connection = database.connectionNumber
        var later = later
        let error = failure {
            try database.transaction { transaction in
                try transaction.execute("INSERT INTO items (id) VALUES (2)")
                try transaction.sendEach("INSERT INTO items (id) VALUES ($1)", [[3], [1], [4]])
                while later > 0 {
                    later -= 1
                    try transaction.sendEach("INSERT INTO items (id) VALUES ($1)", [[.integer(Int64(later) + 5)]])
                    if later == 0 { _ = try transaction.query("SELECT id FROM items") }
                }
            }
        }
        #expect(error?.kind == .conflict)
        #expect(error?.outcomeUnknown == false)
        #expect(try database.read("SELECT id FROM items") == [SQLRow([1])])
        #expect(database.connectionNumber == connection)
    }

    private static let largeRows: [[SQLValue]] = (0..<10_000).map { index in
        [.integer(Int64(index)), .blob([UInt8](repeating: UInt8(index % 251), count: 2048))]
    }

    /// 20 MB that nobody waits for, and an answer of 20 MB behind it.
    @Test(arguments: SQLEngine.allCases)
    func whatIsSentMayBeLarge(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        let rows = Self.largeRows
        try database.transaction { transaction in
            for part in 0..<10 {
                try transaction.sendEach(
                    "INSERT INTO items (id, bytes) VALUES ($1, $2)", Array(rows[part * 1000..<part * 1000 + 1000]))
            }
            #expect(try transaction.query("SELECT id, bytes FROM items ORDER BY id") == rows.map { SQLRow($0) })
        }
        #expect(try database.read("SELECT COUNT(*) FROM items") == [SQLRow([10_000])])
    }

    /// 20 MB each way: far more than all socket buffers together hold.
    @Test(arguments: SQLEngine.allCases)
    func largeBatchesGoThrough(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        let rows = Self.largeRows
        let answers = try database.transaction { transaction in
            try transaction.queryEach("INSERT INTO items (id, bytes) VALUES ($1, $2) RETURNING id, bytes", rows)
        }
        #expect(answers == rows.map { [SQLRow($0)] })
        let read = try database.transaction { transaction in
            try transaction.queryEach("SELECT id, bytes FROM items WHERE id = $1", rows.map { [$0[0]] })
        }
        #expect(read == answers)
    }

    @Test(arguments: SQLEngine.allCases)
    func whatTheBodyThrowsRollsBack(_ engine: SQLEngine) throws {
        struct Unhappy: Error {}
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        #expect(throws: Unhappy.self) {
            try database.transaction { transaction in
                try transaction.execute("INSERT INTO items (id) VALUES (1)")
                throw Unhappy()
            }
        }
        #expect(throws: Unhappy.self) { try database.transaction { _ in throw Unhappy() } }
        #expect(try database.transaction { _ in 5 } == 5)
        #expect(try database.read("SELECT id FROM items").isEmpty)
    }

    @Test(arguments: SQLEngine.allCases)
    func aFailureInTheMiddleOfABatchUndoesAll(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        var sets: [[SQLValue]] = (0..<1000).map { [.integer($0), .blob([UInt8](repeating: 1, count: 500))] }
        sets[500][0] = 3
        let error = failure {
            try database.transaction { transaction in
                try transaction.execute("INSERT INTO items (id) VALUES (5000)")
                try transaction.executeEach("INSERT INTO items (id, bytes) VALUES ($1, $2)", sets)
            }
        }
        #expect(error?.kind == .conflict)
        #expect(try database.read("SELECT id FROM items").isEmpty)
        sets[500][0] = 500
        try database.transaction { transaction in
            try transaction.executeEach("INSERT INTO items (id, bytes) VALUES ($1, $2)", sets)
        }
        #expect(try database.read("SELECT COUNT(*) FROM items") == [SQLRow([1000])])
    }

    /// A value that cannot be sent is noticed with half of the batch already on its way.
    @Test(arguments: SQLEngine.allCases)
    func aWrongParameterInTheMiddleOfABatchUndoesAll(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        for wrong: [SQLValue] in [[500], [500, "x", 1], [500, .text("nul \0 inside")]] {
            var sets: [[SQLValue]] = (0..<1000).map {
                [.integer($0), .text(String(repeating: "x", count: 300) + "\($0)")]
            }
            sets[500] = wrong
            let error = failure {
                try database.transaction { transaction in
                    try transaction.executeEach("INSERT INTO items (id, name) VALUES ($1, $2)", sets)
                }
            }
            #expect(error?.kind == .invalid)
            #expect(try database.read("SELECT id FROM items").isEmpty)
        }
    }

    @Test(arguments: SQLEngine.allCases)
    func aSwallowedFailureStillLosesTheTransaction(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        let error = failure {
            try database.transaction { transaction in
                try transaction.execute("INSERT INTO items (id) VALUES (1)")
                #expect(throws: StorageError.self) { try transaction.execute("INSERT INTO items (id) VALUES (1)") }
                #expect(throws: StorageError.self) { try transaction.execute("INSERT INTO items (id) VALUES (2)") }
            }
        }
        #expect(error?.kind == .conflict)
        #expect(try database.read("SELECT id FROM items").isEmpty)
    }

    @Test(arguments: SQLEngine.allCases)
    func bugsAreInvalidAndHarmless(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        let bugs: [(String, [SQLValue])] = [
            ("SELEKT 1", []), ("SELECT id FROM items WHERE id = $1", []), ("SELECT 1.5 * 2", []), ("", []),
            ("SELECT 1; SELECT 2", []),
        ]
        for (sql, parameters) in bugs {
            let error = failure { _ = try database.read(sql, parameters) }
            #expect(error?.kind == .invalid, "\(sql)")
        }
        #expect(try database.read("SELECT COUNT(*) FROM items") == [SQLRow([0])])
    }

    @Test(arguments: SQLEngine.allCases)
    func transactionsDoNotNestAndDoNotOutliveTheirBody(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        var escaped: (any SQLTransaction)?
        try database.transaction { transaction in
            escaped = transaction
            #expect(failure { try database.transaction { _ in } }?.kind == .invalid)
            try transaction.execute("INSERT INTO items (id) VALUES (1)")
        }
        #expect(failure { try escaped?.execute("DELETE FROM items") }?.kind == .invalid)
        #expect(try database.read("SELECT id FROM items") == [SQLRow([1])])
        database.close()
        database.close()
        #expect(failure { try database.transaction { _ in } }?.kind == .unavailable)
    }

    @Test(arguments: SQLEngine.allCases)
    func errorsDoNotQuoteValues(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        let secret = "s3cr3t-\(UUID().uuidString)"
        let attempts: [(String, [[SQLValue]])] = [
            ("INSERT INTO items (id, name) VALUES ($1, $2)", [[1, .text(secret)], [2, .text(secret)]]),
            ("INSERT INTO items (id, name) VALUES (CAST($1 AS BIGINT), $2)", [[.text(secret), .text(secret)]]),
            ("INSERT INTO items (id, name) VALUES ($1, $2)", [[1, .text(secret + "\0")]]),
            ("INSERT INTO items (id, name) VALUES ($1)", [[.text(secret)]]),
        ]
        for (sql, sets) in attempts {
            let error = failure { try database.transaction { try $0.executeEach(sql, sets) } }
            if let error { #expect(!"\(error)".contains(secret)) }
        }
    }

    @Test(arguments: SQLEngine.allCases)
    func manyDifferentStatementsDoNotPileUp(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        for number in 0..<600 {
            #expect(try database.read("SELECT id + \(number) FROM items").isEmpty)
        }
    }
}
