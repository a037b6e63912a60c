// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Synchronization
import TestKit
import Testing

@testable import Storage

@Suite struct MigratorTests {
    private static let people = Migration(
        number: 100, name: "people", statements: ["CREATE TABLE people (id BIGINT PRIMARY KEY)"])
    private static let names = Migration(
        number: 101, name: "names",
        statements: ["ALTER TABLE people ADD COLUMN name TEXT", "CREATE INDEX people_name ON people (name)"])

    @Test(arguments: SQLEngine.allCases)
    func runsEachOnceInOrder(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.open()
        #expect(try Migrator([Self.people]).run(on: database) == [100])
        let all = Migrator([Self.names, Self.people] + StorageSchema.migrations)
        #expect(try all.run(on: database) == [1, 101])
        #expect(try all.run(on: database) == [])
        database.close()
        let later = try store.open()
        #expect(try all.run(on: later) == [])
        let rows = try later.read("SELECT number, name FROM migrations ORDER BY number")
        let names = [(1, "shared tables"), (100, "people"), (101, "names")]
        #expect(rows == names.map { SQLRow([.integer(Int64($0.0)), .text($0.1)]) })
        #expect(try later.read("SELECT id, name FROM people").isEmpty)
    }

    @Test func knowsItsTables() throws {
        let store = try TestStore(.sqlite)
        let database = try store.open()
        let all = Migrator([Self.names, Self.people] + StorageSchema.migrations)
        try all.run(on: database)
        let rows = try database.read("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        #expect(try rows.map { try $0.text(0) } == all.tables)
    }

    @Test(
        arguments: SQLEngine.allCases,
        [
            ("SELECT 1", []),
            ("ALTER TABLE progress RENAME last_time TO zzz", ["progress has no column last_time"]),
            ("ALTER TABLE progress ADD COLUMN zzz TEXT", []),
            ("ALTER TABLE progress ADD COLUMN zzz BIGINT NOT NULL DEFAULT 1", []),
            ("DROP INDEX people_name", []),
            ("DROP TABLE salt", ["the table salt is missing"]),
            (
                "ALTER TABLE migrations RENAME checksum TO zzz",
                [
                    "migrations has no column checksum",
                    "migrations.zzz is no column of this code, and rows are refused without it",
                ]
            ),
        ] as [(String, [String])])
    func tellsWhatSomebodyHasChanged(_ engine: SQLEngine, _ change: (sql: String, flaws: [String])) throws {
        let store = try TestStore(engine)
        let database = try store.open()
        let all = Migrator([Self.names, Self.people] + StorageSchema.migrations)
        try all.run(on: database)
        let flaws = try database.transaction { transaction in
            try transaction.execute(change.sql)
            return try all.flaws(engine) { try transaction.query($0) }
        }
        #expect(flaws == change.flaws)
    }

    /// What SQLite changes only by making a table anew.
    @Test(
        arguments: [
            ("ALTER TABLE progress ALTER last_time TYPE TEXT", ["progress.last_time is TEXT, not BIGINT"]),
            ("ALTER TABLE progress ALTER last_time SET NOT NULL", ["progress.last_time does not take NULL"]),
            ("ALTER TABLE progress DROP CONSTRAINT progress_pkey", ["progress (partition, topic) is not unique"]),
            (
                "ALTER TABLE logs DROP CONSTRAINT logs_topic_partition_incarnation_key",
                ["logs (incarnation, partition, topic) is not unique"]
            ),
            (
                "ALTER TABLE logs ADD COLUMN zzz TEXT NOT NULL",
                ["logs.zzz is no column of this code, and rows are refused without it"]
            ),
            ("CREATE UNIQUE INDEX ON logs (number) INCLUDE (topic)", []),
        ] as [(String, [String])])
    func tellsWhatSomebodyHasChangedInPostgreSQL(_ change: (sql: String, flaws: [String])) throws {
        let store = try TestStore(.postgresql)
        let database = try store.open()
        let all = Migrator([Self.names, Self.people] + StorageSchema.migrations)
        try all.run(on: database)
        let flaws = try database.transaction { transaction in
            try transaction.execute(change.sql)
            return try all.flaws(.postgresql) { try transaction.query($0) }
        }
        #expect(flaws == change.flaws)
    }

    @Test(arguments: SQLEngine.allCases)
    func anotherMigrationUnderTheSameNumberIsAnError(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.open()
        try Migrator([Self.people]).run(on: database)
        let edited = Migration(number: 100, name: "people", statements: ["CREATE TABLE people (id TEXT)"])
        let error = #expect(throws: SchemaMismatch.self) { try Migrator([edited, Self.names]).run(on: database) }
        #expect(error?.description.contains("another version of this code: its migration 100 'people'") == true)
        #expect(try Migrator([Self.people, Self.names]).run(on: database) == [101])
    }

    @Test(arguments: SQLEngine.allCases)
    func theStoreOfAnotherServiceIsAnError(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.open()
        try Migrator([Self.people, Self.names]).run(on: database)
        let other = Migration(number: 100, name: "profiles", statements: ["CREATE TABLE profiles (id TEXT)"])
        let error = #expect(throws: SchemaMismatch.self) { try Migrator([other]).run(on: database) }
        #expect(
            error?.description.hasPrefix(
                "the database is the store of another service, or of another version of this code: its migration 100 is "
                    + "'people', and not 'profiles'; put the store of this service in its place") == true)
    }

    @Test(arguments: SQLEngine.allCases)
    func aNewerDatabaseIsAnError(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.open()
        try Migrator([Self.people, Self.names]).run(on: database)
        let error = #expect(throws: SchemaMismatch.self) { try Migrator([Self.people]).run(on: database) }
        #expect(error?.description.contains("newer than this code: it has migration 101 'names'") == true)
    }

    /// A replica of the version before knows the store as it was: nothing more is written by its claims.
    @Test(arguments: SQLEngine.allCases)
    func aMigrationEndsAllClaims(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.open()
        let before = Migrator(StorageSchema.migrations + [Self.people])
        try before.run(on: database)
        let request = PartitionClaimRequest(topic: "t", partition: 0)
        let claim = try #require(
            try database.transaction { try Progress.claim([request], clusterID: "c", owner: "old", in: $0) }.first)
        func advance(from: Int64?, to: Int64) throws {
            let update = ProgressUpdate(
                topic: "t", partition: 0, epoch: claim.epoch, expectedOffset: from, nextOffset: to,
                publishedThrough: -1, logTime: -1)
            try database.transaction { try Progress.advance([update], in: $0) }
        }
        #expect(try before.run(on: database) == [], "nothing to migrate, no claim ends")
        try advance(from: nil, to: 1)
        try database.transaction { try before.check(in: $0) }
        let after = Migrator(StorageSchema.migrations + [Self.people, Self.names])
        #expect(try after.run(on: database) == [101])
        let fenced = failure { try advance(from: 1, to: 2) }
        #expect(fenced?.kind == .fenced([TopicPartition(topic: "t", partition: 0)]))
        #expect(throws: SchemaMismatch.self) { try database.transaction { try before.check(in: $0) } }
        try database.transaction { try after.check(in: $0) }
    }

    @Test(arguments: SQLEngine.allCases)
    func aNumberIsUsedOnce(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.open()
        let other = Migration(number: 100, name: "other", statements: [])
        #expect(failure { try Migrator([Self.people, other]).run(on: database) }?.kind == .invalid)
        #expect(try Migrator([Self.people]).run(on: database) == [100])
    }

    @Test(arguments: SQLEngine.allCases)
    func aFailedMigrationLeavesNothingBehind(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.open()
        let broken = Migration(
            number: 101, name: "broken", statements: ["CREATE TABLE half (id BIGINT)", "CREATE TABLE people (id TEXT)"])
        let error = failure { try Migrator([Self.people, broken]).run(on: database) }
        #expect(error?.kind == .invalid)
        #expect(error?.message.contains("migration 101 'broken'") == true)
        #expect(try Migrator([Self.people, Self.names]).run(on: database) == [100, 101])
        #expect(failure { try database.read("SELECT * FROM half") } != nil)
    }

    /// Eight replicas start at the same instant on a schema that does not exist yet: one of them does the work.
    @Test func replicasMayStartTogether() throws {
        let store = try TestStore(.postgresql)
        let name = store.name
        let outcomes = Mutex<[Result<[Int], any Error>]>([])
        let threads = 8
        let start = DispatchGroup()
        let end = DispatchGroup()
        start.enter()
        for _ in 0..<threads {
            end.enter()
            Thread.detachNewThread {
                start.wait()
                let outcome = Result {
                    try Migrator(StorageSchema.migrations + [Self.people, Self.names])
                        .run(on: try PostgreSQLDatabase.forTests(schema: name))
                }
                outcomes.withLock { $0.append(outcome) }
                end.leave()
            }
        }
        start.leave()
        end.wait()
        let ran = try outcomes.withLock { try $0.map { try $0.get() } }
        #expect(ran.count == threads)
        #expect(ran.filter { $0 == [1, 100, 101] }.count == 1)
        #expect(ran.filter { $0.isEmpty }.count == threads - 1)
    }

    /// A migration may take longer than any statement of a service.
    @Test func migrationsHaveNoStatementTimeout() throws {
        let store = try TestStore(.postgresql)
        let database = try PostgreSQLDatabase(
            url: TestStore.serverURL(), schema: store.name, statementTimeout: .seconds(2))
        let slow = Migration(number: 100, name: "slow", statements: ["CREATE TABLE t AS SELECT pg_sleep(3) IS NULL"])
        #expect(try Migrator([slow]).run(on: database) == [100])
        let error = failure { try database.read("SELECT 1 FROM pg_sleep(60)") }
        #expect(error?.kind == .unavailable)
        #expect(try database.read("SELECT 1") == [SQLRow([1])])
    }
}
