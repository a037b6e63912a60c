// SPDX-License-Identifier: Apache-2.0

import TestKit
import Testing

@testable import Storage

/// A store that somebody else migrates: for a role that may not, and for a service that is told not to.
@Suite struct LesserRoleTests {
    private static let people = Migration(
        number: 100, name: "people", statements: ["CREATE TABLE people (id TEXT PRIMARY KEY)"])
    private static let older = Migrator(StorageSchema.migrations)
    private static let newer = Migrator(StorageSchema.migrations + [people])

    /// Opens the store as a role that has a service's rights and no more.
    private func open(_ store: TestStore, as role: String) throws -> any SQLDatabase {
        let url = try TestStore.serverURL()
        let option = "options=-c%20role%3D\(role)"
        return try PostgreSQLDatabase(
            url: url + (url.contains("?") ? "&" : "?") + option, schema: store.name, isOfService: true,
            makesSchema: false, logger: .quiet)
    }

    private func withRole(_ work: (TestStore, any SQLDatabase, String) throws -> Void) throws {
        let store = try TestStore(.postgresql)
        let owner = try PostgreSQLDatabase(
            url: TestStore.serverURL(), schema: store.name, makesSchema: false, logger: .quiet)
        let role = "lesser_\(store.name)"
        try owner.transaction { try $0.execute("CREATE ROLE \(role)") }
        defer {
            _ = try? owner.transaction { transaction in
                try transaction.execute("DROP OWNED BY \(role)")
                try transaction.execute("DROP ROLE \(role)")
            }
        }
        try work(store, owner, role)
    }

    private func grant(_ role: String, on store: TestStore, as owner: any SQLDatabase) throws {
        try owner.transaction { transaction in
            try transaction.execute("GRANT USAGE ON SCHEMA \(store.name) TO \(role)")
            try transaction.execute(
                "GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA \(store.name) TO \(role)")
        }
    }

    @Test func whatIsUpToDateNeedsNoRightToChangeIt() throws {
        try withRole { store, owner, role in
            #expect(try Self.newer.bringUpToDate(owner) == [1, 100])
            try grant(role, on: store, as: owner)
            let database = try open(store, as: role)
            for time in MigrationTime.allCases { #expect(try Self.newer.bringUpToDate(database, at: time).isEmpty) }
            try database.transaction { transaction in
                try transaction.execute("INSERT INTO people (id) VALUES ('a')")
                try transaction.execute("LOCK TABLE people IN ACCESS EXCLUSIVE MODE NOWAIT")
                try transaction.execute("TRUNCATE people")
            }
            #expect(
                failure { try database.transaction { try $0.execute("CREATE TABLE x (id TEXT)") } }?.sqlState == "42501"
            )
            #expect(try database.obstacle(to: Self.newer.tables, isSuspected: false) == nil)
        }
    }

    @Test func whoMayNotMigrateWaitsAndSaysForWhat() throws {
        try withRole { store, owner, role in
            let database = try open(store, as: role)
            func words(_ time: MigrationTime = .start) -> String? {
                let error = failure { try Self.newer.bringUpToDate(database, at: time) }
                #expect(error?.kind == .unavailable)
                return error?.message
            }
            #expect(
                words() == "there is no \(store.name) yet, this code wants it at 100 "
                    + "(role \(role) has no right to change it); run identitybus migrate")
            try Self.older.bringUpToDate(owner)
            #expect(words()?.hasPrefix("role \(role) may not use the schema \(store.name): GRANT USAGE") == true)
            try grant(role, on: store, as: owner)
            #expect(
                words() == "the schema is at 1, this code wants 100 "
                    + "(role \(role) has no right to change it); run identitybus migrate")
            #expect(words(.never) == "the schema is at 1, this code wants 100; run identitybus migrate")
            try Self.newer.bringUpToDate(owner)
            #expect(try Self.newer.bringUpToDate(database).isEmpty)
        }
    }

    @Test(arguments: SQLEngine.allCases) func whoIsToldNotToMigrateWaits(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.open()
        #expect(
            failure { try Self.newer.bringUpToDate(database, at: .never) }?.message.hasSuffix(
                "yet, this code wants it at 100; run identitybus migrate") == true)
        let least = Migrator([Self.people])
        #expect(try least.bringUpToDate(database) == [100])
        // One that a later version puts before others.
        #expect(
            failure { try Self.newer.bringUpToDate(database, at: .never) }?.message
                == "the schema lacks the migration 1; run identitybus migrate")
        #expect(try least.bringUpToDate(database, at: .never).isEmpty)
    }

    @Test func aNewerStoreIsRefusedWhoeverMigrates() throws {
        let store = try TestStore(.sqlite)
        let database = try store.open()
        try Self.newer.bringUpToDate(database)
        for time in MigrationTime.allCases {
            #expect(throws: SchemaMismatch.self) { try Self.older.bringUpToDate(database, at: time) }
        }
    }
}
