// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage
import TestKit
import Testing
import WireJSON

@testable import Sync

/// S135.
@Suite struct FactsTests {
    private let app = AppSettings(id: "demo")

    private func chain(_ id: CommandID) -> DecisionChain {
        DecisionChain(StoredKey(CommandKey(app: "demo", source: "test", id: id)))
    }

    @Test(arguments: SQLEngine.allCases) func profilesValuesAndDevicesAreTold(_ engine: SQLEngine) throws {
        let store = try SyncTestStore(engine)
        let mpid = try #require(MPID("77"))
        var profile = Profile(app: "demo", mpid: mpid, seen: 5)
        profile.identities = [Identity(.email, "Anna@b.io")]
        profile.namedAt = [5]
        let key = IdentityEntry.Key(app: "demo", Identity(.email, "Anna@b.io"), app.sync)
        var device = DeviceRecord(key: .init(app: "demo", id: "d1"))
        device.move(to: mpid, now: 5, remembering: 10)
        let state = { [profile, device] in
            var state = SyncState()
            var chain = chain("c1")
            for change: SyncState.Change in [
                .profile(profile), .identity(IdentityEntry(key: key, holders: [mpid])), .device(device),
            ] {
                state.chain(change, &chain)
                state.apply(change)
            }
            return state
        }()
        try store.database.transaction { try SyncStore(transaction: $0).save(state) }
        let service = SyncService(aliasDelay: .zero)
        func subject(_ id: String) throws -> FactsSubject {
            try store.database.transaction { try service.facts(about: id, of: app, in: $0) }
        }
        for (id, kinds) in [
            ("77", ["profile", "device"]), ("d1", ["device"]), (key.id.value.text, ["identity"]), ("78", []), ("x", []),
            ("077", []),
        ] {
            let found = try subject(id)
            #expect(found.state.compactMap { $0["kind"]?.stringValue } == kinds, "\(id)")
            #expect(found.heads.count == (kinds.isEmpty ? 0 : 1), "\(id)")
            #expect(found.spellings.contains(id))
        }
    }

    /// However many devices a profile has, it leads to what was decided about it.
    @Test func aProfileWithManyDevicesIsTold() throws {
        let store = try SyncTestStore(.sqlite)
        let mpid = try #require(MPID("77"))
        var chain = chain("c1")
        var state = SyncState()
        let devices = (1...60).map { number in
            var device = DeviceRecord(key: .init(app: "demo", id: DeviceID("d\(number)")))
            device.move(to: mpid, now: 5, remembering: 10)
            return SyncState.Change.device(device)
        }
        for change in [.profile(Profile(app: "demo", mpid: mpid, seen: 5))] + devices {
            state.chain(change, &chain)
            state.apply(change)
        }
        let found = try store.database.transaction { [state] in
            try SyncStore(transaction: $0).save(state)
            return try SyncService(aliasDelay: .zero).facts(about: "77", of: app, in: $0)
        }
        #expect(found.state.count == FactsSubject.most && found.state.first?["kind"] == "profile")
        #expect(found.heads.count == 1)
    }

    /// A value that nobody holds any more has no row; who lost it is found by a mention.
    @Test func aValueThatNobodyHoldsIsMentioned() throws {
        let mpid = try #require(MPID("77"))
        let key = IdentityEntry.Key(app: "demo", type: .email, value: "a@b.io")
        var state = SyncState()
        state.load([IdentityEntry(key: key, holders: [mpid])], of: [key])
        var chain = chain("c1")
        state.chain(.identity(IdentityEntry(key: key)), &chain)
        #expect(chain.mentions.map(\.text) == ["a@b.io"])
        var other = self.chain("c2")
        state.chain(.release(.init(app: "demo", type: .email, value: "c@d.io"), mpid), &other)
        #expect(other.mentions.map(\.text) == ["c@d.io"])
    }
}
