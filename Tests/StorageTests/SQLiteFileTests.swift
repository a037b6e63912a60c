// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Foundation
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

    @Test func aKilledProcessLeavesNoLock() throws {
        let store = try TestStore(.sqlite)
        try SQLiteDatabase(path: store.path).close()
        let holder = Process()
        holder.executableURL = URL(fileURLWithPath: "/usr/bin/flock")
        // -o: the child does not inherit the lock, so the lock dies with the process that is killed.
        holder.arguments = ["-o", store.path + ".lock", "sh", "-c", "echo > '\(store.path).held'; sleep 3"]
        try holder.run()
        for _ in 0..<1000 where !FileManager.default.fileExists(atPath: store.path + ".held") { usleep(5_000) }
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
}
