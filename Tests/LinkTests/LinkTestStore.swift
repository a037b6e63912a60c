// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import Storage

@testable import Link
@testable import Runtime

/// A fresh store of the link service on one of the engines; its traces are removed when the test lets go of it.
final class LinkTestStore {
    struct MissingServer: Error, CustomStringConvertible {
        let description = """
            TEST_DATABASE_URL is not set, so nothing can be said about PostgreSQL. Start a server with \
            scripts/throwaway-postgres start DIR and set the variable to the URL it prints.
            """
    }

    let database: any SQLDatabase
    private let name = "t" + UUID().uuidString.lowercased().filter { $0 != "-" }
    private let directory: URL

    init(_ engine: SQLEngine) throws {
        directory = FileManager.default.temporaryDirectory.appending(path: "identitybus-\(name)")
        switch engine {
        case .sqlite:
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            database = try SQLiteDatabase(path: directory.appending(path: "link.sqlite").path, synchronous: .normal)
        case .postgresql:
            guard let url = ProcessInfo.processInfo.environment["TEST_DATABASE_URL"], !url.isEmpty else {
                throw MissingServer()
            }
            database = try PostgreSQLDatabase(
                url: url, schema: name, logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        }
        try Migrator(StorageSchema.migrations + LinkService.migrations).run(on: database)
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
            try transaction.query("SELECT * FROM installs ORDER BY install_id").map(\.values)
                + transaction.query("SELECT * FROM persons ORDER BY user_id").map(\.values)
                + transaction.query("SELECT * FROM erasures ORDER BY user_id").map(\.values)
        }
    }

    /// Load, decide, save, as the loop does it: one transaction for all of the steps.
    func run(_ steps: [RandomCommands.Step]) throws -> [LinkDecider.Decision] {
        let service = LinkService()
        return try database.transaction { transaction in
            var state = try service.load(steps.map { ($0.command, $0.context) }, in: transaction)
            var decisions: [LinkDecider.Decision] = []
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
