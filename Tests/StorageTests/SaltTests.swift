// SPDX-License-Identifier: Apache-2.0

import TestKit
import Testing

@testable import Storage

@Suite struct SaltTests {
    private func salt(_ database: any SQLDatabase) throws -> [UInt8] {
        try database.transaction { try Salt.read(in: $0) }
    }

    @Test(arguments: SQLEngine.allCases)
    func aStoreMakesItOnceAndKeepsIt(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let first = try salt(database)
        #expect(first.count == 32 && Set(first).count > 8)
        #expect(try salt(database) == first)
        database.close()
        #expect(try salt(try store.openMigrated()) == first)
        let other = try TestStore(engine)
        #expect(try salt(try other.openMigrated()) != first)
    }

    @Test(arguments: SQLEngine.allCases)
    func whatWasUndoneIsNotKept(_ engine: SQLEngine) throws {
        struct Undo: Error {}
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        var undone: [UInt8] = []
        #expect(throws: Undo.self) {
            try database.transaction { transaction in
                undone = try Salt.read(in: transaction)
                throw Undo()
            }
        }
        #expect(try salt(database) != undone)
    }

    /// Two replicas start together. The one that comes second cannot see the salt yet, and learns it when it tries again:
    ///
    /// ```
    /// one                                two
    /// BEGIN, look for something
    ///                                    make the salt, COMMIT
    /// make the salt -> conflict
    /// ```
    @Test func replicasAgree() throws {
        let store = try TestStore(.postgresql)
        let one = try store.openMigrated()
        let two = try store.open()
        var made: [UInt8] = []
        let error = failure {
            try one.transaction { first in
                _ = try first.query("SELECT number FROM migrations")
                made = try salt(two)
                _ = try Salt.read(in: first)
            }
        }
        #expect(error?.kind == .conflict)
        #expect(try salt(one) == made)
    }
}
