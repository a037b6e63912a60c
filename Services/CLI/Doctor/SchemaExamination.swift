// SPDX-License-Identifier: Apache-2.0

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
        do {
            let database = try PostgreSQLDatabase(url: url, schema: schema, makesSchema: false, logger: .quiet)
            defer { database.close() }
            let (state, lacking) = try database.transaction { transaction -> (SchemaState, Finding?) in
                let state = try service.migrator.state(in: transaction)
                return (state, state.landed == nil ? nil : try rights(state, transaction))
            }
            let found = [standing(state)] + [lacking].compactMap { $0 }
            // Only who may write can look whether somebody else is in the way.
            guard state.isUpToDate, !found.hasFailures else { return found }
            return found + [try obstacle(database)].compactMap { $0 }
        } catch let mismatch as SchemaMismatch {
            return [
                .fail(
                    .databaseSchema, "\(schema): \(mismatch)", subject: schema, fix: Self.otherVersion,
                    cause: "other-version")
            ]
        } catch let error as StorageError where error.sqlState == "42501" {
            var finding = Finding.fail(.databaseRights, error.message, subject: schema, cause: "no-right")
            if error.message.contains(" migrations") {
                finding.fix = [
                    "GRANT \(Self.rights.joined(separator: ", ")) ON ALL TABLES IN SCHEMA \(schema) TO the role"
                ]
            }
            return [finding, .skip(.databaseSchema, needs: "the rights on \(schema)")]
        } catch {
            return [
                .fail(
                    .databaseSchema, "\(schema): \(error)", subject: schema,
                    fix: "Try again; the database's own log may say more.")
            ]
        }
    }

    private func rights(_ state: SchemaState, _ transaction: any SQLTransaction) throws -> Finding {
        let columns = Self.rights.map { "has_table_privilege(pg_class.oid, '\($0)')::int::bigint" }
        let rows = try transaction.query(
            """
            SELECT relname::text, \(columns.joined(separator: ", "))
            FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
            WHERE nspname = $1 AND relkind = 'r' ORDER BY 1
            """, [.text(schema)])
        let known = Set(service.migrator.tables)
        var lacking: [(table: String, rights: [String])] = []
        for row in rows where known.contains(try row.text(0)) {
            // The migrations are somebody else's, where the role may not run them.
            let wanted = try row.text(0) == "migrations" ? ["SELECT"] : Self.rights
            let missing = try Self.rights.enumerated().filter { try row.integer($0.offset + 1) == 0 }.map(\.element)
                .filter(wanted.contains)
            if !missing.isEmpty { lacking.append((try row.text(0), missing)) }
        }
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
                    fix: "Commands wait until that is over; nothing is lost.")
            }
        }
        return nil
    }
}
