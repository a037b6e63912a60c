// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import Storage

@testable import Runtime
@testable import Verification

/// A fresh store of the verification service on one of the engines; its traces are removed when the test lets go of it.
final class VerificationTestStore {
    struct MissingServer: Error, CustomStringConvertible {
        let description = """
            TEST_DATABASE_URL is not set, so nothing can be said about PostgreSQL. Start a server with \
            scripts/throwaway-postgres start DIR and set the variable to the URL it prints.
            """
    }

    let database: any SQLDatabase
    private let name = "t" + UUID().uuidString.lowercased().filter { $0 != "-" }
    private let directory: URL

    /// - Parameter upTo: the last migration of the service that is run.
    init(_ engine: SQLEngine, upTo last: Int = .max) throws {
        directory = FileManager.default.temporaryDirectory.appending(path: "identitybus-\(name)")
        switch engine {
        case .sqlite:
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            database = try SQLiteDatabase(
                path: directory.appending(path: "verification.sqlite").path, synchronous: .normal)
        case .postgresql:
            database = try Self.connect(schema: name)
        }
        let migrations = VerificationService.migrations.filter { $0.number <= last }
        try Migrator(StorageSchema.migrations + migrations).run(on: database)
    }

    private static func connect(schema: String) throws -> PostgreSQLDatabase {
        guard let url = ProcessInfo.processInfo.environment["TEST_DATABASE_URL"], !url.isEmpty else {
            throw MissingServer()
        }
        return try PostgreSQLDatabase(
            url: url, schema: schema, logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
    }

    /// A second connection to the same store, as another replica has it. Only with PostgreSQL.
    func another() throws -> PostgreSQLDatabase { try Self.connect(schema: name) }

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
            try [
                "sessions ORDER BY app, device_id", "login_sagas ORDER BY forward_id", "people ORDER BY app, mpid",
            ].flatMap {
                try transaction.query("SELECT * FROM \($0)").map(\.values)
            }
                + transaction.query(
                    """
                    SELECT app, method, reason, key_id, CAST(SUM(count) AS BIGINT), MAX(last_used) FROM verification_counts
                    GROUP BY app, method, reason, key_id ORDER BY app, method, reason, key_id
                    """
                ).map(\.values)
        }
    }

    /// Load, decide, save, as the loop does it: one transaction for all of the steps.
    func run(_ steps: [RandomCommands.Step], shard: Int64 = 0) throws -> [VerificationDecider.Decision] {
        let service = VerificationService(counterShard: shard)
        return try database.transaction { transaction in
            var state = try service.load(steps.map { ($0.command, $0.context) }, in: transaction)
            var decisions: [VerificationDecider.Decision] = []
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
