// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestKit
import Testing

@testable import Storage

/// What is particular to a store in a file.
@Suite struct SQLiteFileTests {
    @Test func aSecondReplicaIsRefused() throws {
        let store = try TestStore(.sqlite)
        let first = try SQLiteDatabase(path: store.path)
        let error = failure { try SQLiteDatabase(path: store.path) }
        #expect(error?.kind == .unavailable)
        #expect(error?.message.contains("\(store.path) is in use by process \(getpid())") == true)
        #expect(error?.message.contains("\(store.path).lock") == true)
        try first.transaction { try $0.execute("CREATE TABLE t (id BIGINT)") }
        first.close()
        #expect(try SQLiteDatabase(path: store.path).read("SELECT id FROM t").isEmpty)
    }

    /// A child has its parent's descriptors until it runs its program, as this duplicate stands for.
    @Test func aClosedStoreLeavesNoLockToAChildThatIsBeingMade() throws {
        let store = try TestStore(.sqlite)
        let first = try SQLiteDatabase(path: store.path)
        let inherited = try #require(descriptor(of: store.path + ".lock").map { dup($0) })
        defer { close(inherited) }
        #expect(failure { try SQLiteDatabase(path: store.path) }?.kind == .unavailable)
        first.close()
        #expect(try SQLiteDatabase(path: store.path).transaction { _ in true })
    }

    /// - Returns: one of this process's descriptors of an open file.
    private func descriptor(of path: String) -> CInt? {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return all.compactMap(CInt.init).first {
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path
        }
    }

    @Test func aKilledProcessLeavesNoLock() throws {
        let store = try TestStore(.sqlite)
        try SQLiteDatabase(path: store.path).close()
        let holder = Process()
        holder.executableURL = URL(fileURLWithPath: "/usr/bin/flock")
        // -o: the child does not inherit the lock, so the lock dies with the process that is killed.
        holder.arguments = ["-o", store.path + ".lock", "sh", "-c", "echo > '\(store.path).held'; sleep 60"]
        // What is left of it for a minute keeps nobody waiting for the end of this test's output.
        holder.standardOutput = FileHandle.nullDevice
        holder.standardError = FileHandle.nullDevice
        try holder.run()
        for _ in 0..<12_000 where !FileManager.default.fileExists(atPath: store.path + ".held") { usleep(5_000) }
        #expect(failure { try SQLiteDatabase(path: store.path) }?.kind == .unavailable)
        kill(holder.processIdentifier, SIGKILL)
        holder.waitUntilExit()
        #expect(try SQLiteDatabase(path: store.path).transaction { _ in true })
    }

    @Test func settingsAreThoseOfTheDesign() throws {
        let store = try TestStore(.sqlite)
        for (synchronous, number) in [(SQLiteDatabase.Synchronous.full, 2), (.normal, 1)] {
            let database = try SQLiteDatabase(path: store.path, synchronous: synchronous)
            let expected: [(String, SQLValue)] = [
                ("journal_mode", "wal"), ("synchronous", SQLValue(number)), ("wal_autocheckpoint", 16_384),
                ("cache_size", -32_768), ("foreign_keys", 0), ("busy_timeout", 5000),
            ]
            for (name, value) in expected {
                #expect(try database.read("PRAGMA \(name)") == [SQLRow([value])], "\(name)")
            }
            database.close()
        }
    }

    @Test func onlyTheOwnerMayReadTheFiles() throws {
        let store = try TestStore(.sqlite)
        let database = try SQLiteDatabase(path: store.path)
        try database.transaction { try $0.execute("CREATE TABLE t (id BIGINT)") }
        for suffix in ["", "-wal", "-shm", ".lock"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: store.path + suffix)
            #expect(attributes[.posixPermissions] as? Int == 0o600, "\(suffix)")
        }
    }

    @Test func filesThatCannotBeOpenedAreNamed() throws {
        let store = try TestStore(.sqlite)
        let missing = store.path + "/no/store.sqlite"
        let error = failure { try SQLiteDatabase(path: missing) }
        #expect(error?.kind == .unavailable)
        #expect(error?.message.contains(missing) == true)

        try Data("this is no database, but long enough to be taken for one".utf8)
            .write(to: URL(fileURLWithPath: store.path))
        let damaged = failure { try SQLiteDatabase(path: store.path) }
        #expect(damaged?.kind == .unavailable)
        #expect(damaged?.message.contains(store.path) == true)
        // The refused file is not kept locked.
        try FileManager.default.removeItem(atPath: store.path)
        #expect(try SQLiteDatabase(path: store.path).transaction { _ in true })
    }

    @Test func aFullDiskIsUnavailableAndUndone() throws {
        let store = try TestStore(.sqlite)
        let database = try store.openWithItems()
        try database.transaction { try $0.execute("INSERT INTO items (id) VALUES (1)") }
        // The same error that a full disk gives.
        _ = try database.read("PRAGMA max_page_count = 20")
        let error = failure {
            try database.transaction { transaction in
                try transaction.execute("INSERT INTO items (id) VALUES (2)")
                try transaction.execute(
                    "INSERT INTO items (id, bytes) VALUES (3, $1)", [.blob([UInt8](repeating: 1, count: 200_000))])
            }
        }
        #expect(error?.kind == .unavailable)
        #expect(error?.outcomeUnknown == false)
        #expect(try database.read("SELECT id FROM items") == [SQLRow([1])])
        _ = try database.read("PRAGMA max_page_count = 100000")
        try database.transaction { try $0.execute("INSERT INTO items (id) VALUES (2)") }
    }

    @Test func anotherWriterIsWaitedForAndThenUnavailable() throws {
        let store = try TestStore(.sqlite)
        let database = try store.openWithItems()
        _ = try database.read("PRAGMA busy_timeout = 50")
        // Somebody works on the file with other tools, which do not know the lock file.
        let tool = try RawSQLite(store.path)
        tool.run("BEGIN IMMEDIATE")
        #expect(failure { try database.transaction { _ in } }?.kind == .unavailable)
        tool.run("ROLLBACK")
        #expect(try database.transaction { _ in true })
    }

    @Test func writingWhereItIsForbiddenIsUnavailable() throws {
        let store = try TestStore(.sqlite)
        let database = try store.openWithItems()
        let error = failure {
            try database.transaction { transaction in
                _ = try transaction.query("PRAGMA query_only = ON")
                try transaction.execute("INSERT INTO items (id) VALUES (1)")
            }
        }
        #expect(error?.kind == .unavailable)
        #expect(error?.sqlState == "8")
        #expect(error?.outcomeUnknown == false)
        // Nor does a transaction begin that only reads: each one may write.
        #expect(failure { try database.read("SELECT id FROM items") }?.kind == .unavailable)
        database.close()
        #expect(try store.open().read("SELECT id FROM items").isEmpty)
    }

    @Test func mistakesAreNoOutages() throws {
        let store = try TestStore(.sqlite)
        let database = try store.openWithItems()
        for sql in ["SELECT nothing FROM items", "INSERT INTO none (id) VALUES (1)", "no sql"] {
            #expect(failure { try database.transaction { try $0.execute(sql) } }?.kind == .invalid, "\(sql)")
        }
    }
}

// MARK: Another file in the place of the open one

extension SQLiteFileTests {
    private func names(_ database: any SQLDatabase) throws -> [String] {
        try database.read("SELECT name FROM items ORDER BY id").map { try $0.text(0) }
    }

    private func insert(_ id: Int64, _ name: String, _ database: any SQLDatabase) throws {
        try database.transaction {
            _ = try $0.execute("INSERT INTO items (id, name) VALUES ($1, $2)", [.integer(id), .text(name)])
        }
    }

    private func rename(_ path: String, _ other: String) throws {
        try #require(Foundation.rename(path, other) == 0)
    }

    /// A store whose copy was made when it had only its first row. The second one stands in the log alone.
    private func prepare(_ store: TestStore) throws -> any SQLDatabase {
        let database = try store.openWithItems()
        try insert(1, "one", database)
        try RawSQLite(store.path).run("VACUUM INTO '\(store.path).copy'")
        try insert(2, "two", database)
        return database
    }

    @Test func aCopyThatIsPutBackIsANewConnection() throws {
        let store = try TestStore(.sqlite)
        let database = try prepare(store)
        #expect(database.connectionNumber == 1)
        try rename(store.path + ".copy", store.path)
        // The log of the file before must not be played into the copy.
        #expect(try names(database) == ["one"])
        #expect(database.connectionNumber == 2)
        try insert(3, "three", database)
        #expect(try names(database) == ["one", "three"])
        #expect(database.connectionNumber == 2)
        database.close()
        #expect(try names(try SQLiteDatabase(path: store.path)) == ["one", "three"])
    }

    /// Inside the transaction, before any statement, the new number can be seen.
    @Test func theNumberIsRaisedBeforeTheTransactionRuns() throws {
        let store = try TestStore(.sqlite)
        let database = try prepare(store)
        try rename(store.path + ".copy", store.path)
        #expect(try database.transaction { _ in database.connectionNumber } == 2)
    }

    /// The service is stopped without having noticed: what it leaves behind must not spoil the copy.
    @Test func aCopyThatIsPutBackSurvivesTheEnd() throws {
        let store = try TestStore(.sqlite)
        let database = try prepare(store)
        try rename(store.path + ".copy", store.path)
        database.close()
        let next = try SQLiteDatabase(path: store.path)
        #expect(try names(next) == ["one"])
    }

    @Test func aMissingFileIsUnavailableAndIsNotMadeAnew() throws {
        let store = try TestStore(.sqlite)
        let database = try prepare(store)
        try rename(store.path, store.path + ".aside")
        for _ in 0..<2 {
            let error = failure { try names(database) }
            #expect(error?.kind == .unavailable)
            #expect(error?.message.contains(store.path) == true)
            #expect(!FileManager.default.fileExists(atPath: store.path))
        }
        #expect(database.connectionNumber == 1)
        // What was moved away is whole, although it was moved without its log.
        try #require(Glibc.link(store.path + ".aside", store.path + ".look") == 0)
        #expect(try names(try SQLiteDatabase(path: store.path + ".look")) == ["one", "two"])
        try rename(store.path + ".aside", store.path)
        #expect(try names(database) == ["one", "two"])
        #expect(database.connectionNumber == 2)
        database.close()
        #expect(failure { try names(database) }?.message.contains("is closed") == true)
    }

    /// A copy that was taken with its log keeps it.
    @Test func theLogOfTheCopyIsKept() throws {
        let store = try TestStore(.sqlite)
        let database = try prepare(store)
        let other = try TestStore(.sqlite)
        let copied = try SQLiteDatabase(path: other.path)
        try copied.transaction { _ = try $0.execute("CREATE TABLE items (id BIGINT, name TEXT)") }
        try insert(9, "nine", copied)
        for suffix in ["-wal", ""] {
            try FileManager.default.copyItem(atPath: other.path + suffix, toPath: store.path + ".new" + suffix)
        }
        for suffix in ["-wal", ""] { try rename(store.path + ".new" + suffix, store.path + suffix) }
        #expect(try names(database) == ["nine"])
        #expect(database.connectionNumber == 2)
    }
}
