// SPDX-License-Identifier: Apache-2.0

public import Runtime
public import Storage

/// A fresh store with the tables of a service.
public final class ServiceStore<Service: CommandService> {
    private let store: TestStore
    public let database: any SQLDatabase

    public init(_ engine: SQLEngine) throws {
        store = try TestStore(engine)
        database = try store.openMigrated(.normal, Service.migrations)
    }

    deinit { database.close() }

    /// A second connection to the same store, as another replica has it. Only with PostgreSQL.
    public func another() throws -> any SQLDatabase { try store.open() }

    /// Every row of these tables, as it stands.
    /// - Parameter tables: each with its `ORDER BY`.
    public func rows(_ tables: [String]) throws -> [[SQLValue]] {
        try database.transaction { transaction in
            try tables.flatMap { try transaction.query("SELECT * FROM \($0)").map(\.values) }
        }
    }

    public func count(_ table: String) throws -> Int64 {
        try database.transaction { try $0.query("SELECT COUNT(*) FROM \(table)").first?.integer(0) ?? -1 }
    }

    /// Load, decide, save, as the loop does it: one transaction for all of the steps.
    /// - Parameter other: where, if not on ``database``.
    public func run(
        _ service: Service, _ steps: [(Service.Command, DecisionContext)], on other: (any SQLDatabase)? = nil
    ) throws -> [Decision<Service.State.Change>] {
        try (other ?? database).transaction { transaction in
            var state = try service.load(steps, in: transaction)
            var decisions: [Decision<Service.State.Change>] = []
            for (command, context) in steps {
                let decision = service.decide(command, state, context)
                decision.changes.forEach { state.apply($0) }
                decisions.append(decision)
            }
            try service.save(state, in: transaction)
            return decisions
        }
    }
}
