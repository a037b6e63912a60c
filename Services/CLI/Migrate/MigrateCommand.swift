// SPDX-License-Identifier: Apache-2.0

import Apps
import ArgumentParser
import Foundation
import Observability
import Runtime
import Storage
import Supervision
import WireJSON

struct MigrateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Brings the services' stores to this version, and gives roles the right to work on them.",
        discussion: """
            Services do this at their start, unless MIGRATE=never, or their role has no right to. Run it as the owner of the \
            database before the new version starts:

              export DATABASE_URL=postgresql://owner@db/ib
              identitybus migrate --dry-run
              identitybus migrate --grant link=ib_link,user=ib_user

            A role named by --grant gets what its service needs, and no more: USAGE of its schema, and SELECT, INSERT, \
            UPDATE, DELETE and TRUNCATE on its tables, also on those that later versions make. Done again, it has nothing to \
            do. Without DATABASE_URL it works on the SQLite files under --data-dir, while their services are stopped.

            Exit status 3: there is no such role. 77: this user may not; the message has the SQL that changes it.
            """)

    @Option(help: "Only this service: link, user, sync or verification.", completion: .list(serviceNames))
    var service: String?

    @Flag(help: "Say what would be done, and do nothing.")
    var dryRun = false

    @Option(help: ArgumentHelp("The database roles of services.", valueName: "service=role,…"))
    var grant: [String] = []

    @Flag(help: "Print each store, and each role, as one JSON line.")
    var json = false

    @OptionGroup var folder: DataFolder

    /// A service's store, and what there is to do.
    private struct Store {
        let name: String
        let migrator: Migrator
        let database: any SQLDatabase
        let state: SchemaState
        var role: String?
    }

    func run() throws {
        let names = try chosen()
        let roles = try ServiceRoles(grant, among: names)
        let stores = try stores(names, roles)
        defer { stores.forEach { $0.database.close() } }
        // Before anything is changed: else a part would be.
        for store in stores { try refuse(store) }
        for store in stores {
            do {
                try migrate(store)
            } catch let error as StorageError where error.isAboutTables {
                throw Self.changed(store.name, error.message)
            }
        }
        for store in stores { try grantRights(store) }
        if json { return }
        if dryRun {
            if stores.contains(where: { $0.state.landed != nil && !$0.state.isUpToDate }) {
                say(
                    "From the first moment on, replicas of the old version stop deciding (docs/operations.md, Upgrading)."
                )
                say("Way back: only a back-up.")
            }
            say("Nothing was changed.")
        } else if !grant.isEmpty {
            say(Self.line("done", "services may run without CREATE"))
        }
    }

    /// - Throws: `Problem` for a name that no service has.
    private func chosen() throws -> [String] {
        guard let service else { return serviceNames }
        guard serviceNames.contains(service) else {
            let guess = nearest(to: service, in: serviceNames).map { " Did you mean \($0)?" } ?? ""
            throw Problem(
                .usage, "there is no service \(service) with a store.\(guess)",
                "There are: \(serviceNames.joined(separator: ", ")).")
        }
        return [service]
    }

    // MARK: Stores

    private func stores(_ names: [String], _ roles: ServiceRoles) throws -> [Store] {
        let stores = try Stores(folder)
        if !stores.arePostgreSQL, !grant.isEmpty {
            throw Problem(
                .usage, "--grant is for roles of PostgreSQL, and DATABASE_URL is not set.",
                "SQLite's files belong to who made them.")
        }
        let found = try services.filter { names.contains($0.name) }.compactMap { service -> Store? in
            guard let database = try stores.open(service.name) else { return nil }
            let role = roles[service.name]
            do {
                let state = try database.transaction { transaction in
                    if let role { try SchemaGrant.requireRole(role, in: transaction) }
                    let state = try service.migrator.state(in: transaction)
                    if state.isUpToDate {
                        let flaws = try service.migrator.flaws(transaction.engine) { try transaction.query($0, []) }
                        guard flaws.isEmpty else {
                            throw Self.changed(service.name, flaws.joined(separator: ", "))
                        }
                    }
                    return state
                }
                return Store(
                    name: service.name, migrator: service.migrator, database: database, state: state, role: role)
            } catch let error as StorageError where error.sqlState == "42501" {
                throw Problem(.noRight, "\(error.message).", "Run this as the owner of the database.")
            } catch let error as StorageError where error.isAboutTables {
                throw Self.changed(service.name, error.message)
            } catch let mismatch as SchemaMismatch {
                throw Problem(
                    .setting, "the store of \(service.name): \(mismatch).", "Nothing was changed in any store.")
            } catch let error as StorageError where error.sqlState == "55P03" {
                throw Problem(
                    .away, "the store of \(service.name) is locked by another session: \(error.message)",
                    "Wait for it, or end it: pg_locks and pg_stat_activity show which.")
            }
        }
        guard !found.isEmpty else { throw stores.missing("no store") }
        return found
    }

    /// - Throws: `Problem` where this role may not do what is to be done, with what would let it.
    private func refuse(_ store: Store) throws {
        guard let place = store.state.place, !store.state.isUpToDate else { return }
        let role = SchemaGrant.quoted(place.role)
        if let owner = place.otherOwner {
            throw Problem(
                .noRight, "role \(place.role) does not own the tables of \(place.schema): \(owner) does.",
                "Run this as \(owner), or as a superuser: GRANT \(SchemaGrant.quoted(owner)) TO \(role);")
        }
        guard !place.mayCreate else { return }
        let right =
            place.exists
            ? (words: "in schema \(place.schema)", sql: "SCHEMA \(place.schema)")
            : (words: "in database \(place.database)", sql: "DATABASE \(SchemaGrant.quoted(place.database))")
        throw Problem(
            .noRight, "role \(place.role) may not CREATE \(right.words).",
            "Run this as its owner, or as a superuser: GRANT CREATE ON \(right.sql) TO \(role);")
    }

    /// A table that is not as its migrations have left it.
    private static func changed(_ service: String, _ words: String) -> Problem {
        Problem(
            .setting, "the store of \(service) is not as its migrations have left it: \(words)",
            "Somebody has changed its tables. Change that back, or restore a back-up. In this store nothing was changed."
        )
    }

    // MARK: Doing

    private func migrate(_ store: Store) throws {
        let (state, began) = (store.state, ContinuousClock.now)
        var seconds: Double?
        var outlook: [MigrationOutlook] = []
        if dryRun {
            outlook = try store.database.transaction { try MigrationOutlook.all(state, in: $0) }
        } else if !state.isUpToDate {
            try store.migrator.run(on: store.database)
            seconds = Double((began.duration(to: .now) / .milliseconds(100)).rounded()) / 10
        }
        if json {
            tellJSON(store, seconds)
        } else if state.isUpToDate {
            say(Self.line(store.name, "\(state.newest) =", "nothing to do"))
        } else {
            let range = "\(state.landed.map(String.init) ?? "none") -> \(state.newest)"
            say(Self.line(store.name, range, seconds.map { "\($0) s" } ?? outlook.map(\.text).joined(separator: "   ")))
        }
    }

    private func grantRights(_ store: Store) throws {
        guard let role = store.role, let schema = store.state.place?.schema else { return }
        let grant = SchemaGrant(role: role, schema: schema)
        let tables = store.migrator.tables.count
        // What is not there yet has no rights.
        let isMissing = try store.database.transaction { try grant.isMissing(in: $0) }
        if isMissing, !dryRun {
            if let owner = try store.database.transaction({ try grant.owner(in: $0) }) {
                throw Problem(
                    .noRight, "this role does not own the schema \(schema) and its tables: \(owner) does.",
                    advice: ["Run this as \(owner), or let \(owner) do it:"] + grant.statements.map { "\($0);" })
            }
            try store.database.transaction { transaction in
                try transaction.execute("SET LOCAL lock_timeout TO '1s'")
                for statement in grant.statements { try transaction.execute(statement) }
            }
        }
        if json {
            let line: JSONValue = [
                "role": .string(role), "schema": .string(schema), "tables": .number(JSONNumber(tables)),
                "changed": .bool(isMissing && !dryRun),
            ]
            return say(String(decoding: line.serialized(), as: UTF8.self))
        }
        let rights = "USAGE \(schema); \(SchemaGrant.rights.joined(separator: " ")) on \(tables) tables"
        say(
            Self.line(
                dryRun && isMissing ? "would grant" : "grants", "\(role): \(isMissing ? rights : "nothing to do")"))
    }

    // MARK: Telling

    private static func line(_ subject: String, _ rest: String...) -> String {
        var text = subject.padding(toLength: 15, withPad: " ", startingAt: 0)
        for (place, part) in rest.enumerated() {
            text +=
                place < rest.count - 1
                ? part.padding(toLength: max(14, part.count + 2), withPad: " ", startingAt: 0) : part
        }
        return text
    }

    private func tellJSON(_ store: Store, _ seconds: Double?) {
        let state = store.state
        var line: [(String, JSONValue)] = [
            ("service", .string(store.name)),
            ("from", state.landed.map { .number(JSONNumber($0)) } ?? .null), ("to", .number(JSONNumber(state.newest))),
            (
                "migrations",
                .array(
                    state.missing.map { ["number": .number(JSONNumber($0.number)), "name": .string($0.name)] })
            ), ("changed", .bool(!dryRun && !state.isUpToDate)),
        ]
        if let seconds, let number = JSONNumber(seconds) { line.append(("seconds", .number(number))) }
        say(String(decoding: JSONValue.object(JSONObject(line)).serialized(), as: UTF8.self))
    }
}

extension StorageError {
    /// Whether a table or a column is missing, is there already, or is another one.
    fileprivate var isAboutTables: Bool {
        guard let sqlState, sqlState != "42501" else { return false }
        return sqlState.hasPrefix("42") || kind == .invalid && !sqlState.hasPrefix("08")
    }
}
