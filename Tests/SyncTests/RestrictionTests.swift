// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing

@testable import Apps
@testable import Runtime
@testable import Sync

/// What is known of somebody is kept and not used (docs/sync.md "Restriction").
@Suite struct RestrictionTests: ErasingTests {
    private static let annas = ["customerid": "anna", "device_application_stamp": "phone-a"]

    /// Anna has logged in on a phone, and is restricted.
    private func restricted(
        _ strategy: SyncStrategy = .conversion, _ change: (inout SyncSettings) -> Void = { _ in }
    ) throws -> (world: World, mpid: MPID) {
        let world = world(strategy)
        change(&world.settings)
        let anna = try #require(world.login(Self.annas, on: "a")?.mpid)
        restrict(anna, in: world)
        return (world, anna)
    }

    @discardableResult
    private func restrict(_ mpid: MPID?, _ isRestricted: Bool = true, in world: World) -> Answer {
        world.run(
            .restrict(RestrictProfile(mpid: mpid, isRestricted: isRestricted, author: "kim", reason: "Art. 18")))
    }

    private func told<Event: EventMessage>(_: Event.Type, _ world: World) -> [Event] {
        (world.last?.events ?? []).compactMap { $0 as? Event }
    }

    private func users(on device: DeviceID, _ world: World) -> [DeviceRecord.SeenUser] {
        world.state.device(world.app.id, device).users
    }

    // MARK: The mark

    /// S136.
    @Test func itBeginsAndEndsOnce() throws {
        let (world, anna) = try restricted()
        #expect(world.profile(anna)?.isRestricted == true)
        let began = RestrictionChanged(mpid: anna, isRestricted: true, author: "kim", reason: "Art. 18")
        #expect(world.events == [AnyHashable(began)])
        var events: [[Bool]] = []
        for isRestricted in [true, false, false] {
            let answer = restrict(anna, isRestricted, in: world)
            #expect(answer == .restricted(RestrictResult(mpid: anna, isRestricted: isRestricted, userId: nil)))
            #expect(world.profile(anna)?.isRestricted == isRestricted)
            events.append(told(RestrictionChanged.self, world).map(\.isRestricted))
        }
        #expect(events == [[], [false], []])
    }

    /// S136.
    @Test func theProfileIsFoundAsByGetProfile() throws {
        let (world, anna) = try restricted(.link)
        let other = try world.given(7, [Identity(.other, "shared")])
        _ = try world.given(8, [Identity(.other, "shared")])
        func by(_ type: String, _ value: String) -> Answer {
            world.run(
                .restrict(
                    RestrictProfile(
                        identity: .init(type: type, value: value), isRestricted: true, author: "kim", reason: "r")))
        }
        #expect(by("customerid", "anna") == .restricted(RestrictResult(mpid: anna, isRestricted: true, userId: nil)))
        #expect(by("customerid", "nobody") == .rejected(.notFoundError))
        #expect(by("customerid", "null") == .rejected(.validationError))
        #expect(world.profile(other)?.isRestricted == false)
        let nobody = try #require(MPID(42))
        #expect(restrict(nobody, in: world) == .rejected(.notFoundError))
        world.run(.erase(EraseProfile(mpid: anna)))
        #expect(restrict(anna, in: world) == .rejected(.notFoundError))
        #expect(world.profile(anna)?.isRestricted == false)
    }

    /// S136: an app that enforces believes only who may vouch.
    @Test(arguments: [VerificationSettings.Mode.off, .report, .enforce])
    func whereVerificationIsEnforcedItNeedsVouching(_ mode: VerificationSettings.Mode) throws {
        let world = world(.conversion, mode)
        world.principal = Principal(kind: .service, scopes: [.identitySync])
        let anna = try #require(world.login(Self.annas, on: "a")?.mpid)
        world.principal = Principal(kind: .apiKey("k"), scopes: [.support])
        #expect((restrict(anna, in: world) == .rejected(.verificationRequired)) == (mode == .enforce))
    }

    // MARK: Moving

    /// S137.
    @Test(arguments: [SyncStrategy.conversion, .link, .isolation, .userIDThenEmail])
    func whoIsRestrictedLogsInAndNothingIsLearnt(_ strategy: SyncStrategy) throws {
        let (world, anna) = try restricted(strategy)
        let before = try #require(world.profile(anna))
        let request = SyncRequest(
            deviceId: "b",
            knownIdentities: ["customerid": "anna", "email": "anna@x", "device_application_stamp": "phone-b"],
            name: "Anna")
        world.principal = Principal(kind: .service, scopes: [.identitySync])
        guard case .sync(let result) = world.run(.move(.login, request)) else { throw Unexpected() }
        #expect(result.mpid == anna && result.isRestricted == true && result.isLoggedIn)
        #expect(world.profile(anna) == before && world.current("b") == anna)
        #expect(told(CurrentUserChanged.self, world).map(\.mpid) == [anna])
        #expect(world.state.device(world.app.id, "b").identities.isEmpty)
        // The present user of a device is listed, and no more than that is noted.
        let first = try #require(users(on: "b", world).first)
        #expect(first.mpid == anna && first.firstSeen == world.now && first.lastSeen == world.now)
        #expect(
            world.identify(["customerid": "anna", "device_application_stamp": "phone-b"], on: "b")?.isRestricted == true
        )
        #expect(users(on: "b", world) == [first])
        let out = try #require(world.logout(["device_application_stamp": "phone-b"], on: "b"))
        #expect(out.mpid != anna && out.isRestricted == nil)
        #expect(users(on: "b", world).contains(first) && world.profile(anna) == before)
    }

    /// S137.
    @Test func aSearchSaysSo() throws {
        let (world, anna) = try restricted()
        guard case .sync(let found) = world.search(["customerid": "anna"]) else { throw Unexpected() }
        #expect(found.mpid == anna && found.isRestricted == true)
        restrict(anna, false, in: world)
        guard case .sync(let after) = world.search(["customerid": "anna"]) else { throw Unexpected() }
        #expect(after.isRestricted == nil)
        #expect(world.login(["customerid": "anna", "email": "anna@x"], on: "a")?.isRestricted == nil)
        #expect(world.identities(anna).contains(Identity(.email, "anna@x")))
    }

    /// S138.
    @Test(arguments: [SyncStrategy.conversion, .link, .isolation])
    func whoIsAnonymousAndRestrictedStaysSo(_ strategy: SyncStrategy) throws {
        let world = world(strategy)
        let stamp = ["device_application_stamp": "phone-a"]
        let nobody = try #require(world.identify(stamp, on: "a")?.mpid)
        restrict(nobody, in: world)
        let before = world.profile(nobody)
        #expect(world.identify(stamp, on: "a")?.isRestricted == true)
        let anna = try #require(world.login(Self.annas, on: "a"))
        #expect(anna.mpid != nobody && anna.isLoggedIn && anna.isRestricted == nil && world.profile(nobody) == before)
        #expect(anna.rule == (strategy == .conversion ? .createdBesideRestricted : .createdForLogin))
        if strategy == .isolation { #expect(world.logout(stamp, on: "a")?.mpid == nobody) }
    }

    // MARK: What others do

    /// S139.
    @Test func nobodyChangesWhoIsRestricted() throws {
        let (world, anna) = try restricted()
        let bob = try #require(world.login(["customerid": "bob"], on: "b")?.mpid)
        let before = world.profile(anna)
        #expect(try world.modify(anna, "email", from: nil, to: "anna@x") == .rejected(.restricted))
        #expect(try world.modify(anna, "customerid", from: "anna", to: nil) == .rejected(.restricted))
        #expect(try world.modify(bob, "customerid", from: "bob", to: "anna") == .rejected(.restricted))
        for (source, destination) in [(anna, bob), (bob, anna)] {
            let alias = AliasUsers(sourceMPID: source, destinationMPID: destination)
            #expect(world.run(.alias(alias)) == .rejected(.restricted))
        }
        #expect(world.profile(anna) == before && world.identities(bob) == [Identity(.customerID, "bob")])
    }

    /// S139.
    @Test(arguments: [true, false]) func anAliasThatWaitsComesToNothing(_ isSource: Bool) throws {
        let world = world(.conversion)
        let anna = try #require(world.login(["customerid": "anna"], on: "a")?.mpid)
        let bob = try #require(world.login(["customerid": "bob"], on: "b")?.mpid)
        let alias = AliasUsers(sourceMPID: anna, destinationMPID: bob)
        guard case .alias(let accepted) = world.run(.alias(alias)) else { throw Unexpected() }
        restrict(isSource ? anna : bob, in: world)
        world.run(.applyAlias(ApplyAlias(aliasId: accepted.aliasId, destinationMPID: bob)))
        #expect(told(AliasDropped.self, world).map(\.rule) == [.restricted])
        #expect(world.profile(bob)?.aliasedSince == nil && world.profile(bob)?.aliasedFrom == [])
        #expect(world.state.aliases.isEmpty)
    }

    /// S139: whom a limit, or a login, would take something from.
    @Test func nothingIsTaken() throws {
        let world = world(.link)
        world.settings.uniqueIdentities = []
        world.settings.limits.profilesPerValue = 2
        let shared = ["other": "shared"]
        let first = try world.given(7, [Identity(.other, "shared")], seen: World.start - 5000)
        let second = try world.given(8, [Identity(.other, "shared")], seen: World.start)
        restrict(first, in: world)
        let new = world.identify(["other": "shared", "device_application_stamp": "c"], on: "c")
        #expect(new != nil && world.identities(first) == [Identity(.other, "shared")])
        #expect(shared.count == 1 && second != first)
        // A device's anonymous user, whom a login clears.
        let nobody = try #require(world.identify(["device_application_stamp": "d"], on: "d")?.mpid)
        restrict(nobody, in: world)
        world.principal = Principal(kind: .service, scopes: [.identitySync])
        let request = SyncRequest(
            deviceId: "d", knownIdentities: ["customerid": "dora"], clearAnonymousUser: true)
        world.run(.move(.login, request))
        #expect(world.identities(nobody) == [Identity(.deviceApplicationStamp, "d")])
        #expect(world.state.device(world.app.id, "d").anonymous == nil)
    }

    // MARK: What support and backends say

    /// S140.
    @Test func whoIsTakenFromARestrictedProfileIsRestrictedToo() throws {
        let (world, anna) = try restricted()
        restrict(anna, false, in: world)
        let both = ["customerid": "anna", "email": "bob@x", "other": "o"]
        #expect(world.login(both, on: "a")?.mpid == anna)
        world.run(link("u1", "anna", at: world.now))
        restrict(anna, in: world)
        #expect(told(UserRestrictionChanged.self, world).map(\.userId) == ["u1"])
        guard case .detached(let parted) = detach("email", "bob@x", from: anna, in: world) else { throw Unexpected() }
        #expect(world.profile(parted.newMPID)?.isRestricted == true && told(UserRestrictionChanged.self, world).isEmpty)
        // The mark goes along with the customer id, and the user is restricted all the time.
        guard case .detached(let moved) = detach("customerid", "anna", from: anna, in: world) else {
            throw Unexpected()
        }
        let events = told(UserRestrictionChanged.self, world)
        #expect(events.map(\.mpid) == [moved.newMPID, anna] && events.map(\.isRestricted) == [true, false])
        #expect(events.allSatisfy { $0.userId == "u1" })
    }

    /// S140.
    @Test(arguments: [true, false]) func whoeverGetsItStaysAsTheyAre(_ isRestricted: Bool) throws {
        let world = world()
        let anna = try #require(world.login(["customerid": "anna", "email": "bob@x"], on: "a")?.mpid)
        let bob = try #require(world.login(["customerid": "bob"], on: "b")?.mpid)
        restrict(isRestricted ? bob : anna, in: world)
        guard case .detached = detach("email", "bob@x", from: anna, to: bob, in: world) else { throw Unexpected() }
        #expect(world.profile(bob)?.isRestricted == isRestricted && world.profile(anna)?.isRestricted != isRestricted)
        #expect(world.identities(bob).contains(Identity(.email, "bob@x")))
    }

    /// S141.
    @Test func aUserIsRestrictedByWhoeverIsMarked() throws {
        let (world, anna) = try restricted()
        world.run(link("u1", "anna", at: world.now))
        let began = try #require(told(UserRestrictionChanged.self, world).first)
        #expect(began.userId == "u1" && began.mpid == anna && began.isRestricted)
        world.run(link("u1", "anna", at: world.now))
        #expect(world.events.isEmpty)
        restrict(anna, false, in: world)
        let ended = try #require(told(UserRestrictionChanged.self, world).first)
        #expect(!ended.isRestricted && ended.changedAt > began.changedAt)
        restrict(anna, in: world)
        world.now -= 100_000
        world.run(
            .unlinked(
                ExternalIDRemoved(
                    userId: "u1", externalId: "anna", unlinkedAt: Timestamp(milliseconds: world.now + 500_000),
                    author: "kim", reason: "r")))
        let left = try #require(told(UserRestrictionChanged.self, world).first)
        #expect(!left.isRestricted && left.changedAt > ended.changedAt)
        #expect(world.profile(anna)?.isRestricted == true)
    }

    /// S141.
    @Test func anErasureEndsIt() throws {
        let (world, anna) = try restricted()
        world.run(link("u1", "anna", at: world.now))
        world.run(.erase(EraseProfile(mpid: anna, persons: EraseProfile.Persons.none)))
        #expect(told(UserRestrictionChanged.self, world).map(\.isRestricted) == [false])
        #expect(world.profile(anna)?.isRestricted == false && world.profile(anna)?.restrictionToldAt == nil)
    }

    private struct Unexpected: Error {}

    private func detach(
        _ type: String, _ value: String, from mpid: MPID, to other: MPID? = nil, in world: World
    ) -> Answer {
        world.run(
            .detach(
                DetachIdentities(
                    mpid: mpid, identities: [.init(type: type, value: value)], toMPID: other, author: "kim",
                    reason: "two people")))
    }
}
