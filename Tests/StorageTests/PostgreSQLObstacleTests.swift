// SPDX-License-Identifier: Apache-2.0

import Foundation
import Storage
import TestKit
import Testing

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

    @Test(arguments: [("ACCESS EXCLUSIVE", true), ("SHARE", true), ("ROW EXCLUSIVE", false), ("ACCESS SHARE", false)])
    func aTableThatAnotherSessionKeepsLocked(_ mode: String, _ keepsWritesOut: Bool) throws {
        let said = "keeps a lock on \(store.name).items"
        try other.transaction {
            let process = try #require(try $0.query("SELECT pg_backend_pid()", []).first?.integer(0))
            try $0.execute("LOCK TABLE items IN \(mode) MODE")
            #expect(try idle.obstacle() == nil, "one look says nothing: it may be gone by the next")
            for _ in 0..<3 {
                let problem = try idle.obstacle()
                #expect((problem?.message == "another session (process \(process)) \(said)") == keepsWritesOut)
                #expect((problem == nil) != keepsWritesOut)
            }
        }
        #expect(try idle.obstacle() == nil)
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
            while try idle.obstacle() == nil { try #require(.now < deadline) }
            #expect(try #require(try idle.obstacle()).message.contains(") waits for a lock on \(store.name).items"))
        }
        changes.wait()
        #expect(try idle.obstacle() == nil)
    }

    @Test func aTableThatIsGone() throws {
        #expect(try idle.obstacle() == nil)
        try other.transaction { try $0.execute("DROP TABLE items") }
        for _ in 0..<4 { #expect(try idle.obstacle() == nil) }
    }

    /// The server may allow no temporary files: the disk is not full for that.
    @Test func aLimitOnTemporaryFiles() throws {
        try idle.transaction { try $0.execute("SET temp_file_limit = 0") }
        for _ in 0..<4 { #expect(try idle.obstacle() == nil) }
    }
}
