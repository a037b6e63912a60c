// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import Testing

@testable import Runtime
@testable import Sync

/// What happens to a value that too many profiles have.
@Suite struct LimitTests {
    private func limited(_ strategy: SyncStrategy, to limit: Int, unique: Set<IdentityType>) -> SyncSettings {
        var settings = SyncSettings.worked(strategy)
        settings.uniqueIdentities = unique
        settings.limits.profilesPerValue = limit
        return settings
    }

    private func warnings(_ world: World) -> [ValueTooCommon] {
        (world.last?.events ?? []).compactMap { $0 as? ValueTooCommon }
    }

    /// S61.
    @Test func anonymousProfilesGiveAValueUpBeforeAnybody() {
        let world = World(limited(.conversion, to: 2, unique: [.customerID, .email]))
        let made = (0..<3).compactMap { _ in world.logout(["ios_idfv": "1"])?.mpid }
        #expect(world.profile(made[0])?.isOrphaned == true)
        #expect(world.events.contains { ($0.base as? IdentitiesChanged)?.reason == .limit })
        #expect(world.events.contains { ($0.base as? ProfileOrphaned)?.mpid == made[0] })
        let key = IdentityEntry.Key(app: "demo", Identity(.iosIDFV, "1"), world.settings)
        #expect(world.state.identities[key]?.holders == [made[1], made[2]])
    }

    /// Fifty logins with somebody's address must not take it from them.
    @Test func thePersonWhoHasAValueKeepsIt() {
        let world = World(SyncSettings())
        let victim = world.login(["customerid": "victim", "email": "v@mail"])?.mpid
        var newcomers: [MPID] = []
        for number in 0..<60 {
            newcomers += [
                world.login(["customerid": "c\(number)", "email": "v@mail"], on: DeviceID("d\(number)"))?.mpid
            ]
            .compactMap { $0 }
        }
        #expect(newcomers.count == 60, "nobody is refused for it")
        #expect(world.identities(victim).contains(Identity(.email, "v@mail")))
        let without = newcomers.filter { !world.identities($0).contains(Identity(.email, "v@mail")) }
        #expect(without == Array(newcomers.suffix(11)), "the newcomers go without")
    }

    @Test func aSharedLoginIdentityNeverRefusesALogin() {
        let world = World(limited(.link, to: 2, unique: [.customerID]))
        let made = (0..<3).compactMap {
            world.login(["customerid": "c\($0)", "email": "shared"], on: DeviceID("d\($0)"))?.mpid
        }
        #expect(Set(made).count == 3)
        #expect(made.map { world.identities($0).contains(Identity(.email, "shared")) } == [true, true, false])
    }

    /// A login that would come to nothing else is refused (S63).
    @Test func aLoginByNothingButAFullValueIsRefused() throws {
        var settings = limited(.link, to: 2, unique: [.customerID])
        settings.immutableIdentities = [.customerID]
        let world = World(settings)
        for number in 0..<2 {
            _ = world.login(["customerid": "c\(number)", "email": "shared"], on: DeviceID("d\(number)"))
        }
        let request = SyncRequest(deviceId: "d", knownIdentities: ["email": "shared"])
        #expect(world.run(.move(.login, request)) == .rejected(.limitExceeded))
    }

    @Test func aModifyOverTheLimitIsRefusedBeforeAnythingIsWritten() throws {
        let world = World(limited(.link, to: 2, unique: [.customerID]))
        for number in 0..<2 {
            _ = world.login(["customerid": "c\(number)"])
            try world.modify(world.current(), "email", from: nil, to: "shared")
        }
        _ = world.login(["customerid": "c3"])
        #expect(try world.modify(world.current(), "email", from: nil, to: "shared") == .rejected(.limitExceeded))
    }

    /// S62.
    @Test func aValueThatIsTooCommonIsToldOnceBeforeTheLimitTakesAnything() {
        let world = World(limited(.conversion, to: 6, unique: [.customerID, .email]))
        var told: [[ValueTooCommon]] = []
        for _ in 0..<9 {
            _ = world.logout(["ios_idfv": "Z"])
            told.append(warnings(world))
        }
        #expect(told.map(\.count) == [0, 0, 1, 0, 0, 0, 0, 0, 0])
        let key = IdentityEntry.Key(app: "demo", Identity(.iosIDFV, "Z"), world.settings)
        #expect(told[2] == [ValueTooCommon(type: .iosIDFV, digest: key.id.digest.bytes.hex, holders: 3, limit: 6)])
        #expect(key.id.digest.bytes.hex == "bbeebd879e1dff6918546dc0c179fdde505f2a21591c9a9c96e36b054ec5af83")
    }

    /// Also when the limit is so small that there is no half of it.
    @Test func aLimitOfOneIsToldToo() {
        let world = World(limited(.conversion, to: 1, unique: [.customerID, .email]))
        _ = world.logout(["ios_idfv": "Z"])
        #expect(warnings(world).isEmpty)
        _ = world.logout(["ios_idfv": "Z"])
        #expect(warnings(world).count == 1)
    }

    // MARK: Aliases

    /// Each session of a person may end in an alias, for ever.
    @Test func aliasesIntoOneProfileHaveNoEnd() throws {
        var settings = SyncSettings.worked(.link)
        settings.limits.aliasesPerProfile = 3
        let world = World(settings)
        let person = try #require(world.login(["customerid": "a"])?.mpid)
        for number in 0..<10 {
            let visitor = try #require(world.identify(["ios_idfv": "v\(number)"])?.mpid)
            guard case .alias(let result) = world.run(.alias(AliasUsers(sourceMPID: visitor, destinationMPID: person)))
            else { return #expect(Bool(false), "alias \(number)") }
            #expect(result.isScheduled)
        }
    }

    /// S64.
    @Test func onlyWindowsThatAnAliasStillReachesCount() throws {
        var settings = SyncSettings.worked(.link)
        settings.limits.aliasesPerProfile = 2
        let world = World(settings)
        let source = try #require(world.identify(["ios_idfv": "1"])?.mpid)
        let person = try #require(world.login(["customerid": "a"])?.mpid)
        func alias() -> Answer {
            let now = world.now
            return world.run(
                .alias(
                    AliasUsers(
                        sourceMPID: source, destinationMPID: person, startUnixtimeMs: now - 500,
                        endUnixtimeMs: now + 400)))
        }
        guard case .alias = alias(), case .alias = alias() else { return #expect(Bool(false)) }
        #expect(alias() == .rejected(.limitExceeded))
        world.now += 92 * 86_400_000
        guard case .alias = alias() else { return #expect(Bool(false), "the old ones are out of reach") }
        #expect(world.profile(source)?.aliasWindows.count == 1)
    }
}
