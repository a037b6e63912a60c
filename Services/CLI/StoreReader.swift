// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import Glibc
import Logging
import Runtime
import Storage
import Supervision

/// Reads one service's store beside the running service, and never writes.
struct StoreReader {
    private enum Engine {
        case sqlite(DatabaseQueue, file: String)
        case postgresql(any SQLDatabase)
    }

    let service: String
    private let engine: Engine

    /// - Throws: `Problem` that names the file, where SQLite cannot read it.
    init(service: String, file path: String) throws {
        // The service itself holds the file's lock; SQLite lets others read meanwhile.
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(5)
        self.service = service
        let address = try Self.address(of: path)
        engine = try Self.reading(path) {
            let queue = try DatabaseQueue(path: address, configuration: configuration)
            do {
                _ = try queue.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM sqlite_schema") }
                return .sqlite(queue, file: path)
            } catch let error as DatabaseError where error.resultCode == .SQLITE_READONLY {
                // The service has begun its log a moment ago, and the index has no place yet that others read up to.
                return .sqlite(try DatabaseQueue(path: path, configuration: configuration), file: path)
            }
        }
    }

    /// Leaves no file behind, which would be this user's and not the service's: SQLite would make the log and its index
    /// anew for who only reads. A store that nobody has open has neither, and one of a service that was killed has both.
    private static func address(of path: String) throws -> String {
        let isLogged = FileManager.default.fileExists(atPath: path + "-wal")
        let isIndexed = FileManager.default.fileExists(atPath: path + "-shm")
        if isLogged, !isIndexed {
            throw Problem(
                .setting, "\(path) cannot be read: it has a log (-wal) and no index of it (-shm).",
                "Start its service once: it takes the log in.")
        }
        let place = path.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? path
        return "file:\(place)?mode=ro&\(isLogged ? "readonly_shm=1" : "immutable=1")"
    }

    /// - Throws: `Problem` when it is another service's, or of another version of this code.
    func checkWhoseItIs() throws {
        guard let known = services.first(where: { $0.name == service }) else { return }
        do {
            _ = try known.migrator.missing(after: try query("SELECT \(Migrator.columns) FROM migrations", []))
        } catch let mismatch as SchemaMismatch {
            throw Problem(.setting, "the store of \(service): \(mismatch).", "Nothing was read of it.")
        }
    }

    private init(service: String, engine: Engine) {
        self.service = service
        self.engine = engine
    }

    /// Those that a database has. Looks in the catalogue first: tables that one may not read look as if they were missing.
    static func all(_ services: [String], url: String, schemas: String) throws -> [StoreReader] {
        let catalogue = try PostgreSQLDatabase(url: url, schema: "pg_catalog", makesSchema: false, logger: .quiet)
        defer { catalogue.close() }
        return try services.compactMap { service in
            let tables = try catalogue.transaction { transaction in
                try transaction.query(
                    """
                    SELECT current_user::text, (has_schema_privilege(nspname, 'USAGE')
                        AND has_table_privilege(pg_class.oid, 'SELECT'))::int::bigint
                    FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
                    WHERE nspname = $1 AND relname = 'inbox_state'
                    """, [.text(schemas + service)])
            }
            guard let table = tables.first else { return nil }
            if try table.integer(1) == 0 {
                throw Problem(
                    .noRight, "\(try table.text(0)) may not read the schema \(schemas)\(service) of DATABASE_URL.",
                    "Its owner can: GRANT USAGE ON SCHEMA, and GRANT SELECT ON ALL TABLES IN SCHEMA.")
            }
            let database = try PostgreSQLDatabase(
                url: url, schema: schemas + service, makesSchema: false, logger: .quiet)
            return StoreReader(service: service, engine: .postgresql(database))
        }
    }

    var databaseEngine: SQLEngine {
        switch engine {
        case .postgresql: .postgresql
        case .sqlite: .sqlite
        }
    }

    func query(_ sql: String, _ parameters: [SQLValue]) throws -> [SQLRow] {
        switch engine {
        case .postgresql(let database):
            do {
                return try database.transaction { try $0.query(sql, parameters) }
            } catch let error as StorageError where error.isLockTimeout {
                throw Self.locked(database) ?? error
            }
        case .sqlite(let queue, let file):
            let arguments = StatementArguments(parameters.map(Self.argument))
            return try Self.reading(file) {
                try queue.read { database in
                    try Row.fetchAll(database, sql: sql, arguments: arguments).map { row in
                        SQLRow(row.databaseValues.map(Self.value))
                    }
                }
            }
        }
    }

    /// Who keeps a table of the store to itself; `nil` when nobody does any more. Only this lock keeps readers waiting.
    private static func locked(_ database: any SQLDatabase) -> Problem? {
        let sql = """
            SELECT nspname || '.' || relname, pid::bigint, COALESCE(NULLIF(application_name, ''), 'a program'),
                COALESCE(usename::text, 'another user')
            FROM pg_locks JOIN pg_class ON pg_class.oid = relation JOIN pg_namespace ON pg_namespace.oid = relnamespace
                LEFT JOIN pg_stat_activity USING (pid)
            WHERE granted AND mode = 'AccessExclusiveLock' AND nspname = current_schema() AND relkind = 'r'
            ORDER BY pid, relname LIMIT 1
            """
        guard let lock = try? database.transaction({ try $0.query(sql, []) }).first, let table = try? lock.text(0),
            let session = try? lock.integer(1), let program = try? lock.text(2), let user = try? lock.text(3)
        else { return nil }
        return Problem(
            .away, "\(table) is locked by session \(session) (\(program) of \(user)).",
            "Wait until it is done, or end it: SELECT pg_terminate_backend(\(session))")
    }

    /// - Throws: `Problem` that names the file, where SQLite cannot read it.
    private static func reading<Value>(_ path: String, _ work: () throws -> Value) throws -> Value {
        do {
            return try work()
        } catch let error as DatabaseError {
            for file in [path, "\(path)-wal", "\(path)-shm"] { try Stores.require(R_OK, of: file) }
            try Stores.refuseFolder(path)
            let isDamaged = [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode)
            throw Problem(
                .setting, "\(path) cannot be read: \(error.message ?? "SQLite error \(error.resultCode.rawValue)").",
                advice: isDamaged
                    ? Problem.damagedAdvice
                    : ["Is it the store of a service of this version, and may you read it and write beside it?"])
        }
    }

    private static func argument(_ value: SQLValue) -> (any DatabaseValueConvertible)? {
        switch value {
        case .null: nil
        case .integer(let number): number
        case .text(let text): text
        case .blob(let bytes): Data(bytes)
        }
    }

    private static func value(_ value: DatabaseValue) -> SQLValue {
        switch value.storage {
        case .null: .null
        case .int64(let number): .integer(number)
        case .double(let number): .text("\(number)")
        case .string(let text): .text(text)
        case .blob(let data): .blob(Array(data))
        }
    }
}
