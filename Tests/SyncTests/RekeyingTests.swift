// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import TestKit
import Testing

@testable import Runtime
@testable import Storage
@testable import Sync

/// `identitybus rekey`, on a store.
@Suite struct RekeyingTests {
    private func app(_ folded: Set<IdentityType>) -> AppSettings {
        var settings = SyncSettings.worked(.conversion)
        settings.uniqueIdentities = [.customerID]
        settings.foldedIdentities = folded
        return AppSettings(id: "demo", sync: settings)
    }

    /// Profiles with one e-mail each, and the rows of these as an app with these settings stores them.
    private func fill(_ database: any SQLDatabase, _ app: AppSettings, _ emails: [(MPID, String)]) throws {
        #expect(try SyncService.refusal(of: AppDirectory([app]), on: database) == nil)
        var entries: [IdentityEntry.Key: IdentityEntry] = [:]
        var profiles: [MPID: Profile] = [:]
        for (mpid, email) in emails {
            let identity = Identity(.email, IdentityValue(email))
            profiles[mpid, default: Profile(app: app.id, mpid: mpid, seen: 1)].add(identity, at: 1)
            let key = IdentityEntry.Key(app: app.id, identity, app.sync)
            entries[key, default: IdentityEntry(key: key, bucket: TokenBucket(thousandths: 7, at: 8), isTold: true)]
                .holders.append(mpid)
        }
        let rows = entries.values.sorted { $0.key < $1.key }
        try database.transaction { transaction in
            try Profile.table.insert(profiles.values.sorted { $0.mpid < $1.mpid }, in: transaction)
            try IdentityEntry.table.insert(rows, in: transaction)
        }
    }

    /// Every value with who holds it, and whether its bucket and mark are still there.
    private func values(_ database: any SQLDatabase) throws -> [String: [MPID]] {
        let rows = try database.transaction { try IdentityEntry.table.find("app = $1", ["demo"], in: $0) }
        #expect(rows.allSatisfy { $0.isTold && $0.bucket == TokenBucket(thousandths: 7, at: 8) })
        return Dictionary(uniqueKeysWithValues: rows.map { ($0.key.id.value.text, $0.holders) })
    }

    private func plan(_ database: any SQLDatabase, _ app: AppSettings) throws -> [Rekeying.Change] {
        try database.transaction { transaction in
            try Rekeying(app).plan(transaction.engine) { try transaction.query($0, $1) }
        }
    }

    private func rekey(_ database: any SQLDatabase, _ app: AppSettings) throws -> [IdentityType: Int] {
        try database.exclusiveTransaction { transaction in
            let rekeying = Rekeying(app)
            return try rekeying.run(
                try rekeying.plan(transaction.engine) { try transaction.query($0, $1) }, in: transaction)
        }
    }

    private func mpid(_ number: Int) throws -> MPID { try #require(MPID(Int64(number))) }

    /// S111. More rows than are held at once, there and back.
    @Test(arguments: SQLEngine.allCases) func everyValueGetsItsKey(_ engine: SQLEngine) throws {
        let kept = try TestStore(engine)
        defer { withExtendedLifetime(kept) {} }
        let database = try kept.openMigrated(.normal, SyncService.migrations)
        let emails = try (1...1300).map { number in
            (try mpid(number), "\(number % 3 == 0 ? "user" : "User")-\(number)@X.example")
        }
        try fill(database, app([]), emails)
        let folded = Dictionary(uniqueKeysWithValues: emails.map { ($1.lowercased(), [$0]) })
        #expect(try plan(database, app([.email])).map(\.values) == [1300])
        #expect(try rekey(database, app([.email])) == [.email: 1300])
        #expect(try values(database) == folded)
        #expect(try plan(database, app([.email])).isEmpty)
        #expect(try rekey(database, app([.email])).isEmpty)
        #expect(try SyncService.refusal(of: AppDirectory([app([.email])]), on: database) == nil)
        #expect(try SyncService.refusal(of: AppDirectory([app([])]), on: database) != nil)
        #expect(try rekey(database, app([])) == [.email: 1300])
        #expect(try values(database) == Dictionary(uniqueKeysWithValues: emails.map { ($1, [$0]) }))
    }

    /// S111. Only what is of the app and of a type that changes.
    @Test(arguments: SQLEngine.allCases) func otherTypesAndAppsStay(_ engine: SQLEngine) throws {
        let kept = try TestStore(engine)
        defer { withExtendedLifetime(kept) {} }
        let database = try kept.openMigrated(.normal, SyncService.migrations)
        try fill(database, app([]), [(try mpid(1), "A@x")])
        let others = [("demo", IdentityType.other), ("else", .email)].map { app, type in
            IdentityEntry(key: .init(app: AppID(app), type: type, value: "B@x"), holders: [.max])
        }
        try database.transaction { try IdentityEntry.table.insert(others, in: $0) }
        #expect(try rekey(database, app([.email])) == [.email: 1])
        #expect(try database.transaction { try IdentityEntry.table.find(others.map(\.key), in: $0) } == others)
    }

    /// S112.
    @Test(arguments: SQLEngine.allCases) func valuesThatWouldMeetAreListed(_ engine: SQLEngine) throws {
        let kept = try TestStore(engine)
        defer { withExtendedLifetime(kept) {} }
        let database = try kept.openMigrated(.normal, SyncService.migrations)
        let emails = [
            (1, "A@x"), (2, "a@x"), (3, "B@x"), (4, "B@x"), (5, "C@x"), (5, "c@X"), (6, "É@x"), (7, "é@x"),
        ]
        try fill(database, app([]), try emails.map { (try mpid($0), $1) })
        let before = try values(database)
        let change = try #require(try plan(database, app([.email])).first)
        #expect(change.ignoresCase && change.values == 7 && change.meetings == 2)
        let listed = change.listed.map { meeting in
            meeting.values.map { "\($0.value.text) \($0.holders)" }.sorted()
        }
        let expected = [["A@x [1]", "a@x [2]"], ["C@x [5]", "c@X [5]"]]
        #expect(listed == expected, "several holders of one value, and letters beyond Z, do not meet")
        #expect(try values(database) == before)
        // Should it be tried all the same, nothing is lost.
        #expect(throws: StorageError.self) { try rekey(database, app([.email])) }
        #expect(try values(database) == before)
    }

    /// S113.
    @Test(arguments: SQLEngine.allCases) func withCaseEveryProfileHasItsOwnSpelling(_ engine: SQLEngine) throws {
        let kept = try TestStore(engine)
        defer { withExtendedLifetime(kept) {} }
        let database = try kept.openMigrated(.normal, SyncService.migrations)
        let emails = [(9, "A@x"), (1, "a@x"), (2, "A@x"), (3, "b@x")]
        try fill(database, app([.email]), try emails.map { (try mpid($0), $1) })
        #expect(try values(database).keys.sorted() == ["a@x", "b@x"])
        #expect(try rekey(database, app([])) == [.email: 1])
        let expected = ["A@x": [try mpid(9), try mpid(2)], "a@x": [try mpid(1)], "b@x": [try mpid(3)]]
        #expect(try values(database) == expected)
    }

    /// S111. What a login stored is found by it afterwards, in any case or only in its own.
    @Test(arguments: SQLEngine.allCases) func aLoginFindsItsProfileAfterwards(_ engine: SQLEngine) throws {
        let store = try SyncTestStore(engine)
        let world = World(app([]).sync)
        func login(_ email: String) throws -> MPID? {
            world.count += 1
            let request = SyncRequest(deviceId: "d", knownIdentities: ["email": email])
            let step = RandomCommands.Step(command: .move(.login, request), context: world.context)
            guard case .sync(let result) = Answer(try store.run([step])[0].outcome) else { return nil }
            return result.mpid
        }
        #expect(try SyncService.refusal(of: AppDirectory([world.app]), on: store.database) == nil)
        let mpid = try login("Ann@x.example")
        world.settings.foldedIdentities = [.email]
        #expect(try rekey(store.database, world.app) == [.email: 1])
        #expect(try login("ann@X.example") == mpid)
        #expect(try login("Ann@x.example") == mpid)
        world.settings.foldedIdentities = []
        #expect(try rekey(store.database, world.app) == [.email: 1])
        #expect(try login("Ann@x.example") == mpid)
        #expect(try login("ann@x.example") != mpid)
    }

    @Test(arguments: SQLEngine.allCases) func aStoreOfAnEarlierVersionIsNotTouched(_ engine: SQLEngine) throws {
        let kept = try TestStore(engine)
        defer { withExtendedLifetime(kept) {} }
        // Without the service's migrations.
        let database = try kept.openMigrated(.normal)
        #expect(throws: Rekeying.OlderStore.self) { try plan(database, app([.email])) }
    }
}
