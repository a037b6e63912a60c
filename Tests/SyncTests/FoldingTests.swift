// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Foundation
import Synchronization
import TestKit
import Testing

@testable import Runtime
@testable import Storage
@testable import Sync

/// The apps file and the store agree under which folding values are stored.
@Suite struct FoldingTests {
    private func apps(_ folded: [AppID: Set<IdentityType>]) -> AppDirectory {
        AppDirectory(
            folded.map { id, types in
                AppSettings(id: id, sync: SyncSettings(folded: types))
            })
    }

    private func store(
        _ type: IdentityType, _ value: IdentityValue, of app: AppID = "demo", in transaction: any SQLTransaction
    ) throws {
        let entry = IdentityEntry(key: .init(app: app, type: type, value: value), holders: [.max])
        try IdentityEntry.table.insert([entry], in: transaction)
    }

    private func refusal(_ folded: [AppID: Set<IdentityType>], _ database: any SQLDatabase) throws -> String? {
        try SyncService.refusal(of: apps(folded), on: database)?.description
    }

    private func rows(_ database: any SQLDatabase) throws -> [String] {
        try database.transaction { transaction in
            try transaction.query("SELECT app, types FROM foldings ORDER BY app").map {
                "\(try $0.text(0)): \(try $0.text(1))"
            }
        }
    }

    private static let request = PartitionClaimRequest(topic: "t", partition: 0)

    private func claim(in transaction: any SQLTransaction) throws -> PartitionClaim {
        try #require(
            try Progress.claim([Self.request], clusterID: "c", owner: "o", in: transaction).first)
    }

    /// As a batch does it that decides the next record.
    private func advance(_ claim: PartitionClaim, in transaction: any SQLTransaction) throws(StorageError) {
        let update = ProgressUpdate(
            topic: "t", partition: 0, epoch: claim.epoch, expectedOffset: claim.nextOffset, nextOffset: 1,
            publishedThrough: -1, logTime: 0)
        try Progress.advance([update], in: transaction)
    }

    private func isFenced(_ claim: PartitionClaim, _ database: any SQLDatabase) throws -> Bool {
        do {
            try database.transaction { try advance(claim, in: $0) }
            return false
        } catch let error as StorageError where error.isFenced {
            return true
        }
    }

    // MARK: One replica

    /// S108.
    @Test(arguments: SQLEngine.allCases) func aChangeIsRefusedWhileThereAreValues(_ engine: SQLEngine) throws {
        let kept = try TestStore(engine)
        defer { withExtendedLifetime(kept) {} }
        let database = try kept.openMigrated(.normal, SyncService.migrations)
        #expect(try refusal(["demo": [], "other": [.email]], database) == nil)
        #expect(try refusal(["demo": [.email], "other": [.email]], database) == nil, "there are no values")
        try database.transaction { try store(.email, "a@x", in: $0) }
        let unfold = try #require(try refusal(["demo": [], "other": [.email]], database))
        #expect(unfold.contains("app demo, sync: the store has values of email without its case"))
        #expect(unfold.contains("identitybus rekey --app demo"))
        #expect(try refusal(["demo": [.email, .other], "other": []], database) == nil, "no values of these")
        try database.transaction { try store(.google, "g", in: $0) }
        let fold = try #require(try refusal(["demo": [.email, .google]], database))
        #expect(fold.contains("values of google with its case"))
        #expect(try rows(database) == ["demo: email,other", "other: "], "also of apps that are not in the file")
    }

    /// S109.
    @Test(arguments: SQLEngine.allCases) func nothingOfARefusedFileIsTakenUp(_ engine: SQLEngine) throws {
        let kept = try TestStore(engine)
        defer { withExtendedLifetime(kept) {} }
        let database = try kept.openMigrated(.normal, SyncService.migrations)
        #expect(try refusal(["a": [], "z": []], database) == nil)
        let claim = try database.transaction { transaction in
            try store(.email, "A@x", of: "z", in: transaction)
            return try self.claim(in: transaction)
        }
        #expect(try refusal(["a": [.email], "m": [], "z": [.email]], database)?.contains("app z") == true)
        #expect(try rows(database) == ["a: ", "z: "])
        #expect(try !isFenced(claim, database), "a refused file holds nobody up")
    }

    // MARK: Several replicas

    /// S110.
    @Test(arguments: SQLEngine.allCases) func whoeverChangesTheStoreEndsAllClaims(_ engine: SQLEngine) throws {
        let kept = try TestStore(engine)
        defer { withExtendedLifetime(kept) {} }
        let database = try kept.openMigrated(.normal, SyncService.migrations)
        let old = apps(["demo": []])
        #expect(try SyncService.refusal(of: old, on: database) == nil)
        func claimed(_ apps: AppDirectory) throws -> (AppsFile.Problem?, PartitionClaim) {
            try database.transaction { (try SyncService.refusal(of: apps, in: $0), try self.claim(in: $0)) }
        }
        let (problem, first) = try claimed(old)
        #expect(problem == nil)
        #expect(try refusal(["demo": [], "new": [.email]], database) == nil)
        #expect(try !isFenced(first, database), "a new app ends no claim")
        let (_, second) = try claimed(old)
        #expect(try refusal(["demo": [.email]], database) == nil)
        #expect(try isFenced(second, database))
        #expect(try claimed(old).0?.description.contains("give all replicas one file") == true)
        try database.transaction { try store(.email, "a@x", in: $0) }
        #expect(try claimed(old).0?.description.contains("identitybus rekey --app demo") == true)
        // An earlier copy of the store, from before the app was in force.
        try database.transaction { try $0.execute("DELETE FROM foldings") }
        #expect(try claimed(apps(["demo": [.email]])).0 == nil)
        #expect(try rows(database) == ["demo: email"])
    }

    /// Runs `first` on another connection and thread, and takes up a file when that has done its work and not yet committed.
    /// - Returns: what came of the one, and why the file is refused.
    private func beside<Result: Sendable>(
        _ schema: String, _ first: @escaping @Sendable (any SQLTransaction) throws -> Result,
        _ folded: [AppID: Set<IdentityType>], _ database: any SQLDatabase
    ) throws -> (Result, String?) {
        let (isDone, isOver, box) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), Box<Result>())
        let thread = Thread {
            defer {
                isDone.signal()
                isOver.signal()
            }
            do {
                let database = try PostgreSQLDatabase(url: TestStore.serverURL(), schema: schema, logger: .quiet)
                let value = try database.transaction { transaction in
                    let value = try first(transaction)
                    isDone.signal()
                    Thread.sleep(forTimeInterval: 0.3)
                    return value
                }
                box.set(value)
            } catch {
                Issue.record(error)
            }
        }
        thread.start()
        isDone.wait()
        let refusal = try refusal(folded, database)
        isOver.wait()
        return (try #require(box.value), refusal)
    }

    private final class Box<Value: Sendable>: Sendable {
        private let mutex = Mutex<Value?>(nil)
        var value: Value? { mutex.withLock { $0 } }
        func set(_ value: Value) { mutex.withLock { $0 = value } }
    }

    /// S110.
    @Test func aValueThatIsBeingStoredIsSeen() throws {
        let schema = try TestStore(.postgresql)
        defer { withExtendedLifetime(schema) {} }
        let database = try schema.openMigrated(.normal, SyncService.migrations)
        #expect(try refusal(["demo": []], database) == nil)
        let claim = try database.transaction { try self.claim(in: $0) }
        let store: @Sendable (any SQLTransaction) throws -> Void = { transaction in
            try self.store(.email, "A@x", in: transaction)
            try self.advance(claim, in: transaction)
        }
        let (_, problem) = try beside(schema.name, store, ["demo": [.email]], database)
        #expect(problem?.contains("rekey") == true)
        #expect(try rows(database) == ["demo: "])
    }

    /// S110.
    @Test func aClaimThatIsBeingMadeByTheOldFileEnds() throws {
        let schema = try TestStore(.postgresql)
        defer { withExtendedLifetime(schema) {} }
        let database = try schema.openMigrated(.normal, SyncService.migrations)
        #expect(try refusal(["demo": []], database) == nil)
        let old = apps(["demo": []])
        let claim: @Sendable (any SQLTransaction) throws -> (AppsFile.Problem?, PartitionClaim) = { transaction in
            (try SyncService.refusal(of: old, in: transaction), try self.claim(in: transaction))
        }
        let (claimed, problem) = try beside(schema.name, claim, ["demo": [.email]], database)
        #expect(claimed.0 == nil && problem == nil)
        #expect(try isFenced(claimed.1, database))
    }
}
