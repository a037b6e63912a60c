// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing

@testable import Runtime
@testable import Sync

/// What nobody uses goes (docs/sync.md "Retention").
@Suite struct RetentionTests {
    private struct Unexpected: Error {}

    private static let day: Int64 = 86_400_000
    private static let retention = RetentionSettings(anonymous: 30 * day, orphan: 20 * day, device: 40 * day)

    private func app(_ strategy: SyncStrategy = .conversion) -> World { World(.worked(strategy)) }

    /// Decides as the service does: by the broker's clock too.
    @discardableResult
    private func expire(
        _ command: SyncCommand, in world: World, after days: Int64, logged: Int64? = nil, isBrokers: Bool = true,
        retention: RetentionSettings = retention
    ) -> [AnyHashable] {
        world.count += 1
        var context = world.context
        context.app = AppSettings(
            id: "demo", sync: world.settings, verification: world.verification, retention: retention)
        context.now = Timestamp(milliseconds: world.now + days * Self.day)
        context.logged = Moment(
            milliseconds: logged.map { world.now + $0 * Self.day } ?? context.now.milliseconds, isBrokers: isBrokers)
        let decision = SyncDecider(world.state, context, aliasDelay: 1000).decide(command)
        decision.changes.forEach { world.state.apply($0) }
        return decision.events.map { AnyHashable($0) }
    }

    private func command(_ mpid: MPID?, _ world: World) throws -> SyncCommand {
        let profile = try #require(world.profile(mpid))
        return .expireProfile(
            ExpireProfile(mpid: profile.mpid, lastSeen: Timestamp(milliseconds: profile.quietSince)))
    }

    private func command(_ device: DeviceID, _ world: World) -> SyncCommand {
        let seen = world.state.device(world.app.id, device).quietSince
        return .expireDevice(ExpireDevice(deviceId: device, lastSeen: Timestamp(milliseconds: seen)))
    }

    // MARK: Who goes

    /// S202, S205.
    @Test func anAnonymousProfileGoesWithAllThatItHas() throws {
        let world = app()
        let mpid = try world.given(7, [Identity(.other, "o"), Identity(.iosIDFV, "v")])
        let lastSeen = Timestamp(milliseconds: World.start)
        let told = expire(try command(mpid, world), in: world, after: 30)
        #expect(told == [AnyHashable(ProfileExpired(mpid: mpid, lastSeen: lastSeen))])
        #expect(world.profile(mpid) == nil)
        #expect(world.state.identities.values.allSatisfy { $0.holders.isEmpty })
        #expect(world.state.expired == ["profile": 1])
        // Whoever comes by the same value is somebody new.
        #expect(world.identify(["ios_idfv": "v"])?.mpid != mpid)
    }

    /// S202: who is linked, known, current or waited for.
    @Test(
        arguments: [
            "known", "linked", "current", "the anonymous one of a device", "the source of an alias",
            "the destination of an alias", "barred", "restricted", "erased", "seen since", "named since",
            "not that old",
        ])
    func whoIsNeededStays(_ why: String) throws {
        let world = app(.link)
        var mpid = try world.given(7, [Identity(.other, "o")])
        let other = try world.given(8, [Identity(.other, "p")])
        func change(_ body: (inout Profile) -> Void) throws {
            var profile = try #require(world.profile(mpid))
            body(&profile)
            world.state.apply(.profile(profile))
        }
        var command = try command(mpid, world)
        var days: Int64 = 60
        switch why {
        case "known":
            try world.modify(mpid, "email", from: nil, to: "a@x")
            command = try self.command(mpid, world)
        case "linked":
            let mark = LinkMark(userID: "u", externalID: "anna", linkedAt: World.start, ownMPID: mpid)
            try change { $0.mark = mark }
        case "current":
            mpid = try #require(world.identify(["ios_idfv": "v"], on: "a")?.mpid)
            command = try self.command(mpid, world)
        case "the anonymous one of a device":
            mpid = try #require(world.identify(["ios_idfv": "v"], on: "a")?.mpid)
            _ = world.login(["email": "b@x"], on: "a")
            command = try self.command(mpid, world)
        case "the source of an alias": world.run(.alias(AliasUsers(sourceMPID: mpid, destinationMPID: other)))
        case "the destination of an alias": world.run(.alias(AliasUsers(sourceMPID: other, destinationMPID: mpid)))
        case "barred":
            try change { $0.barriers = [Barrier(Identity(.other, "q"), from: $0.mpid, for: other)] }
        case "restricted": try change { $0.isRestricted = true }
        case "erased": world.run(.erase(EraseProfile(mpid: mpid)))
        case "seen since": try change { $0.lastSeen += 1 }
        case "named since": try change { $0.namedAt = [$0.namedAt[0] + 1] }
        default: days = 29
        }
        let before = world.profile(mpid)
        #expect(expire(command, in: world, after: days).isEmpty)
        #expect(world.profile(mpid) == before)
    }

    /// S200, S202: each by its own days, and off unless it is named.
    @Test(arguments: [(false, 30, 29), (true, 20, 19)])
    func orphansHaveDaysOfTheirOwn(_ isOrphan: Bool, _ over: Int64, _ before: Int64) throws {
        let world = app()
        let mpid = try world.given(7, [Identity(.other, "o")])
        if isOrphan { try world.modify(mpid, "other", from: "o", to: nil) }
        #expect(world.profile(mpid)?.isOrphaned == isOrphan)
        let command = try command(mpid, world)
        #expect(expire(command, in: world, after: before).isEmpty)
        #expect(expire(command, in: world, after: 100, retention: RetentionSettings(device: 1)).isEmpty)
        #expect(expire(command, in: world, after: over).count == 1)
    }

    /// S205: what was aliased leads nowhere else from then on.
    @Test(arguments: [true, false]) func aliasesLeadToNobodyWhoIsGone(_ isSource: Bool) throws {
        let world = app(.link)
        let source = try world.given(7, [Identity(.other, "o")])
        let destination = try world.given(8, [Identity(.other, "p")])
        guard case .alias(let alias) = world.run(.alias(AliasUsers(sourceMPID: source, destinationMPID: destination)))
        else { throw Unexpected() }
        world.run(.applyAlias(ApplyAlias(aliasId: alias.aliasId, destinationMPID: destination)))
        #expect(expire(try command(isSource ? source : destination, world), in: world, after: 31).count == 1)
        let left = try #require(world.profile(isSource ? destination : source))
        #expect(left.aliasedFrom.isEmpty && left.aliasedInto.isEmpty)
    }

    // MARK: Devices

    /// S203.
    @Test func aDeviceGoesAndThenItsUser() throws {
        let world = app()
        let mpid = try #require(world.identify(["ios_idfv": "v"], on: "a")?.mpid)
        #expect(expire(try command(mpid, world), in: world, after: 60).isEmpty)
        let device = world.state.device(world.app.id, "a")
        let told = expire(command("a", world), in: world, after: 40)
        #expect(told.first == AnyHashable(DeviceExpired(deviceId: "a", lastSeen: Timestamp(milliseconds: world.now))))
        #expect(told.count == 2 && told.last?.base is CurrentUserErased)
        #expect(world.current("a") == nil && world.state.expired["device"] == 1)
        // S86: whatever comes next is above what was told.
        #expect(world.state.device(world.app.id, "a").lastMove > device.lastMove)
        #expect(expire(try command(mpid, world), in: world, after: 40).count == 1)
    }

    /// S203: nobody is logged out.
    @Test(arguments: ["known", "linked", "restricted", "used since", "not that old"])
    func aDeviceStaysWithItsUser(_ why: String) throws {
        let world = app(.link)
        let mpid = try #require(world.identify(["ios_idfv": "v"], on: "a")?.mpid)
        var days: Int64 = 50
        var command = command("a", world)
        var profile = try #require(world.profile(mpid))
        switch why {
        case "known":
            _ = world.login(["email": "a@x"], on: "a")
            command = self.command("a", world)
        case "linked": profile.mark = LinkMark(userID: "u", externalID: "a", linkedAt: 0, ownMPID: mpid)
        case "restricted": profile.isRestricted = true
        case "used since": _ = world.identify(["ios_idfv": "v"], on: "a")
        default: days = 39
        }
        if profile != world.profile(mpid), why != "used since", why != "known" { world.state.apply(.profile(profile)) }
        let before = world.state.devices.rows
        #expect(expire(command, in: world, after: days).isEmpty)
        #expect(world.state.devices.rows == before)
    }

    // MARK: Clocks

    struct Clocks: Sendable, CustomTestStringConvertible {
        /// Days since it was seen, by the clock of the service and by that of the log.
        var service: Int64
        var log: Int64
        var isBrokers: Bool
        var goes: Bool
        var testDescription: String { "\(service) \(log) \(isBrokers)" }
    }

    /// S204: a clock two weeks ahead takes nobody.
    @Test(
        arguments: [
            Clocks(service: 30, log: 30, isBrokers: true, goes: true),
            Clocks(service: 30, log: 29, isBrokers: true, goes: false),
            Clocks(service: 29, log: 30, isBrokers: true, goes: false),
            Clocks(service: 43, log: 29, isBrokers: true, goes: false),
            Clocks(service: 29, log: 43, isBrokers: true, goes: false),
            // The log has the time of whoever wrote it, which is the service.
            Clocks(service: 43, log: 43, isBrokers: false, goes: false),
            Clocks(service: 44, log: 44, isBrokers: false, goes: true),
        ])
    func oneClockIsNotBelieved(_ clocks: Clocks) throws {
        let world = app()
        let mpid = try world.given(7, [Identity(.other, "o")])
        let told = expire(
            try command(mpid, world), in: world, after: clocks.service, logged: clocks.log, isBrokers: clocks.isBrokers)
        #expect(told.isEmpty != clocks.goes)
    }

    // MARK: The walk

    /// S206: all are come to, a step at a time, each once in a pass.
    @Test(arguments: SQLEngine.allCases) func theWalkComesToAllOnceInAPass(_ engine: SQLEngine) throws {
        let store = try SyncTestStore(engine)
        let world = app()
        var expected: Set<String> = []
        for number in 1...25 {
            let mpid = try #require(MPID(Int64(number % 2 == 0 ? number : -number)))
            var profile = Profile(app: "demo", mpid: mpid, seen: World.start)
            profile.add(Identity(number % 5 == 0 ? .email : .other, IdentityValue("v\(number)")), at: World.start)
            if number % 5 != 0 { expected.insert(mpid.description) }
            let row = profile
            try store.database.transaction { try Profile.table.insert([row], in: $0) }
        }
        let directory = AppDirectory([AppSettings(id: "demo", sync: world.settings, retention: Self.retention)])
        let service = SyncService(aliasDelay: .seconds(1))
        func due(_ days: Int64, _ seconds: Int64) throws -> [DueCommand] {
            try store.database.transaction {
                try service.due(
                    now: Timestamp(milliseconds: World.start + days * Self.day + seconds * 1000), limit: 10,
                    apps: directory, in: $0)
            }
        }
        #expect(try due(29, 0).isEmpty)
        // The walk had begun: what is left of it ends first.
        var found: [DueCommand] = []
        for second in 0..<10 { found += try due(31, Int64(second)) }
        let names = found.compactMap { ($0.command as? ExpireProfile)?.mpid.description }
        #expect(Set(names).isSubset(of: expected) && Set(names).count == names.count)
        for second in 0..<10 { found += try due(31, 3700 + Int64(second)) }
        let all = found.compactMap { ($0.command as? ExpireProfile)?.mpid.description }
        #expect(Set(all) == expected)
        #expect(Set(found.map(\.id)).count == found.count, "each pass asks anew")
        #expect(found.allSatisfy { $0.dueAt.milliseconds == World.start + 30 * Self.day })
    }
}
