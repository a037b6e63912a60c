// SPDX-License-Identifier: Apache-2.0

import TestKit
import Testing

@testable import Storage

/// What may only be done without a service, and services meanwhile.
@Suite struct ServiceLockTests {
    private func open(_ store: TestStore, isOfService: Bool) throws -> PostgreSQLDatabase {
        try PostgreSQLDatabase(
            url: TestStore.serverURL(), schema: store.name, isOfService: isOfService, logger: .quiet)
    }

    @Test func servicesShareItAndKeepOthersAway() throws {
        let store = try TestStore(.postgresql)
        let (one, two) = (try open(store, isOfService: true), try open(store, isOfService: true))
        let tool = try open(store, isOfService: false)
        func take() -> StorageError? { failure { try tool.exclusiveTransaction { try ServiceLock.take(in: $0) } } }
        try one.transaction { _ = try $0.query("SELECT 1") }
        try two.transaction { _ = try $0.query("SELECT 1") }
        one.close()
        let error = try #require(take())
        #expect(error.kind == .unavailable && error.message.contains("stop all its replicas"))
        two.close()
        // The server ends a session a moment after its client has gone.
        var tries = 0
        while take() != nil, tries < 200 { tries += 1 }
        #expect(take() == nil)
    }

    @Test func aServiceWaitsUntilItIsFree() throws {
        let store = try TestStore(.postgresql)
        let (service, tool) = (try open(store, isOfService: true), try open(store, isOfService: false))
        let other = try open(try TestStore(.postgresql), isOfService: true)
        func ask(_ database: PostgreSQLDatabase) -> StorageError? {
            failure { try database.transaction { _ = try $0.query("SELECT 1") } }
        }
        try tool.exclusiveTransaction { transaction in
            try ServiceLock.take(in: transaction)
            #expect(ask(service)?.kind == .unavailable)
            #expect(ask(other) == nil, "another schema is another store")
        }
        #expect(ask(service) == nil)
    }
}
