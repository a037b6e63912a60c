// SPDX-License-Identifier: Apache-2.0

import Storage

/// The loop's store, which tells ``LoopHealth`` while an answer of it is waited for. It is opened by the first
/// transaction that can: one whose disk is full may have room later.
final class WatchedStore: SQLDatabase {
    let engine: SQLEngine
    private let health: LoopHealth
    private let open: () throws -> any SQLDatabase
    private var opened: (any SQLDatabase)?

    /// - Parameter open: opens the store, of this engine.
    init(_ engine: SQLEngine, _ health: LoopHealth, open: @escaping () throws -> any SQLDatabase) {
        self.engine = engine
        self.health = health
        self.open = open
    }

    var connectionNumber: Int { opened?.connectionNumber ?? 0 }

    private var store: any SQLDatabase {
        get throws {
            if let opened { return opened }
            let store = try open()
            opened = store
            return store
        }
    }

    @discardableResult
    func transaction<T>(_ body: (any SQLTransaction) throws -> T) throws -> T {
        health.asksStore(true)
        defer { health.asksStore(false) }
        return try store.transaction(body)
    }

    func obstacle(to tables: [String], isSuspected: Bool) throws -> StorageError? {
        health.asksStore(true)
        defer { health.asksStore(false) }
        return try store.obstacle(to: tables, isSuspected: isSuspected)
    }

    /// May take its time: it waits for others, and migrates.
    @discardableResult
    func exclusiveTransaction<T>(_ body: (any SQLTransaction) throws -> T) throws -> T {
        let store = try store
        // Only one that answers can be waited for.
        try transaction { _ = try $0.query("SELECT 1", []) }
        health.migrates()
        return try store.exclusiveTransaction(body)
    }

    func close() { opened?.close() }
}
