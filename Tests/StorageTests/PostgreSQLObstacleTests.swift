// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestKit
import Testing

@testable import Storage

/// What keeps a store from taking writes is seen by who writes nothing.
@Suite struct PostgreSQLObstacleTests {
    private let store: TestStore
    private let idle: any SQLDatabase
    private let other: any SQLDatabase

    init() throws {
        store = try TestStore(.postgresql)
        idle = try store.openWithItems()
        other = try store.open()
    }

    private func look(isSuspected: Bool = false) throws -> StorageError? {
        try idle.obstacle(to: ["items"], isSuspected: isSuspected)
    }

    @Test(arguments: [("ACCESS EXCLUSIVE", true), ("SHARE", true), ("ROW EXCLUSIVE", false), ("ACCESS SHARE", false)])
    func aTableThatAnotherSessionKeepsLocked(_ mode: String, _ keepsWritesOut: Bool) throws {
        let said = "keeps a lock on \(store.name).items"
        try other.transaction {
            let process = try #require(try $0.query("SELECT pg_backend_pid()", []).first?.integer(0))
            try $0.execute("LOCK TABLE items IN \(mode) MODE")
            #expect(try look() == nil, "one look says nothing: it may be gone by the next")
            for _ in 0..<3 {
                let problem = try look()
                #expect((problem?.message == "another session (process \(process)) \(said)") == keepsWritesOut)
                #expect((problem == nil) != keepsWritesOut)
            }
        }
        #expect(try look() == nil)
    }

    /// A table that is changed: the change waits for a reader, and whoever writes waits for the change.
    @Test func aLockThatIsWaitedFor() throws {
        let changes = DispatchSemaphore(value: 0)
        let name = store.name
        try other.transaction { transaction in
            _ = try transaction.query("SELECT id FROM items", [])
            Thread.detachNewThread {
                let third = try? PostgreSQLDatabase.forTests(schema: name)
                _ = try? third?.transaction { try $0.execute("ALTER TABLE items ADD COLUMN more BIGINT") }
                changes.signal()
            }
            let deadline = ContinuousClock.now + .seconds(60)
            while try look() == nil { try #require(.now < deadline) }
            #expect(try #require(try look()).message.contains(") waits for a lock on \(store.name).items"))
        }
        changes.wait()
        #expect(try look() == nil)
    }

    /// Of no process.
    @Test func aLockOfAPreparedTransaction() throws {
        try other.transaction {
            try $0.execute("LOCK TABLE items IN SHARE MODE")
            try $0.execute("PREPARE TRANSACTION '\(store.name)'")
        }
        #expect(try look(isSuspected: true)?.message == "a prepared transaction keeps a lock on \(store.name).items")
        try other.transaction {
            try $0.execute("COMMIT")
            try $0.execute("ROLLBACK PREPARED '\(store.name)'")
        }
        #expect(try look() == nil)
    }

    /// Somebody has waited for it already.
    @Test func aLockThatIsSuspectedIsToldAtOnce() throws {
        try other.transaction {
            try $0.execute("LOCK TABLE items IN SHARE MODE")
            #expect(try look(isSuspected: true)?.message.contains("keeps a lock on") == true)
        }
        #expect(try look(isSuspected: true) == nil)
    }

    /// An operator's copy, say.
    @Test func tablesOfOthersAreTheirs() throws {
        try other.transaction { try $0.execute("CREATE TABLE copy (id BIGINT)") }
        try other.transaction {
            try $0.execute("LOCK TABLE copy IN ACCESS EXCLUSIVE MODE")
            for _ in 0..<3 { #expect(try look() == nil) }
        }
    }

    @Test func aTableThatIsGoneIsAnError() throws {
        #expect(try look() == nil)
        try other.transaction { try $0.execute("DROP TABLE items") }
        #expect(failure { try look() }?.kind == .unavailable)
    }

    /// It is looked at less often than locks.
    @Test func aFullDiskIsFullUntilThereIsRoom() throws {
        var obstacle = PostgreSQLObstacle()
        var isFull = true
        let full = StorageError(
            kind: .unavailable, message: "the disk is full: No space left on device", sqlState: "53100")
        func look() throws -> StorageError? {
            var transactions = 0
            return try obstacle.look(at: ["items"], isSuspected: false) { _ in
                transactions += 1
                if transactions == 2, isFull { throw full }
            }
        }
        #expect(try look() == nil)
        for _ in 0..<4 { #expect(try look() == full) }
        isFull = false
        for _ in 0..<4 { #expect(try look() == nil) }
    }

    /// The server may allow no temporary files: the disk is not full for that.
    @Test func aLimitOnTemporaryFiles() throws {
        try idle.transaction { try $0.execute("SET temp_file_limit = 0") }
        for _ in 0..<4 { #expect(try look() == nil) }
    }
}
