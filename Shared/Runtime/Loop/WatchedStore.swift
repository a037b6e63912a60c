// SPDX-License-Identifier: Apache-2.0

import Storage

/// The loop's store, which tells ``LoopHealth`` while an answer of it is waited for.
final class WatchedStore: SQLDatabase {
    private let store: any SQLDatabase
    private let health: LoopHealth

    init(_ store: any SQLDatabase, _ health: LoopHealth) {
        self.store = store
        self.health = health
    }

    var engine: SQLEngine { store.engine }
    var connectionNumber: Int { store.connectionNumber }
    var lackOfRoom: StorageError? { store.lackOfRoom }

    @discardableResult
    func transaction<T>(_ body: (any SQLTransaction) throws -> T) throws -> T {
        health.asksStore(true)
        defer { health.asksStore(false) }
        return try store.transaction(body)
    }

    /// May take its time: it waits for others, and migrates.
    @discardableResult
    func exclusiveTransaction<T>(_ body: (any SQLTransaction) throws -> T) throws -> T {
        try store.exclusiveTransaction(body)
    }

    func close() { store.close() }
}
