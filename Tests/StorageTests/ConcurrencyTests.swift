// SPDX-License-Identifier: Apache-2.0

import Contracts
import TestKit
import Testing

@testable import Storage

/// Two connections that get in each other's way. The interleaving is written out: one thread runs both sides.
@Suite struct ConcurrencyTests {
    /// ```
    /// one                                two
    /// BEGIN, read 1
    ///                                    update 1, COMMIT
    /// update 1 -> conflict
    /// ```
    @Test(arguments: [PostgreSQLDatabase.Isolation.repeatableRead, .serializable])
    func anUpdateOfWhatSomebodyChangedIsAConflict(_ isolation: PostgreSQLDatabase.Isolation) throws {
        let store = try TestStore(.postgresql)
        let one = try PostgreSQLDatabase.forTests(schema: store.name, isolation: isolation)
        let two = try PostgreSQLDatabase.forTests(schema: store.name, isolation: isolation)
        try store.openWithItems().transaction { try $0.execute("INSERT INTO items (id, name) VALUES (1, 'zero')") }
        let update = "UPDATE items SET name = $1 WHERE id = 1"
        let error = failure {
            try one.transaction { first in
                _ = try first.query("SELECT name FROM items WHERE id = 1")
                try two.transaction { try $0.execute(update, ["two"]) }
                try first.execute(update, ["one"])
            }
        }
        #expect(error?.kind == .conflict)
        #expect(error?.sqlState == "40001")
        #expect(try one.read("SELECT name FROM items") == [SQLRow(["two"])])
        try one.transaction { try $0.execute(update, ["one"]) }
        #expect(try two.read("SELECT name FROM items") == [SQLRow(["one"])])
    }

    /// All statements of a transaction see one state.
    @Test func aTransactionSeesASnapshot() throws {
        let store = try TestStore(.postgresql)
        let one = try store.openWithItems()
        let two = try store.open()
        try one.transaction { first in
            #expect(try first.query("SELECT id FROM items").isEmpty)
            try two.transaction { try $0.execute("INSERT INTO items (id) VALUES (1)") }
            #expect(try first.query("SELECT id FROM items").isEmpty)
        }
        #expect(try one.read("SELECT id FROM items") == [SQLRow([1])])
    }

    /// ```
    /// one                                two
    /// BEGIN, look for 1: nothing
    ///                                    insert 1, COMMIT
    /// insert 1 -> conflict
    /// ```
    @Test func anInsertThatSomebodyElseMadeIsAConflict() throws {
        let store = try TestStore(.postgresql)
        let one = try store.openWithItems()
        let two = try store.open()
        let error = failure {
            try one.transaction { first in
                #expect(try first.query("SELECT id FROM items WHERE name = 'same'").isEmpty)
                try two.transaction { try $0.execute("INSERT INTO items (id, name) VALUES (1, 'same')") }
                try first.execute("INSERT INTO items (id, name) VALUES (2, 'same')")
            }
        }
        #expect(error?.kind == .conflict)
        #expect(error?.sqlState == "23505")
    }

    @Test(arguments: SQLEngine.allCases)
    func aDuplicateIsAConflictOnBothEngines(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openWithItems()
        try database.transaction { try $0.execute("INSERT INTO items (id, name) VALUES (1, 'one')") }
        for sql in ["INSERT INTO items (id) VALUES (1)", "INSERT INTO items (id, name) VALUES (2, 'one')"] {
            #expect(failure { try database.transaction { try $0.execute(sql) } }?.kind == .conflict)
        }
    }

    /// Each side reads what the other one writes. A snapshot lets both through, a serial order does not; the conflict
    /// may show only at the commit.
    @Test(arguments: [PostgreSQLDatabase.Isolation.repeatableRead, .serializable])
    func writeSkewIsCaughtWhenSerializable(_ isolation: PostgreSQLDatabase.Isolation) throws {
        let store = try TestStore(.postgresql)
        _ = try store.openWithItems()
        let one = try PostgreSQLDatabase.forTests(schema: store.name, isolation: isolation)
        let two = try PostgreSQLDatabase.forTests(schema: store.name, isolation: isolation)
        let count = "SELECT COUNT(*) FROM items"
        let error = failure {
            try one.transaction { first in
                _ = try first.query(count)
                try two.transaction { second in
                    _ = try second.query(count)
                    try second.execute("INSERT INTO items (id) VALUES (2)")
                }
                try first.execute("INSERT INTO items (id) VALUES (1)")
            }
        }
        #expect(error?.kind == (isolation == .serializable ? .conflict : nil))
        #expect(error?.outcomeUnknown ?? false == false)
    }

    /// A zombie in the middle of its transaction loses against the claim that was committed meanwhile.
    @Test func aClaimWinsAgainstARunningAdvance() throws {
        let store = try TestStore(.postgresql)
        let zombie = try store.openMigrated()
        let heir = try store.open()
        let request = [PartitionClaimRequest(topic: "t", partition: 0)]
        let old = try #require(
            try zombie.transaction { try Progress.claim(request, clusterID: "c", owner: "zombie", in: $0) }.first)
        let update = ProgressUpdate(
            topic: "t", partition: 0, epoch: old.epoch, expectedOffset: nil, nextOffset: 5, publishedThrough: 4,
            logTime: 0)
        let error = failure {
            try zombie.transaction { transaction in
                _ = try transaction.query("SELECT 1 FROM outbox")
                try heir.transaction { try Progress.claim(request, clusterID: "c", owner: "heir", in: $0) }
                try Progress.advance([update], in: transaction)
            }
        }
        #expect(error?.kind == .conflict)
        let again = failure { try zombie.transaction { try Progress.advance([update], in: $0) } }
        #expect(again?.kind == .fenced([TopicPartition(topic: "t", partition: 0)]))
    }
}
