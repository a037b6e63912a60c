// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing

@testable import Apps
@testable import Runtime
@testable import Sync

/// Two people who became one by mistake are taken apart, and stay so (docs/sync.md "Repair").
@Suite struct RepairTests: ErasingTests {
    /// Anna's profile, which has what is Bob's too. Both phones were merged.
    private func merged(
        _ strategy: SyncStrategy = .conversion, _ mode: VerificationSettings.Mode = .off,
        _ change: (inout SyncSettings) -> Void = { _ in }
    ) throws -> (world: World, mpid: MPID) {
        let world = world(strategy, mode)
        var settings = strategy == .userIDThenEmail ? SyncSettings.defaults(of: .userIDThenEmail) : world.settings
        change(&settings)
        world.settings = settings
        let anna = ["customerid": "anna", "device_application_stamp": "phone-a"]
        let mpid = try #require(world.login(anna, on: "a")?.mpid)
        let bob = ["customerid": "anna", "email": "bob@x", "device_application_stamp": "phone-b"]
        #expect(world.login(bob, on: "b")?.mpid == mpid)
        return (world, mpid)
    }

    private func named(_ identities: [String: String]) -> [GetProfile.Named] {
        identities.sorted { $0.key < $1.key }.map { .init(type: $0.key, value: $0.value) }
    }

    @discardableResult
    private func detach(
        _ identities: [String: String], from mpid: MPID, to other: MPID? = nil, in world: World
    ) -> Answer {
        world.run(
            .detach(
                DetachIdentities(
                    mpid: mpid, identities: named(identities), toMPID: other, author: "kim", reason: "two people")))
    }

    private func detached(
        _ identities: [String: String], from mpid: MPID, to other: MPID? = nil, in world: World
    ) throws -> DetachResult {
        let answer = detach(identities, from: mpid, to: other, in: world)
        guard case .detached(let result) = answer else { throw Unexpected(answer: answer) }
        return result
    }

    private struct Unexpected: Error { var answer: Answer }

    private func types(_ world: World, _ mpid: MPID?) -> [String] {
        (world.profile(mpid)?.identities.map { "\($0.type.rawValue)=\($0.value.text)" } ?? []).sorted()
    }

    private func told<Event: EventMessage>(_: Event.Type, _ world: World) -> [Event] {
        (world.last?.events ?? []).compactMap { $0 as? Event }
    }

    private static let bobs = ["email": "bob@x", "device_application_stamp": "phone-b"]

    // MARK: Taking apart

    /// S126, S131.
    @Test(arguments: [SyncStrategy.conversion, .link, .isolation, .userIDThenEmail])
    func whatIsSomebodyElsesGoesWithTheDevice(_ strategy: SyncStrategy) throws {
        let (world, anna) = try merged(strategy)
        let result = try detached(Self.bobs, from: anna, in: world)
        let bob = result.newMPID
        #expect(types(world, anna) == ["customerid=anna", "device_application_stamp=phone-a"])
        #expect(types(world, bob) == ["device_application_stamp=phone-b", "email=bob@x"])
        #expect(bob == world.context.newMPID(0) && world.current("b") == bob && world.current("a") == anna)
        #expect(result.devices.map(\.deviceId) == ["b", "a"] && result.deviceCount == 2)
        #expect(result.devices.map(\.endsSession) == [true, false])
        #expect(result.devices.allSatisfy { $0.nextLogin == .init(mpid: anna, barred: barred(on: $0.deviceId)) })
        let moved = told(CurrentUserChanged.self, world)
        #expect(moved.map(\.deviceId) == ["b"] && moved.first?.cause == .detach && moved.first?.rule == .detached)
        #expect(told(ProfileDetached.self, world).first?.reason == "two people")
        #expect(told(ProfileCreated.self, world).first?.rule == .detached)
        // The next login of each finds its own.
        #expect(world.login(["email": "bob@x", "device_application_stamp": "phone-b"], on: "b")?.mpid == bob)
        #expect(world.login(["customerid": "anna", "device_application_stamp": "phone-a"], on: "a")?.mpid == anna)
    }

    /// A login that names both finds whoever ranks first.
    private func barred(on device: DeviceID) -> [IdentityType] {
        device == "b" ? [.deviceApplicationStamp, .email] : [.email]
    }

    /// S126: nothing is done where not all can be.
    @Test(arguments: [
        (["email": "other@x"], ReasonCode.validationError), (["email": "bob@x", "other": "1"], .validationError),
        (
            ["customerid": "anna", "email": "bob@x", "device_application_stamp": "phone-b"], .validationError
        ),
    ]) func whatIsNotHeldOrIsAllIsRefused(_ identities: [String: String], _ reason: ReasonCode) throws {
        let (world, anna) = try merged()
        if identities.count == 3 { try world.modify(anna, "device_application_stamp", from: "phone-a", to: nil) }
        let before = world.profile(anna)
        #expect(detach(identities, from: anna, in: world) == .rejected(reason))
        #expect(world.profile(anna) == before && world.state.profiles.count == 1)
    }

    /// S126.
    @Test func whoIsNotThereIsNotTakenApart() throws {
        let (world, anna) = try merged()
        let nobody = try #require(MPID(42))
        #expect(detach(Self.bobs, from: nobody, in: world) == .rejected(.notFoundError))
        #expect(detach(Self.bobs, from: anna, to: nobody, in: world) == .rejected(.notFoundError))
        world.run(.erase(EraseProfile(mpid: anna)))
        #expect(detach(Self.bobs, from: anna, in: world) == .rejected(.notFoundError))
    }

    /// S133: an app that enforces believes only who may vouch.
    @Test(arguments: [VerificationSettings.Mode.off, .report, .enforce])
    func whereVerificationIsEnforcedItNeedsVouching(_ mode: VerificationSettings.Mode) throws {
        let (world, anna) = try merged(.conversion, mode)
        world.principal = Principal(kind: .apiKey("k"), scopes: [.support])
        let refused = Answer.rejected(.verificationRequired)
        #expect((detach(Self.bobs, from: anna, in: world) == refused) == (mode == .enforce))
        let allow = world.run(.allow(AllowMerge(mpid: anna, otherMPID: .max, author: "kim", reason: "r")))
        #expect((allow == refused) == (mode == .enforce))
    }

    /// S126: whoever had the value first, and lost it by mistake, has it again.
    @Test func whoLostTheLastIdentityGetsItBack() throws {
        let world = world()
        let bob = try #require(world.login(["email": "bob@x"], on: "b")?.mpid)
        let anna = try #require(world.login(["customerid": "anna"], on: "a")?.mpid)
        try world.modify(anna, "email", from: nil, to: "bob@x")
        #expect(world.profile(bob)?.isOrphaned == true)
        let result = try detached(["email": "bob@x"], from: anna, to: bob, in: world)
        #expect(result.newMPID == bob && result.moved == [Identity(.email, "bob@x")])
        #expect(world.profile(bob)?.isOrphaned == false && world.login(["email": "bob@x"], on: "b")?.mpid == bob)
    }

    /// S126: what the other one cannot have.
    @Test func anotherValueOrABarrierInTheWayIsRefused() throws {
        let (world, anna) = try merged()
        let bob = try #require(world.login(["customerid": "bob", "email": "new@x"], on: "c")?.mpid)
        #expect(detach(["email": "bob@x"], from: anna, to: bob, in: world) == .rejected(.validationError))
        try world.modify(bob, "email", from: "new@x", to: nil)
        _ = try detached(["email": "bob@x"], from: anna, to: bob, in: world)
        // Back again only when it is allowed.
        #expect(detach(["email": "bob@x"], from: bob, to: anna, in: world) == .rejected(.mergeBarred))
    }

    /// S133: once more, under the id that the inbox has forgotten, or by another command.
    @Test func theSameAgainChangesNothing() throws {
        let (world, anna) = try merged()
        let result = try detached(Self.bobs, from: anna, in: world)
        world.count -= 1
        let same = try detached(Self.bobs, from: anna, in: world)
        #expect(same.newMPID == result.newMPID && same.moved.isEmpty && world.last?.changes.isEmpty == true)
        let named = try detached(Self.bobs, from: anna, to: result.newMPID, in: world)
        #expect(named.newMPID == result.newMPID && world.last?.changes.isEmpty == true)
        // Whoever presses twice is told the same, and nothing is made for it.
        let again = try detached(Self.bobs, from: anna, in: world)
        #expect(
            again.newMPID == result.newMPID && again.moved.isEmpty && again.deviceCount == 0
                && world.last?.changes.isEmpty == true && world.events.isEmpty)
        // Of which something never went, or nothing is kept any more, is another matter.
        #expect(detach(["email": "bob@x", "customerid": "x"], from: anna, in: world) == .rejected(.validationError))
        world.run(.allow(AllowMerge(mpid: anna, otherMPID: result.newMPID, author: "kim", reason: "r")))
        #expect(detach(Self.bobs, from: anna, in: world) == .rejected(.validationError))
    }

    /// S57: the profile that the command made was erased since.
    @Test func theSameAfterAnErasureIsRefused() throws {
        let (world, anna) = try merged()
        let bob = try detached(Self.bobs, from: anna, in: world).newMPID
        let count = world.count
        world.run(.erase(EraseProfile(mpid: bob)))
        world.count = count - 1
        #expect(detach(Self.bobs, from: anna, in: world) == .rejected(.profileErased))
    }

    // MARK: Who goes along

    /// S131.
    @Test(arguments: [
        (["device_application_stamp": "phone-b"], true), (["device_application_stamp": "phone-a"], false), ([:], false),
        (["device_application_stamp": "phone-b", "ios_idfv": "tablet"], false),
    ]) func aDeviceFollowsAllThatItIsKnownBy(_ last: [String: String], _ follows: Bool) throws {
        let (world, anna) = try merged()
        var request = SyncRequest(deviceId: "c", knownIdentities: ["customerid": "anna"])
        for (type, value) in last { request.knownIdentities[type] = value }
        world.run(.move(.login, request))
        let bob = try detached(Self.bobs, from: anna, in: world).newMPID
        #expect(world.current("c") == (follows ? bob : anna))
    }

    /// S131: whoever is nobody in particular without it, is told.
    @Test func whoIsKnownNoLongerIsTold() throws {
        let (world, anna) = try merged()
        let result = try detached(["customerid": "anna", "device_application_stamp": "phone-a"], from: anna, in: world)
        // It has the e-mail, which makes it known.
        #expect(result.devices.map(\.endsSession) == [true, false])
        let second = try detached(["email": "bob@x"], from: anna, in: world)
        #expect(second.devices.map(\.endsSession) == [true])
        let told = told(CurrentUserChanged.self, world)
        #expect(told.map(\.deviceId) == ["b"] && told.first?.mpid == anna && told.first?.isLoggedIn == false)
    }

    /// S131: where verification is enforced, nobody knows by which identity a session was verified.
    @Test(arguments: [VerificationSettings.Mode.enforce, .report])
    func sessionsEndThatMayHaveBeenVerifiedByWhatGoes(_ mode: VerificationSettings.Mode) throws {
        let (world, anna) = try merged()
        world.verification = VerificationSettings(mode: mode)
        let result = try detached(["email": "bob@x"], from: anna, in: world)
        #expect(result.devices.map(\.endsSession) == Array(repeating: mode == .enforce, count: 2))
        let moved = told(CurrentUserChanged.self, world)
        #expect(moved.map(\.deviceId) == (mode == .enforce ? ["a", "b"] : []))
        #expect(moved.allSatisfy { $0.mpid == anna && $0.isLoggedIn && $0.cause == .detach })
        // Of a device's identity nobody is verified.
        let (other, bert) = try merged()
        other.verification = VerificationSettings(mode: mode)
        let phone = try detached(["device_application_stamp": "phone-b"], from: bert, in: other)
        #expect(phone.devices.map(\.endsSession) == [true, false])
    }

    /// S130.
    @Test func theMarkGoesWithTheCustomerID() throws {
        let (world, anna) = try merged()
        world.run(link("user-1", "anna"))
        let bob = try detached(["customerid": "anna"], from: anna, in: world).newMPID
        #expect(world.profile(anna)?.mark == nil && world.profile(bob)?.mark?.userID == "user-1")
        #expect(world.profile(bob)?.namedAt.count == 1)
        // When it was given is when it was given first.
        #expect(world.profile(bob)?.namedAt.first.map { $0 < world.now - 2000 } == true)
    }

    /// S130: a waiting alias is dropped and told; who was aliased goes with nobody else.
    @Test(arguments: [true, false], [true, false]) func anAliasBetweenTheTwoIsOver(
        _ isApplied: Bool, _ isIntoTheOther: Bool
    ) throws {
        let (world, anna) = try merged(.link)
        let other = try #require(world.identify(["ios_idfv": "1"], on: "c")?.mpid)
        let alias = AliasUsers(
            sourceMPID: isIntoTheOther ? anna : other, destinationMPID: isIntoTheOther ? other : anna)
        guard case .alias(let accepted) = world.run(.alias(alias)) else { throw Unexpected(answer: .noted) }
        if isApplied {
            world.run(.applyAlias(ApplyAlias(aliasId: accepted.aliasId, destinationMPID: alias.destinationMPID)))
        }
        _ = try detached(["email": "bob@x"], from: anna, to: other, in: world)
        let dropped = told(AliasDropped.self, world)
        #expect(dropped.map(\.rule) == (isApplied ? [] : [.detached]) && world.state.aliases.isEmpty)
        #expect(world.run(.alias(alias)) == .rejected(.mergeBarred))
        world.run(.erase(EraseProfile(mpid: alias.destinationMPID)))
        #expect(world.profile(alias.sourceMPID)?.isErased == false)
    }

    // MARK: Staying apart

    /// S128.
    @Test(
        arguments: [SyncStrategy.conversion, .link, .isolation, .userIDThenEmail],
        [SyncCommand.Operation.login, .identify])
    func aLoginIsNeverRefusedForABarrier(_ strategy: SyncStrategy, _ operation: SyncCommand.Operation) throws {
        let (world, anna) = try merged(strategy)
        let bob = try detached(Self.bobs, from: anna, in: world).newMPID
        let both = ["customerid": "anna", "email": "bob@x"]
        let found = try #require(world.move(operation, both, on: "b"))
        #expect(found.mpid == anna && found.barred == [.email])
        let event = told(MergeBarred.self, world).first
        #expect(event?.mpid == anna && event?.types == [.email] && event?.deviceId == "b")
        #expect(types(world, anna) == ["customerid=anna", "device_application_stamp=phone-a"])
        #expect(world.move(operation, ["email": "bob@x"], on: "b")?.mpid == bob)
        #expect(world.move(operation, ["email": "bob@x"], on: "b")?.barred == nil)
    }

    /// S128: Anna has lost her customer id since. Whoever logs in with it is not Bob.
    @Test(arguments: [SyncStrategy.conversion, .link, .isolation, .userIDThenEmail], [false, true])
    func whoeverRanksFirstAndMayNotBeHadIsSomebodyElse(_ strategy: SyncStrategy, _ joins: Bool) throws {
        let (world, anna) = try merged(strategy) { settings in
            if strategy != .userIDThenEmail { settings.joinByLowerRank = joins }
        }
        let bob = try detached(Self.bobs, from: anna, in: world).newMPID
        try world.modify(anna, "customerid", from: "anna", to: nil)
        let found = try #require(world.login(["customerid": "anna", "email": "bob@x"], on: "c"))
        #expect(found.mpid != bob && found.mpid != anna && found.rule == .createdForOtherLogin)
        #expect(types(world, bob) == ["device_application_stamp=phone-b", "email=bob@x"])
    }

    /// S127: what stays and is no device's does not follow; a device may be several people's.
    @Test func whatStaysDoesNotFollow() throws {
        let (world, anna) = try merged { $0.uniqueIdentities = [.customerID] }
        try world.modify(anna, "other", from: nil, to: "club")
        let bob = try detached(Self.bobs, from: anna, in: world).newMPID
        let login = ["email": "bob@x", "other": "club", "device_application_stamp": "phone-a"]
        let found = try #require(world.login(login, on: "a"))
        #expect(found.mpid == bob && found.barred == [.other])
        #expect(types(world, bob).contains("device_application_stamp=phone-a"))
        let barriers = Set(world.profile(bob)?.barriers.map { "\($0.identity.type.rawValue) \($0.mpid == bob)" } ?? [])
        #expect(
            barriers == [
                "email false", "device_application_stamp false", "customerid true", "other true",
            ])
        #expect(world.profile(bob)?.barriers == world.profile(anna)?.barriers)
    }

    /// S129.
    @Test func aModifyIsRefused() throws {
        let (world, anna) = try merged()
        let bob = try detached(Self.bobs, from: anna, in: world).newMPID
        #expect(try world.modify(anna, "email", from: nil, to: "bob@x") == .rejected(.mergeBarred))
        #expect(try world.modify(bob, "customerid", from: nil, to: "anna") == .rejected(.mergeBarred))
        // Another e-mail is nobody's affair.
        guard case .sync = try world.modify(anna, "email", from: nil, to: "anna@x") else {
            Issue.record("refused")
            return
        }
    }

    /// S127: though nobody has it, and in another spelling.
    @Test func aBarrierStaysWhenNobodyHasTheValue() throws {
        let (world, anna) = try merged { $0.foldedIdentities = [.email] }
        let bob = try detached(Self.bobs, from: anna, in: world).newMPID
        try world.modify(bob, "email", from: "bob@x", to: nil)
        let found = try #require(world.login(["customerid": "anna", "email": "BOB@X"], on: "a"))
        #expect(found.mpid == anna && found.barred == [.email])
    }

    /// S132: the change of an external id by support is a later word.
    @Test func anExternalIDThatSupportGivesIsAllowed() throws {
        let (world, anna) = try merged()
        let bob = try detached(Self.bobs, from: anna, in: world).newMPID
        try world.modify(anna, "customerid", from: "anna", to: "annette")
        try world.modify(bob, "customerid", from: nil, to: "bob")
        let linkedAt = world.now
        world.run(link("user-2", "bob", at: linkedAt))
        world.run(
            .renamed(
                ExternalIDChanged(
                    userId: "user-2", externalId: "anna", previousExternalId: "bob",
                    linkedAt: Timestamp(milliseconds: linkedAt + 1), author: "kim", reason: "typo")))
        #expect(types(world, bob).contains("customerid=anna"))
        #expect(world.profile(bob)?.barriers.contains { $0.mpid == bob } == false)
        #expect(world.profile(anna)?.barriers == world.profile(bob)?.barriers)
    }

    // MARK: Allowing, reading, erasing

    /// S132.
    @Test(arguments: [true, false]) func whatIsAllowedMayComeTogether(_ byProfile: Bool) throws {
        let (world, anna) = try merged()
        let bob = try detached(["email": "bob@x"], from: anna, in: world).newMPID
        let allow = AllowMerge(
            mpid: anna, otherMPID: byProfile ? bob : nil,
            identity: byProfile ? nil : .init(type: "email", value: "bob@x"), author: "kim", reason: "one after all")
        guard case .allowed(let result) = world.run(.allow(allow)) else { throw Unexpected(answer: .noted) }
        #expect(result.allowed.map(\.identity.type) == (byProfile ? [.email, .customerID] : [.email]))
        #expect(told(MergeAllowed.self, world).first?.allowed == result.allowed)
        #expect(world.profile(anna)?.barriers.isEmpty == byProfile)
        #expect(world.profile(bob)?.barriers == world.profile(anna)?.barriers)
        guard case .sync = try world.modify(anna, "email", from: nil, to: "bob@x") else {
            Issue.record("refused")
            return
        }
        guard case .allowed(let again) = world.run(.allow(allow)) else { throw Unexpected(answer: .noted) }
        #expect(again.allowed.isEmpty && world.last?.changes.isEmpty == true)
    }

    /// S132: whoever of the two is erased.
    @Test(arguments: [true, false]) func anErasureTakesTheBarriersAway(_ isTheFirst: Bool) throws {
        let (world, anna) = try merged()
        let bob = try detached(Self.bobs, from: anna, in: world).newMPID
        let (gone, left) = isTheFirst ? (anna, bob) : (bob, anna)
        world.run(.erase(EraseProfile(mpid: gone)))
        #expect(world.profile(gone)?.barriers.isEmpty == true && world.profile(left)?.barriers.isEmpty == true)
    }

    /// S120.
    @Test func aProfileTellsItsBarriers() throws {
        let (world, anna) = try merged()
        let bob = try detached(["email": "bob@x"], from: anna, in: world).newMPID
        guard case .profile(let told) = world.run(.getProfile(GetProfile(mpid: anna))) else {
            Issue.record("refused")
            return
        }
        #expect(
            told.barriers == [
                MergeBarrier(mpid: anna, identity: Identity(.email, "bob@x"), otherMPID: bob),
                MergeBarrier(mpid: bob, identity: Identity(.customerID, "anna"), otherMPID: anna),
            ])
    }

    /// S125: in a replay the same is taken apart, and who was erased stays so.
    @Test func aReplayTakesThemApartAgain() throws {
        let world = world()
        var log = ReplayLog()
        let both = SyncRequest(deviceId: "a", knownIdentities: ["customerid": "anna", "email": "bob@x"])
        log.live(.move(.login, both), in: world)
        let anna = try #require(world.current("a"))
        log.live(
            .detach(
                DetachIdentities(
                    mpid: anna, identities: named(["email": "bob@x"]), author: "kim", reason: "r")), in: world)
        let bob = try #require(world.state.profiles.keys.map(\.id).first { $0 != anna })
        log.live(.erase(EraseProfile(mpid: bob)), in: world)
        let replay = self.world()
        log.replay(in: replay)
        #expect(types(replay, anna) == ["customerid=anna"] && replay.profile(bob)?.isErased == true)
        #expect(replay.profile(anna)?.barriers.isEmpty == true)
    }

    // MARK: In a store

    /// What a login finds is the same whether it was read from a store or not, and nothing is left of an erased pair.
    @Test(arguments: SQLEngine.allCases) func aStoreKeepsThemApart(_ engine: SQLEngine) throws {
        let store = try SyncTestStore(engine)
        let world = world()
        func run(_ command: SyncCommand) throws -> Answer {
            (world.count, world.now) = (world.count + 1, world.now + 1000)
            return Answer(try store.run([RandomCommands.Step(command: command, context: world.context)])[0].outcome)
        }
        func login(_ identities: [String: String]) throws -> SyncResult {
            let request = SyncRequest(deviceId: "d", knownIdentities: identities.mapValues { .some($0) })
            let answer = try run(.move(.login, request))
            guard case .sync(let result) = answer else { throw Unexpected(answer: answer) }
            return result
        }
        let both = ["customerid": "anna", "email": "bob@x", "device_application_stamp": "phone"]
        let anna = try login(both).mpid
        let answer = try run(
            .detach(
                DetachIdentities(
                    mpid: anna, identities: [.init(type: "email", value: "bob@x")], author: "kim", reason: "r")))
        guard case .detached(let result) = answer else { throw Unexpected(answer: answer) }
        #expect(result.devices.map(\.nextLogin) == [.init(mpid: anna, barred: [.email])])
        let found = try login(both)
        #expect(found.mpid == anna && found.barred == [.email])
        #expect(try login(["email": "bob@x"]).mpid == result.newMPID)
        _ = try run(.erase(EraseProfile(mpid: result.newMPID)))
        #expect(try store.liveTexts().contains("bob@x") == false)
        #expect(try login(both).barred == nil)
    }
}
