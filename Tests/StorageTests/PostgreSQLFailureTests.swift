// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import Synchronization
import TestKit
import Testing

@testable import Storage

/// What happens when the server or the way to it fails.
@Suite struct PostgreSQLFailureTests {

    private func ownSession(_ transaction: any SQLTransaction) throws -> SQLValue {
        .integer(try #require(try transaction.query("SELECT pg_backend_pid()").first).integer(0))
    }

    /// Ends the session and waits until it is gone.
    private func end(_ session: SQLValue, from database: any SQLDatabase) throws {
        _ = try database.read("SELECT pg_terminate_backend(CAST($1 AS INTEGER), 25000)", [session])
    }

    @Test func aSessionEndedBeforeTheCommitIsUnavailableAndMadeAnew() throws {
        let store = try TestStore(.postgresql)
        let database = try store.openWithItems()
        let operatorsTool = try store.open()
        let error = failure {
            try database.transaction { transaction in
                try transaction.execute("INSERT INTO items (id) VALUES (1)")
                try end(try ownSession(transaction), from: operatorsTool)
            }
        }
        #expect(error?.kind == .unavailable)
        #expect(error?.outcomeUnknown == true)
        #expect(try database.read("SELECT id FROM items").isEmpty)
        try database.transaction { try $0.execute("INSERT INTO items (id) VALUES (1)") }
        #expect(try database.read("SELECT id FROM items") == [SQLRow([1])])
    }

    @Test func aSessionEndedBetweenStatementsIsUnavailable() throws {
        let store = try TestStore(.postgresql)
        let database = try store.openWithItems()
        let operatorsTool = try store.open()
        let rows: [[SQLValue]] = (0..<5000).map { [.integer($0), .blob([UInt8](repeating: 1, count: 2000))] }
        let error = failure {
            try database.transaction { transaction in
                try end(try ownSession(transaction), from: operatorsTool)
                try transaction.executeEach("INSERT INTO items (id, bytes) VALUES ($1, $2)", rows)
            }
        }
        #expect(error?.kind == .unavailable)
        #expect(error?.outcomeUnknown == false)
        #expect(try database.read("SELECT id FROM items").isEmpty)
    }

    /// A session that ended while nothing ran is noticed by the next transaction, and mended by the one after it.
    @Test func anIdleSessionThatEndedIsMadeAnew() throws {
        let store = try TestStore(.postgresql)
        let database = try store.openWithItems()
        let session = try database.transaction { try ownSession($0) }
        try end(session, from: try store.open())
        let error = failure { try database.read("SELECT 1") }
        #expect(error?.kind == .unavailable)
        #expect(error?.outcomeUnknown == false)
        #expect(try database.read("SELECT 1") == [SQLRow([1])])
    }

    /// A statement that was only sent and that the server refuses is known not to be committed, whatever the refusal says.
    @Test func whatIsSentAndRefusedHasAKnownOutcome() throws {
        let store = try TestStore(.postgresql)
        let database = try store.openWithItems()
        let error = failure {
            try database.transaction { transaction in
                try transaction.execute("SET LOCAL statement_timeout TO 50")
                try transaction.execute("INSERT INTO items (id) VALUES (1)")
                try transaction.sendEach("SELECT pg_sleep(CAST($1 AS INTEGER))", [[5]])
            }
        }
        #expect(error?.kind == .unavailable)
        #expect(error?.sqlState == "57014")
        #expect(error?.outcomeUnknown == false)
        #expect(try database.read("SELECT id FROM items").isEmpty)
    }

    /// The server is asked to keep the outbox and the sagas as they are, once.
    @Test(arguments: ["outbox", "saga"]) func longRowsAreNotCompressed(_ table: String) throws {
        let store = try TestStore(.postgresql)
        let database = try store.open()
        let options = "SELECT CAST(reloptions AS TEXT) FROM pg_class WHERE oid = to_regclass('\(table)')"
        for _ in 0..<2 {
            try Migrator(StorageSchema.migrations).run(on: database)
            #expect(try database.read(options) == [SQLRow(["{toast_tuple_target=8160}"])])
        }
    }

    /// The commit arrived, and its answer got lost: the changes are there although the transaction threw.
    @Test func aCommitWithoutAnswerHasAnUnknownOutcome() throws {
        let store = try TestStore(.postgresql)
        let watcher = try store.openWithItems()
        let proxy = try CuttingProxy(to: TestStore.serverURL())
        defer { proxy.stop() }
        let database = try PostgreSQLDatabase(url: proxy.url, schema: store.name, logger: .quiet)
        proxy.set(.loseAnswerTo("COMMIT"))
        let error = failure { try database.transaction { try $0.execute("INSERT INTO items (id) VALUES (1)") } }
        #expect(error?.kind == .unavailable)
        #expect(error?.outcomeUnknown == true)
        #expect(try watcher.read("SELECT id FROM items") == [SQLRow([1])])
        proxy.set(.none)
        #expect(try database.read("SELECT id FROM items") == [SQLRow([1])])
    }

    @Test func aSilentServerIsGivenUp() throws {
        let store = try TestStore(.postgresql)
        _ = try store.openWithItems()
        let proxy = try CuttingProxy(to: TestStore.serverURL())
        defer { proxy.stop() }
        let database = try PostgreSQLDatabase(
            url: proxy.url, schema: store.name, statementTimeout: .seconds(2), logger: .quiet)
        proxy.set(.silentFrom("INSERT"))
        let clock = ContinuousClock()
        let start = clock.now
        let error = failure { try database.transaction { try $0.execute("INSERT INTO items (id) VALUES (1)") } }
        #expect(error?.kind == .unavailable)
        #expect(error?.outcomeUnknown == false)
        #expect(clock.now - start < .seconds(60))
        proxy.set(.refuse)
        #expect(failure { try database.read("SELECT 1") }?.kind == .unavailable)
        #expect(failure { try database.read("SELECT 1") }?.kind == .unavailable)
        proxy.set(.none)
        #expect(try database.read("SELECT id FROM items").isEmpty)
    }

    /// A frozen replica does not keep its locks.
    @Test func aTransactionThatStandsStillIsEnded() throws {
        let store = try TestStore(.postgresql)
        let watcher = try store.openWithItems()
        let database = try PostgreSQLDatabase(
            url: TestStore.serverURL(), schema: store.name, idleTransactionTimeout: .milliseconds(500), logger: .quiet)
        let sessions = "SELECT 1 FROM pg_stat_activity WHERE pid = CAST($1 AS INTEGER)"
        let error = failure {
            try database.transaction { transaction in
                let session = try ownSession(transaction)
                try transaction.execute("INSERT INTO items (id) VALUES (1)")
                let deadline = ContinuousClock.now + .seconds(60)
                while try !watcher.read(sessions, [session]).isEmpty, .now < deadline { usleep(10_000) }
                try transaction.execute("INSERT INTO items (id) VALUES (2)")
            }
        }
        #expect(error?.kind == .unavailable)
        #expect(try watcher.read("SELECT id FROM items").isEmpty)
    }

    // MARK: Locks that somebody keeps

    private static let update = "UPDATE items SET name = $1 WHERE id = 1"

    /// Runs a transaction on a thread of its own, and `body` as soon as that transaction holds row 1.
    /// - Returns: what the transaction failed with.
    private func whileLocked(
        _ store: TestStore, by url: String, _ work: @escaping @Sendable (any SQLTransaction) throws -> Void,
        body: () throws -> Void
    ) throws -> StorageError? {
        let name = store.name
        let outcome = Mutex<StorageError?>(nil)
        let end = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            let error = failure {
                try PostgreSQLDatabase(url: url, schema: name, logger: .quiet).transaction { try work($0) }
            }
            outcome.withLock { $0 = error }
            end.signal()
        }
        let watcher = try store.open()
        let deadline = ContinuousClock.now + .seconds(60)
        let look = "SELECT id FROM items WHERE id = 1 FOR UPDATE SKIP LOCKED"
        while try !watcher.read(look).isEmpty, .now < deadline { usleep(10_000) }
        let bodys = Result { try body() }
        end.wait()
        try bodys.get()
        return outcome.withLock { $0 }
    }

    private static let passing: [StorageError.Kind] = [.conflict, .unavailable]

    /// Tries until the row is got. Returns how often a lock was not free in time. On a busy machine this session may itself
    /// stand still for so long that it is ended.
    private func updatePatiently(_ database: any SQLDatabase, _ name: SQLValue) throws -> Int {
        let deadline = ContinuousClock.now + .seconds(60)
        var timeouts = 0
        while true {
            do {
                try database.transaction { try $0.execute(Self.update, [name]) }
                return timeouts
            } catch let error as StorageError where Self.passing.contains(error.kind) && .now < deadline {
                if error.isLockTimeout { timeouts += 1 }
            }
        }
    }

    /// Until a session that uses the table is seen in this state.
    private func waitUntil(_ watcher: any SQLDatabase, _ state: String, _ waitEvent: String) throws {
        let sessions = """
            SELECT 1 FROM pg_stat_activity WHERE state = $1 AND wait_event = $2
                AND pid IN (SELECT pid FROM pg_locks WHERE relation = CAST('items' AS REGCLASS))
            """
        let deadline = ContinuousClock.now + .seconds(60)
        while try watcher.read(sessions, [.text(state), .text(waitEvent)]).isEmpty {
            try #require(.now < deadline, "no session waits in \(waitEvent)")
            usleep(10_000)
        }
    }

    private func openImpatient(_ store: TestStore) throws -> PostgreSQLDatabase {
        try PostgreSQLDatabase(
            url: TestStore.serverURL(), schema: store.name, idleTransactionTimeout: .seconds(2), logger: .quiet)
    }

    /// The server waits for the client (`ClientRead`), or to write to it (`ClientWrite`). Neither counts as idle.
    @Test(arguments: ["ClientRead", "ClientWrite"])
    func aClientFrozenWithinAPipelineDoesNotKeepItsLocks(_ waitEvent: String) throws {
        let store = try TestStore(.postgresql)
        let watcher = try store.openWithItems()
        try watcher.transaction { try $0.execute("INSERT INTO items (id, name) VALUES (1, 'zero')") }
        let proxy = try CuttingProxy(to: TestStore.serverURL())
        defer { proxy.stop() }
        proxy.set(waitEvent == "ClientRead" ? .freezeBefore("freeze") : .freezeAfter("freeze"))
        let error = try whileLocked(store, by: proxy.url) { transaction in
            if waitEvent == "ClientRead" {
                // More than one read of the server, so that it has run the first one.
                let names: [SQLValue] = (0..<500).map { .text(String(repeating: "x", count: 1000) + "\($0)") }
                try transaction.executeEach(Self.update, (names + ["freeze"] + names).map { [$0] })
            } else {
                // More than the buffers of two sockets and the proxy.
                let answer = "RETURNING repeat(CAST($1 AS TEXT), 10000000)"
                _ = try transaction.query("UPDATE items SET name = 'large' WHERE id = 1 \(answer)", ["freeze"])
            }
        } body: {
            try waitUntil(watcher, "active", waitEvent)
            let clock = ContinuousClock()
            let start = clock.now
            #expect(try updatePatiently(openImpatient(store), "two") > 0)
            #expect(clock.now - start < .seconds(30))
            proxy.set(.none)
        }
        #expect(error?.kind == .unavailable)
        #expect(error?.endsPostgreSQLSession == true)
        #expect(try watcher.read("SELECT name FROM items") == [SQLRow(["two"])])
    }

    /// Neither who works in its transaction, however long, nor who only reads.
    @Test func whoDoesNotStandInTheWayIsNotEnded() throws {
        let store = try TestStore(.postgresql)
        _ = try store.openWithItems()
        // It stands still for as long as the other one works.
        let reader = try PostgreSQLDatabase(
            url: TestStore.serverURL(), schema: store.name, idleTransactionTimeout: .seconds(60), logger: .quiet)
        try reader.transaction { try $0.execute("INSERT INTO items (id, name) VALUES (1, 'zero')") }
        let error = try whileLocked(store, by: try TestStore.serverURL()) { transaction in
            try transaction.execute(Self.update, ["slow"])
            _ = try transaction.query("SELECT 1 FROM pg_sleep(10)")
        } body: {
            try reader.transaction { transaction in
                _ = try transaction.query("SELECT name FROM items")
                #expect(try updatePatiently(openImpatient(store), "two") > 3)
                #expect(try transaction.query("SELECT name FROM items") == [SQLRow(["zero"])])
            }
        }
        #expect(error == nil)
        #expect(try reader.read("SELECT name FROM items") == [SQLRow(["two"])])
    }

    /// A migration waits for as long as it takes.
    @Test func anExclusiveTransactionWaitsForItsLocks() throws {
        let store = try TestStore(.postgresql)
        let watcher = try store.openWithItems()
        try watcher.transaction { try $0.execute("INSERT INTO items (id, name) VALUES (1, 'zero')") }
        let error = try whileLocked(store, by: try TestStore.serverURL()) { transaction in
            try transaction.execute(Self.update, ["slow"])
            _ = try transaction.query("SELECT 1 FROM pg_sleep(5)")
        } body: {
            _ = try openImpatient(store).exclusiveTransaction { try $0.execute(Self.update, ["two"]) }
        }
        #expect(error == nil)
        #expect(try watcher.read("SELECT name FROM items") == [SQLRow(["two"])])
    }

    /// Another replica's migration changes a table that is in use.
    @Test func preparedStatementsSurviveMigrations() throws {
        let store = try TestStore(.postgresql)
        let database = try store.openWithItems()
        let other = try store.open()
        try database.transaction { try $0.execute("INSERT INTO items (id) VALUES (1)") }
        #expect(try database.read("SELECT * FROM items").first?.values.count == 3)
        try other.transaction { try $0.execute("ALTER TABLE items ADD COLUMN extra TEXT") }
        #expect(failure { try database.read("SELECT * FROM items") }?.kind == .unavailable)
        #expect(try database.read("SELECT * FROM items").first?.values.count == 4)
    }

    @Test func whatIsReadIsKnownByItsType() throws {
        let store = try TestStore(.postgresql)
        let database = try store.open()
        let row = try database.read(
            """
            SELECT CAST(7 AS SMALLINT), CAST(-7 AS INTEGER), 1 = 1, 1 = 2, CAST('x' AS VARCHAR(5)), CAST('n' AS NAME),
                CAST(NULL AS NUMERIC)
            """)
        #expect(row == [SQLRow([7, -7, 1, 0, "x", "n", nil])])
        #expect(failure { try database.read("SELECT SUM(CAST(1 AS BIGINT))") }?.kind == .invalid)
        #expect(failure { try database.read("SELECT CAST($1 AS BIGINT)", ["1"]) }?.kind == .invalid)
        #expect(failure { try database.read("SELECT CAST($1 AS SMALLINT)", [70_000]) }?.kind == .invalid)
        #expect(try database.read("SELECT CAST($1 AS SMALLINT), CAST($2 AS BOOLEAN)", [-3, 1]) == [SQLRow([-3, 1])])
    }

    @Test func anAbsentServerIsUnavailableAndTheUrlStaysSecret() throws {
        // Port 1 is not used by anything.
        let database = try PostgreSQLDatabase(
            url: "postgresql://somebody:hunter2secret@127.0.0.1:1/nowhere", schema: "s", logger: .quiet)
        let error = try #require(failure { try database.read("SELECT 1") })
        #expect(error.kind == .unavailable)
        #expect(!error.outcomeUnknown)
        #expect(!"\(error)".contains("hunter2secret"))
        for url in ["postgresql://a:hunter2secret@[::1", "nonsense hunter2secret", "postgres//x:hunter2secret@y/z"] {
            let error = try #require(failure { try PostgreSQLDatabase(url: url, schema: "s", logger: .quiet) })
            #expect(error.kind == .invalid)
            #expect(!"\(error)".contains("hunter2secret"))
        }
        for schema in ["", "a-b", "A", "1a", "a\"b", "ä", String(repeating: "a", count: 64)] {
            let error = failure { try PostgreSQLDatabase(url: "postgresql://x/y", schema: schema, logger: .quiet) }
            #expect(error?.kind == .invalid, "\(schema)")
        }
    }

    @Test func anUnknownDatabaseIsUnavailable() throws {
        var components = try #require(URLComponents(string: TestStore.serverURL()))
        components.path = "/no_such_database"
        let database = try PostgreSQLDatabase(url: try #require(components.string), schema: "s", logger: .quiet)
        let error = failure { try database.read("SELECT 1") }
        #expect(error?.kind == .unavailable)
        #expect(error?.message.contains("no_such_database") == true)
    }

    // MARK: New connections, and servers that refuse to work

    @Test func newConnectionsAreCounted() throws {
        let store = try TestStore(.postgresql)
        let tool = try store.openWithItems()
        let database = try store.open()
        #expect(database.connectionNumber == 0)
        _ = try database.read("SELECT 1")
        let session = try database.transaction { transaction in
            #expect(database.connectionNumber == 1)
            return try ownSession(transaction)
        }
        // A failed statement keeps the connection.
        #expect(failure { try database.read("SELECT 1 / 0") }?.kind == .invalid)
        _ = try database.read("SELECT 1")
        #expect(database.connectionNumber == 1)
        try end(session, from: tool)
        #expect(failure { try database.read("SELECT 1") }?.kind == .unavailable)
        #expect(database.connectionNumber == 1)
        #expect(try database.transaction { _ in database.connectionNumber } == 2)
        #expect(try database.exclusiveTransaction { _ in database.connectionNumber } == 2)
    }

    @Test func anAbsentServerIsNoConnection() throws {
        let database = try PostgreSQLDatabase(url: "postgresql://somebody@127.0.0.1:1/x", schema: "s", logger: .quiet)
        #expect(failure { try database.read("SELECT 1") }?.kind == .unavailable)
        #expect(database.connectionNumber == 0)
    }

    /// As on a primary that became a standby: reading works, writing does not, and another server is looked for.
    @Test func aServerThatOnlyReadsIsUnavailable() throws {
        let store = try TestStore(.postgresql)
        let database = try store.openWithItems()
        let insert = { try database.transaction { try $0.execute("INSERT INTO items (id) VALUES (1)") } }
        try database.transaction { _ = try $0.execute("SET default_transaction_read_only TO on") }
        #expect(try database.read("SELECT id FROM items").isEmpty)
        let before = database.connectionNumber
        let error = failure { try insert() }
        #expect(error?.kind == .unavailable)
        #expect(error?.sqlState == "25006")
        #expect(error?.outcomeUnknown == false)
        #expect(try insert() == 1)
        #expect(database.connectionNumber == before + 1)
    }

    /// The server's own limit on temporary files, of the class of errors (53) that a full disk has as well.
    @Test func aServerWithoutResourcesIsUnavailable() throws {
        let store = try TestStore(.postgresql)
        let database = try store.openWithItems()
        let error = failure {
            try database.transaction { transaction in
                try transaction.execute("SET LOCAL temp_file_limit TO 0")
                try transaction.execute("SET LOCAL work_mem TO 64")
                _ = try transaction.query(
                    "SELECT number FROM generate_series(1, 100000) AS number ORDER BY number DESC LIMIT 90000")
            }
        }
        #expect(error?.kind == .unavailable)
        #expect(error?.sqlState == "53400")
        #expect(try database.read("SELECT id FROM items").isEmpty)
    }

    @Test func tooManyConnectionsAreUnavailable() throws {
        let store = try TestStore(.postgresql)
        let tool = try store.openWithItems()
        try tool.transaction { _ = try $0.execute("CREATE ROLE \(store.name) LOGIN CONNECTION LIMIT 0") }
        defer { _ = try? tool.transaction { try $0.execute("DROP ROLE \(store.name)") } }
        var components = try #require(URLComponents(string: TestStore.serverURL()))
        components.user = store.name
        let database = try PostgreSQLDatabase(url: try #require(components.string), schema: store.name, logger: .quiet)
        let error = failure { try database.read("SELECT 1") }
        #expect(error?.kind == .unavailable)
        #expect(error?.message.contains("too many connections") == true)
    }

    /// The errors that cannot be brought about in a test, raised by hand: only their codes are looked at.
    @Test(arguments: [
        ("53100", StorageError.Kind.unavailable), ("53200", .unavailable), ("53300", .unavailable),
        ("57P03", .unavailable), ("58030", .unavailable), ("XX001", .unavailable), ("25006", .unavailable),
        ("40001", .conflict), ("40P01", .conflict), ("55P03", .conflict), ("23505", .conflict), ("23514", .invalid),
        ("22003", .invalid), ("54000", .invalid), ("54001", .invalid), ("42601", .invalid), ("42P01", .unavailable),
        ("42703", .unavailable), ("42883", .unavailable), ("55000", .unavailable), ("55006", .unavailable),
    ])
    func codesAreSorted(_ state: String, _ kind: StorageError.Kind) throws {
        let store = try TestStore(.postgresql)
        let database = try store.open()
        let error = failure {
            try database.transaction {
                try $0.execute("DO $$ BEGIN RAISE EXCEPTION 'by hand' USING ERRCODE = '\(state)'; END $$")
            }
        }
        #expect(error?.sqlState == state)
        #expect(error?.kind == kind)
        #expect(try database.read("SELECT 1") == [SQLRow([1])])
    }
}
