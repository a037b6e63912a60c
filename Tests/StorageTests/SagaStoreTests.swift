// SPDX-License-Identifier: Apache-2.0

import Contracts
import TestKit
import Testing

@testable import Storage

@Suite struct SagaStoreTests {
    private func saga(_ id: String, begunAt: Int64, isSettled: Bool = true, origin: [UInt8] = [1]) -> Saga {
        Saga(
            key: CommandKey(app: "app", source: "source", id: CommandID(id)), origin: origin, recordKey: origin,
            reply: nil,
            isSettled: isSettled, begunAt: begunAt)
    }

    private func prune(_ database: any SQLDatabase, before cutoff: Int64, limit: Int = 10) throws -> Int {
        try database.transaction { try Sagas.prune(olderThan: cutoff, limit: limit, in: $0) }
    }

    private func left(_ database: any SQLDatabase) throws -> [String] {
        try database.read("SELECT id FROM saga ORDER BY begun_at").map { try $0.text(0) }
    }

    /// The reply of a saga that is forgotten too early is dropped, and the command is asked again for ever.
    @Test(arguments: SQLEngine.allCases)
    func whatIsUnsettledOrInTheInboxStays(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        try database.transaction { transaction in
            try Sagas.save(
                [
                    saga("waits", begunAt: 1, isSettled: false), saga("known", begunAt: 2), saga("a", begunAt: 3),
                    saga("b", begunAt: 4), saga("young", begunAt: 5),
                ], in: transaction)
            try InboxTests.append([InboxTests.row(offset: 0, id: "known")], in: transaction)
        }
        #expect(try prune(database, before: 3) == 0)
        #expect(try prune(database, before: 5, limit: 1) == 1)
        #expect(try left(database) == ["waits", "known", "b", "young"])
        #expect(try prune(database, before: 5) == 1)
        try database.transaction { _ = try $0.execute("DELETE FROM inbox_1") }
        #expect(try prune(database, before: 5) == 1)
        try database.transaction { try Sagas.save([saga("waits", begunAt: 1)], in: $0) }
        #expect(try prune(database, before: 5) == 1)
        #expect(try left(database) == ["young"])
    }

    /// A command that is begun anew after the inbox forgot it is a new saga in all respects.
    @Test(arguments: SQLEngine.allCases)
    func oneThatBeginsAnewTakesThePlaceOfTheOldOne(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        try database.transaction { try Sagas.save([saga("a", begunAt: 1)], in: $0) }
        let anew = saga("a", begunAt: 100, isSettled: false, origin: [2, 3])
        try database.transaction { try Sagas.save([anew], in: $0) }
        #expect(try database.transaction { try Sagas.find([anew.key], in: $0) } == [anew.key: anew])
        #expect(try prune(database, before: 100) == 0)
    }
}
