// SPDX-License-Identifier: Apache-2.0

import Foundation
import Runtime
import Storage

/// The database server of one service: a SQLite file in memory, with one transaction at a time. That is stricter than
/// PostgreSQL, so what comes of two transactions at once is not found here; conflicts are made up.
final class SimulatedStore {
    private let path: String
    private var database: SQLiteDatabase
    /// Raised when it is put back.
    private(set) var generation = 0
    /// Nobody can reach it.
    var isDown = false
    /// It answers and does not write, as a server that became a standby.
    var isReadOnly = false
    private var copy: [String: Data] = [:]

    /// - Parameter template: the file of a migrated store.
    init(_ template: Data, in folder: URL, name: String) throws {
        path = folder.appending(path: "\(name).sqlite").path
        for suffix in Self.suffixes { try? FileManager.default.removeItem(atPath: path + suffix) }
        try template.write(to: URL(filePath: path))
        database = try SQLiteDatabase(path: path, synchronous: .normal)
    }

    private static let suffixes = ["", "-wal", "-shm"]

    /// The file of a store with the tables of a service.
    static func template<Service: CommandService>(_: Service.Type, in folder: URL) throws -> Data {
        let path = folder.appending(path: "template-\(Service.name).sqlite").path
        let database = try SQLiteDatabase(path: path, synchronous: .normal)
        try Service.migrator.run(on: database)
        // A random salt would make every run another one: ids come from it, and from them partitions.
        try database.transaction {
            _ = try Salt.read(in: $0)
            try $0.execute("UPDATE salt SET value = $1", [.blob([UInt8](repeating: 7, count: Salt.byteCount))])
        }
        database.close()
        return try Data(contentsOf: URL(filePath: path))
    }

    func transaction<Value>(_ body: (any SQLTransaction) throws -> Value) throws -> Value {
        try database.transaction(body)
    }

    /// How much is decided and not known to be published.
    var unpublished: Int {
        (try? transaction { Int(try $0.query("SELECT count(*) FROM outbox")[0].integer(0)) }) ?? .max
    }

    /// Where that is, and how far its partitions are known to be published.
    var unpublishedPlaces: String {
        let rows = try? transaction {
            try $0.query(
                """
                SELECT logs.topic, logs.partition, logs.incarnation, log_offset, progress.incarnation, next_offset,
                    published_through
                FROM outbox JOIN logs ON logs.number = log
                    JOIN progress ON progress.topic = logs.topic AND progress.partition = logs.partition
                """)
        }
        return (rows ?? []).map { row in
            let numbers = (1..<7).map { (try? row.optionalInteger($0)).flatMap { $0 } ?? -1 }
            return "\((try? row.text(0)) ?? "?")[\(numbers[0])]\(numbers[1])@\(numbers[2]), whose log \(numbers[3]) is "
                + "decided up to \(numbers[4]) and published through \(numbers[5])"
        }.joined(separator: "; ")
    }

    /// Takes a copy, to be put back later.
    func takeCopy() {
        for suffix in ["", "-wal"] { copy[suffix] = FileManager.default.contents(atPath: path + suffix) }
    }

    /// - Returns: whether there was a copy.
    func putBack() throws -> Bool {
        guard !copy.isEmpty else { return false }
        database.close()
        for suffix in Self.suffixes { try? FileManager.default.removeItem(atPath: path + suffix) }
        for (suffix, data) in copy { try data.write(to: URL(filePath: path + suffix)) }
        database = try SQLiteDatabase(path: path, synchronous: .normal)
        generation += 1
        return true
    }

    func close() {
        database.close()
        for suffix in Self.suffixes + [".lock"] { try? FileManager.default.removeItem(atPath: path + suffix) }
    }
}

/// A replica's connection to it.
final class SimulatedConnection: SQLDatabase {
    let engine = SQLEngine.sqlite
    private(set) var connectionNumber = 0
    private let store: SimulatedStore
    private let replica: Replica
    private var isConnected = false
    private var generation = 0

    init(_ store: SimulatedStore, _ replica: Replica) { (self.store, self.replica) = (store, replica) }

    func transaction<T>(_ body: (any SQLTransaction) throws -> T) throws -> T {
        replica.yield(.store)
        try connect()
        let fault = replica.takeStoreFault()
        if fault == .lostBefore { throw lose("the connection was lost") }
        let value = try store.transaction { transaction in
            let value = try body(transaction)
            if fault == .conflict { throw StorageError(kind: .conflict, message: "somebody else won") }
            if store.isReadOnly { throw StorageError(kind: .unavailable, message: "read-only", sqlState: "25006") }
            return value
        }
        if fault == .lostAnswer { throw lose("the answer to COMMIT was lost", outcomeUnknown: true) }
        replica.yield(.committed)
        if replica.isDead { throw StorageError(kind: .unavailable, message: "dead") }
        return value
    }

    func exclusiveTransaction<T>(_ body: (any SQLTransaction) throws -> T) throws -> T { try transaction(body) }

    func close() {}

    private func connect() throws {
        if replica.isDead { throw StorageError(kind: .unavailable, message: "dead") }
        if store.isDown || replica.isCutOffFromStore { throw lose("the server does not answer") }
        if isConnected, generation == store.generation { return }
        if isConnected {
            isConnected = false
            throw StorageError(kind: .unavailable, message: "the server was restarted", sqlState: "57P01")
        }
        isConnected = true
        generation = store.generation
        connectionNumber += 1
    }

    private func lose(_ message: String, outcomeUnknown: Bool = false) -> StorageError {
        isConnected = false
        return StorageError(kind: .unavailable, message: message, sqlState: "08006", outcomeUnknown: outcomeUnknown)
    }
}

/// What may happen to one transaction.
enum StoreFault: CaseIterable {
    case lostBefore, lostAnswer, conflict
}
