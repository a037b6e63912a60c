// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import Logging
import Runtime
import Storage
import Supervision

/// Reads one service's store beside the running service, and never writes.
struct StoreReader {
    private enum Engine {
        case sqlite(DatabaseQueue)
        case postgresql(any SQLDatabase)
    }

    let service: String
    private let engine: Engine

    /// The stores there are: those of $DATABASE_URL, else the files in the folder.
    static func all(dataDirectory: String) throws -> [StoreReader] {
        let settings = EnvironmentSettings(ProcessInfo.processInfo.environment)
        let schemas = try ServiceConfiguration.schemas(settings)
        let url = try settings.secret("DATABASE_URL")
        return try serviceNames.compactMap { service in
            if let url {
                let reader = StoreReader(
                    service: service,
                    engine: .postgresql(
                        try PostgreSQLDatabase(url: url, schema: schemas + service, logger: .quiet)))
                let tables = try reader.query(
                    "SELECT table_name FROM information_schema.tables WHERE table_schema = $1 AND table_name = 'inbox_state'",
                    [.text(schemas + service)])
                return tables.isEmpty ? nil : reader
            }
            let path = "\(dataDirectory)/\(service).sqlite"
            guard FileManager.default.fileExists(atPath: path) else { return nil }
            // The service itself holds the file's lock; SQLite lets others read meanwhile.
            var configuration = Configuration()
            configuration.readonly = true
            configuration.busyMode = .timeout(5)
            return try Self.reading(path) {
                StoreReader(
                    service: service, engine: .sqlite(try DatabaseQueue(path: path, configuration: configuration)))
            }
        }
    }

    /// Says where a store was looked for.
    static func noStore(_ dataDirectory: String, _ what: String) -> Problem {
        let settings = EnvironmentSettings(ProcessInfo.processInfo.environment)
        if let url = try? settings.secret("DATABASE_URL"), !url.isEmpty {
            return Problem(
                .setting, "\(what) in the database of DATABASE_URL.",
                "Its services make it when they start. DATABASE_SCHEMA_PREFIX must be theirs.")
        }
        return Problem(
            .setting, "\(what) in \(dataDirectory), and DATABASE_URL is not set.",
            "Set it, or --data-dir to the folder of `identitybus up`.")
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
            return try database.transaction { try $0.query(sql, parameters) }
        case .sqlite(let queue):
            let arguments = StatementArguments(parameters.map(Self.argument))
            return try Self.reading(queue.path) {
                try queue.read { database in
                    try Row.fetchAll(database, sql: sql, arguments: arguments).map { row in
                        SQLRow(row.databaseValues.map(Self.value))
                    }
                }
            }
        }
    }

    /// - Throws: `Problem` that names the file, where SQLite cannot read it.
    private static func reading<Value>(_ path: String, _ work: () throws -> Value) throws -> Value {
        do {
            return try work()
        } catch let error as DatabaseError {
            throw Problem(
                .setting, "\(path) cannot be read: \(error.message ?? "SQLite error \(error.resultCode.rawValue)").",
                "Is it the store of a service of this version, and may you read it and write beside it?")
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
