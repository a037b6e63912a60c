// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Logging
import Storage
import WireJSON

@testable import Runtime
@testable import Sync

/// A fresh store of the sync service on one of the engines; its traces are removed when the test lets go of it.
final class SyncTestStore {
    struct MissingServer: Error, CustomStringConvertible {
        let description = """
            TEST_DATABASE_URL is not set, so nothing can be said about PostgreSQL. Start a server with \
            scripts/throwaway-postgres start DIR and set the variable to the URL it prints.
            """
    }

    let database: any SQLDatabase
    private let name = "t" + UUID().uuidString.lowercased().filter { $0 != "-" }
    private let directory: URL

    init(_ engine: SQLEngine, migrations: [Migration] = SyncService.migrations) throws {
        directory = FileManager.default.temporaryDirectory.appending(path: "identitybus-\(name)")
        switch engine {
        case .sqlite:
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            database = try SQLiteDatabase(path: directory.appending(path: "sync.sqlite").path, synchronous: .normal)
        case .postgresql:
            guard let url = ProcessInfo.processInfo.environment["TEST_DATABASE_URL"], !url.isEmpty else {
                throw MissingServer()
            }
            database = try PostgreSQLDatabase(
                url: url, schema: name, logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        }
        try Migrator(StorageSchema.migrations + migrations).run(on: database)
    }

    deinit {
        if database.engine == .postgresql {
            _ = try? database.transaction { try $0.execute("DROP SCHEMA IF EXISTS \"\(name)\" CASCADE") }
        }
        database.close()
        try? FileManager.default.removeItem(at: directory)
    }

    /// Every row of all tables, as it stands.
    func rows() throws -> [[SQLValue]] {
        try database.transaction { transaction in
            let tables = [
                "profiles ORDER BY app, mpid", "identities ORDER BY app, type, value_key",
                "devices ORDER BY app, device_id", "aliases ORDER BY app, alias_id",
                "forgotten_users ORDER BY app, user_key",
                "erasures ORDER BY app, source, command_id", "erasure_forwards ORDER BY app, forward_id",
            ]
            return try tables.flatMap { try transaction.query("SELECT * FROM \($0)").map(\.values) }
        }
    }

    /// The profiles and the aliases that a command may name.
    func known() throws -> ([MPID], [String: [MPID]]) {
        try database.transaction { transaction in
            let profiles = try transaction.query("SELECT mpid FROM profiles ORDER BY mpid").map {
                try SyncStore.mpid($0.integer(0))
            }
            var aliases: [String: [MPID]] = [:]
            for row in try transaction.query("SELECT alias_id, source_mpid, destination_mpid FROM aliases") {
                aliases[try row.text(0)] = [try SyncStore.mpid(row.integer(1)), try SyncStore.mpid(row.integer(2))]
            }
            return (profiles, aliases)
        }
    }

    /// What profiles say of themselves: identities, names, the link service's users.
    func liveTexts() throws -> [String] {
        try database.transaction { transaction in
            try transaction.query("SELECT identities, name, user_id FROM profiles").flatMap { row in
                let identities = try WireJSONDecoder().decode([Identity].self, from: Array(row.text(0).utf8))
                return try identities.map(\.value) + [row.optionalText(1), row.optionalText(2)].compactMap { $0 }
            }
        }
    }

    /// Load, decide, save, as the loop does it: one transaction for all of the steps.
    func run(_ steps: [RandomCommands.Step]) throws -> [SyncDecider.Decision] {
        let service = SyncService(aliasDelay: .seconds(1))
        return try database.transaction { transaction in
            var state = try service.load(steps.map { ($0.command, $0.context) }, in: transaction)
            var decisions: [SyncDecider.Decision] = []
            for step in steps {
                let decision = service.decide(step.command, state, step.context)
                decision.changes.forEach { state.apply($0) }
                decisions.append(decision)
            }
            try service.save(state, in: transaction)
            return decisions
        }
    }
}
