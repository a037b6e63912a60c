// SPDX-License-Identifier: Apache-2.0

import Foundation
public import Logging
public import Storage

/// Where a service keeps its state: one SQLite file per service, or a PostgreSQL schema per service.
public enum DatabaseConfiguration: Sendable, CustomStringConvertible {
    case sqlite(directory: String, synchronous: SQLiteDatabase.Synchronous)
    /// - Parameter schemas: what the names of the services' schemas begin with.
    case postgresql(url: String, schemas: String = DatabaseConfiguration.usualSchemas)

    public static let usualSchemas = "identity_"

    /// Whether several loops may work on one store at once: in one process, or as replicas.
    var isShared: Bool { if case .postgresql = self { true } else { false } }

    /// Opens the store of `service`. PostgreSQL connects at the first transaction, SQLite at once.
    /// - Throws: `StorageError`.
    public func open(service: String, logger: Logger) throws -> any SQLDatabase {
        switch self {
        case .sqlite(let directory, let synchronous):
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            return try SQLiteDatabase(path: "\(directory)/\(service).sqlite", synchronous: synchronous)
        case .postgresql(let url, let schemas):
            return try PostgreSQLDatabase(url: url, schema: "\(schemas)\(service)", logger: logger)
        }
    }

    /// Never shows the URL: it may hold a password.
    public var description: String {
        switch self {
        case .sqlite(let directory, _): "SQLite in \(directory)"
        case .postgresql: "PostgreSQL"
        }
    }
}
