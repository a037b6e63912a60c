// SPDX-License-Identifier: Apache-2.0

import Apps
import Storage
import Testing

@testable import Runtime

@Suite struct StoreConnectionTests {
    private static let timeout = StorageError(kind: .conflict, message: "lock timeout", sqlState: "55P03")
    private static let obstacle = StorageError(kind: .conflict, message: "a lock on persons", sqlState: "55P03")

    /// A table that is free again was what was waited for: nobody keeps it any more.
    @Test func aTableThatIsFreeIsNotWaitedFor() {
        let now = ContinuousClock.now
        var store = StoreConnection(secrets: DerivedSecrets(Fixture.keys))
        store.waitedInVain(Self.timeout, now: now)
        store.looked(Self.obstacle, now: now + .seconds(1))
        #expect(store.obstacle?.message == Self.obstacle.message)
        store.looked(nil, now: now + .seconds(2))
        #expect(store.obstacle == nil)
    }

    /// No look sees the lock of a row: what was met counts for ten seconds.
    @Test func aRowIsWaitedForUntilItIsOld() {
        let now = ContinuousClock.now
        var store = StoreConnection(secrets: DerivedSecrets(Fixture.keys))
        store.waitedInVain(Self.timeout, now: now)
        for second in 1...9 {
            store.looked(nil, now: now + .seconds(second))
            #expect(store.obstacle?.message == Self.timeout.message)
        }
        store.looked(nil, now: now + .seconds(10))
        #expect(store.obstacle == nil)
    }
}
