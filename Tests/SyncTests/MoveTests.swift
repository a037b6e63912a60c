// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import Testing

@testable import Apps
@testable import Runtime
@testable import Sync

/// What is said of a device's user, and what a service need not say (docs/sync.md "Moves").
@Suite struct MoveTests {
    private static let service = Principal(kind: .service, scopes: [])

    /// S86.
    @Test func movesGoUp() throws {
        let world = World(.worked(.conversion))
        let first = try #require(world.identify(["ios_idfv": "1"])?.move)
        #expect(first == world.now)
        let changed = try #require(world.last?.events.last as? CurrentUserChanged)
        #expect(changed.move == first)
        // The user stays, and it is a move all the same.
        #expect(try #require(world.identify(["ios_idfv": "1"])?.move) == first + 1000)
        world.now -= 60_000
        #expect(try #require(world.logout([:])?.move) == first + 1001, "clocks go back, numbers do not")
    }

    /// S38, S86. Two devices have one anonymous user, and a login on one makes it known.
    @Test func anotherDevicesMoveIsCounted() throws {
        let world = World(.worked(.conversion))
        let other = try #require(world.identify(["ios_idfv": "1"], on: "d2"))
        _ = world.identify(["ios_idfv": "1"])
        let result = try #require(world.login(["customerid": "anna", "ios_idfv": "1"]))
        let told = (world.last?.events ?? []).compactMap { $0 as? CurrentUserChanged }
        #expect(told.map(\.deviceId) == ["d1", "d2"] && told.map(\.move) == [result.move, world.now])
        #expect(told.allSatisfy { $0.mpid == other.mpid && $0.isLoggedIn })
        #expect(world.state.device("demo", "d2").lastMove == world.now)
    }

    /// S3: any key may log out a device that it names.
    @Test(arguments: SyncStrategy.all) func aLogoutNeedsNoIdentity(_ strategy: SyncStrategy) throws {
        let world = World(.defaults(of: strategy))
        _ = world.login(["customerid": "anna", "ios_idfv": "1"])
        #expect(try #require(world.logout([:])).isLoggedIn == false)
        #expect(
            world.run(.move(.identify, SyncRequest(deviceId: "d1", knownIdentities: [:]))) == .rejected(.lookupError))
    }

    /// S88. The verification service names a person and no device.
    @Test(arguments: [SyncStrategy.default, .conversion]) func aServicesLoginTurnsTheDevicesUserIntoAPerson(
        _ strategy: SyncStrategy
    ) throws {
        for mode in [VerificationSettings.Mode.off, .enforce] {
            let world = World(strategy == .default ? SyncSettings() : .worked(strategy))
            world.verification = VerificationSettings(mode: mode)
            let anonymous = try #require(world.identify(["ios_idfv": "1"]))
            world.principal = Self.service
            let login = try #require(world.login(["customerid": "anna"]))
            #expect(login.mpid == anonymous.mpid && login.rule == .converted)
            #expect(login.matchedIdentities == ["customerid": "anna"])
        }
    }

    /// S87, S88, S89.
    @Test func aServicesLogoutFindsTheAnonymousUserAgain() throws {
        let world = World(.worked(.isolation))
        let anonymous = try #require(world.identify(["ios_idfv": "1"]))
        world.principal = Self.service
        #expect(try #require(world.login(["customerid": "anna"])).mpid != anonymous.mpid)
        #expect(world.state.device("demo", "d1").identities == [Identity(.iosIDFV, "1")])
        let logout = try #require(world.logout([:]))
        #expect(logout.mpid == anonymous.mpid && logout.rule == .returnedToAnonymous)
    }

    /// S89. One more logout makes nobody new.
    @Test(arguments: SyncStrategy.all) func aServicesLogoutOfNobodyKeepsTheAnonymousUser(
        _ strategy: SyncStrategy
    ) throws {
        let world = World(.defaults(of: strategy))
        _ = world.identify(["ios_idfv": "1"])
        world.principal = Self.service
        let first = try #require(world.logout([:]))
        let (profiles, again) = (world.state.profiles.count, try #require(world.logout([:])))
        #expect(again.mpid == first.mpid && again.rule == .kept && world.state.profiles.count == profiles)
        #expect(world.events.isEmpty)
    }

    /// S89: also a known user, of whom the verification service knows nothing.
    @Test func aServicesIdentifyKeepsWhoIsThere() throws {
        let world = World(.worked(.conversion))
        let person = try #require(world.login(["customerid": "anna", "ios_idfv": "1"]))
        world.principal = Self.service
        #expect(try #require(world.identify([:])).mpid == person.mpid)
        // On a device of which nothing is known somebody is made, once.
        let new = try #require(world.identify([:], on: "new"))
        #expect(new.rule == .created && !new.isLoggedIn)
        #expect(try #require(world.identify([:], on: "new")).mpid == new.mpid)
    }

    /// S87.
    @Test func aDeviceIsForgottenWithItsIdentities() throws {
        let world = World(.worked(.conversion))
        let person = try #require(world.login(["customerid": "anna", "ios_idfv": "1"]))
        _ = world.run(.erase(EraseProfile(mpid: person.mpid)))
        let device = world.state.device("demo", "d1")
        #expect(device.identities.isEmpty && !device.isKept)
    }
}
