// SPDX-License-Identifier: Apache-2.0

import Foundation
import Runtime
import Storage
import Supervision

/// Looks at one service's schema.
struct SchemaExamination {
    let url: String
    let schema: String
    let service: any CommandService.Type
    let migrate: MigrationTime

    private static let rights = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE"]

    /// What to do with a store of another version of the code.
    static let otherVersion =
        "`identitybus --version` tells which version this is; a service of it would end with status 78."

    func run() -> [Finding] {
        let start = ContinuousClock.now
        while true {
            do {
                return try look()
            } catch let mismatch as SchemaMismatch {
                return [
                    .fail(
                        .databaseSchema, "\(schema): \(mismatch)", subject: schema, fix: Self.otherVersion,
                        cause: "other-version")
                ]
            } catch let error as StorageError where error.sqlState == "42501" {
                return lackOfRights(error)
            } catch let error as StorageError where error.isLockTimeout {
                return lock(error)
            } catch let error as StorageError where Self.states.contains(error.sqlState) {
                return [Self.changed(.databaseSchema, schema, error.message, subject: schema)]
            } catch let error as StorageError where PostgreSQLCause(error) == .full {
                // The other looks of ours may be what fills it.
                guard start.duration(to: .now) < Self.patience else {
                    return [.skip(.databaseSchema, needs: "a free connection")]
                }
                Thread.sleep(forTimeInterval: 0.2)
            } catch {
                return [
                    .fail(
                        .databaseSchema, "\(schema): \(error)", subject: schema,
                        fix: "Try again; the database's own log may say more.", cause: "no-answer")
                ]
            }
        }
    }

    /// A store whose tables somebody has changed.
    static func changed(_ id: CheckID, _ store: String, _ words: String, subject: String) -> Finding {
        .fail(
            id, "\(store) is not as its migrations have made it: \(words)", subject: subject,
            fix: "Somebody has changed a table. Put it back, or restore a back-up of the whole store.",
            cause: "unreadable")
    }

    /// No such table, column or function.
    private static let states: Set<String?> = ["42P01", "42703", "42883"]

    private func lock(_ error: StorageError) -> [Finding] {
        let fix = "Commands wait until that is over; nothing is lost."
        let words = "somebody keeps a lock on a table of \(schema) that is read at the start: pg_locks shows who"
        return [.fail(.databaseWrites, words, subject: schema, fix: fix, cause: "lock")]
            + [.databaseSchema, .databaseRights].map { .skip($0, needs: "that lock to end") }
    }

    /// How long a connection is waited for.
    private static let patience = Duration.seconds(4)

    private func look() throws -> [Finding] {
        let database = try PostgreSQLDatabase(url: url, schema: schema, makesSchema: false, logger: .quiet)
        defer { database.close() }
        let (state, found) = try database.transaction { transaction -> (SchemaState, [Finding]) in
            let state = try service.migrator.state(in: transaction)
            let tables = try tables(in: transaction)
            if state.landed == nil {
                let lost = tables.isEmpty || tables.contains { $0.name == "migrations" } ? [] : ["\(schema).migrations"]
                return (
                    state, [Self.tableMissing(.databaseSchema, lost, subject: schema) ?? standing(state)]
                )
            }
            let flaw = try tableMissing(state, tables) ?? columnMissing(state, in: transaction)
            return (state, [flaw ?? standing(state), rights(state, tables)])
        }
        // Only who may write can look whether somebody else is in the way.
        guard state.isUpToDate, !found.hasFailures else { return found }
        return found + [try obstacle(database)].compactMap { $0 }
    }

    private func lackOfRights(_ error: StorageError) -> [Finding] {
        var finding = Finding.fail(.databaseRights, error.message, subject: schema, cause: "no-right")
        if error.message.contains(" migrations") {
            finding.fix = [
                "GRANT \(Self.rights.joined(separator: ", ")) ON ALL TABLES IN SCHEMA \(schema) TO the role"
            ]
        }
        return [finding, .skip(.databaseSchema, needs: "the rights on \(schema)")]
    }

    /// What this role may do with each of the service's tables that is there.
    private func tables(in transaction: any SQLTransaction) throws -> [(name: String, rights: Set<String>)] {
        let columns = Self.rights.map { "has_table_privilege(pg_class.oid, '\($0)')::int::bigint" }
        let known = Set(service.migrator.tables)
        return try transaction.query(
            """
            SELECT relname::text, \(columns.joined(separator: ", "))
            FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
            WHERE nspname = $1 AND relkind = 'r' ORDER BY 1
            """, [.text(schema)]
        ).map { row in
            let rights = try Self.rights.enumerated().filter { try row.integer($0.offset + 1) == 1 }.map(\.element)
            return (try row.text(0), Set(rights))
        }.filter { known.contains($0.0) }
    }

    /// One that a migration has made and somebody else has removed: no service makes it again.
    private func tableMissing(_ state: SchemaState, _ tables: [(name: String, rights: Set<String>)]) -> Finding? {
        guard state.isUpToDate else { return nil }
        let missing = service.migrator.tables.filter { name in !tables.contains { $0.name == name } }
        return Self.tableMissing(.databaseSchema, missing.map { "\(schema).\($0)" }, subject: schema)
    }

    private func columnMissing(_ state: SchemaState, in transaction: any SQLTransaction) throws -> Finding? {
        guard state.isUpToDate else { return nil }
        let flaws = try service.migrator.flaws(.postgresql) { try transaction.query($0, []) }
        return flaws.isEmpty
            ? nil : Self.changed(.databaseSchema, schema, ClusterExamination.list(flaws), subject: schema)
    }

    /// - Parameter tables: with where they should be.
    static func tableMissing(_ id: CheckID, _ tables: [String], subject: String) -> Finding? {
        guard !tables.isEmpty else { return nil }
        return .fail(
            id,
            "\(ClusterExamination.list(tables)) \(tables.count == 1 ? "is" : "are") missing, and the migration that "
                + "makes \(tables.count == 1 ? "it" : "them") has run", subject: subject,
            fix: "Nothing makes it again: restore a back-up of the whole store.", cause: "table-missing")
    }

    private func rights(_ state: SchemaState, _ tables: [(name: String, rights: Set<String>)]) -> Finding {
        // The migrations are somebody else's, where the role may not run them.
        let lacking = tables.map { table in
            let wanted = table.name == "migrations" ? ["SELECT"] : Self.rights
            return (table: table.name, rights: wanted.filter { !table.rights.contains($0) })
        }.filter { !$0.rights.isEmpty }
        guard let first = lacking.first else {
            return .ok(.databaseRights, "\(Self.rights.joined(separator: " ")) on all tables", subject: schema)
        }
        let role = state.place?.role ?? "the role"
        let missing = Self.rights.filter { right in lacking.contains { $0.rights.contains(right) } }
        let more = lacking.count == 1 ? "" : " and \(lacking.count - 1) more table\(lacking.count == 2 ? "" : "s")"
        return .fail(
            .databaseRights, "\(role) lacks \(missing.joined(separator: ", ")) on \(schema).\(first.table)\(more)",
            subject: schema,
            fix: "identitybus migrate --grant \(service.name)=\(role), by the owner of the schema", cause: "no-right")
    }

    private func standing(_ state: SchemaState) -> Finding {
        if state.isUpToDate { return .ok(.databaseSchema, "\(schema) at migration \(state.newest)", subject: schema) }
        let words =
            state.landed.map { "\(schema) is at migration \($0), this code wants \(state.newest)" }
            ?? "\(schema) is not there yet, this code wants it at migration \(state.newest)"
        let cause = state.landed == nil ? "missing" : "older"
        if migrate == .start, state.place?.mayMigrate != false {
            return .warn(
                .databaseSchema, "\(words); the \(service.name) service migrates it at its start", subject: schema,
                cause: cause)
        }
        let why =
            migrate == .never
            ? "MIGRATE=never keeps services from it" : "\(state.place?.role ?? "the role") has no right to change it"
        return .fail(
            .databaseSchema, "\(words); \(why)", subject: schema,
            fix: "Its owner runs: identitybus migrate --service \(service.name)", cause: cause)
    }

    /// A disk that is full, or a lock that somebody keeps. Waits for no lock.
    private func obstacle(_ database: any SQLDatabase) throws -> Finding? {
        // The second look is at the disk too.
        for _ in 0..<2 {
            if let obstacle = try database.obstacle(
                to: service.migrator.tables.filter { $0 != "migrations" }, isSuspected: true)
            {
                return .fail(
                    .databaseWrites, obstacle.cause, subject: schema,
                    fix: "Commands wait until that is over; nothing is lost.",
                    cause: obstacle.isLockTimeout ? "lock" : "disk-full")
            }
        }
        return nil
    }
}
