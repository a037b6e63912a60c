// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import Testing
import WireJSON

@testable import Apps
@testable import Runtime
@testable import Sync

/// Who goes with whom they were aliased into, and who does not.
@Suite struct AliasErasureTests: ErasingTests {
    /// S114.
    @Test(arguments: [true, false], [VerificationSettings.Mode.enforce, .report])
    func anAliasOfNobodyIsNotAppliedToAPerson(_ isSource: Bool, _ mode: VerificationSettings.Mode) throws {
        let world = world(.conversion, mode)
        let one = try #require(world.identify(["device_application_stamp": "a"])?.mpid)
        let other = try #require(world.identify(["device_application_stamp": "b"], on: "d2")?.mpid)
        let result = try unvouched(in: world) {
            try isSource ? alias(one, other, in: world) : alias(other, one, in: world)
        }
        #expect(world.login(["customerid": "anna", "device_application_stamp": "a"])?.mpid == one)
        world.run(.applyAlias(ApplyAlias(aliasId: result.aliasId, destinationMPID: isSource ? other : one)))
        let isDropped = world.events.contains { ($0.base as? AliasDropped)?.rule == .becameKnown }
        #expect(isDropped == (mode == .enforce) && world.state.aliases.isEmpty)
    }

    /// S114: nor to one who was a person in the meantime.
    @Test func anAliasOfNobodyIsNotAppliedToWhoWasAPerson() throws {
        let world = world(.conversion, .enforce)
        let one = try #require(world.identify(["device_application_stamp": "a"])?.mpid)
        let other = try #require(world.identify(["device_application_stamp": "b"], on: "d2")?.mpid)
        let result = try unvouched(in: world) { try alias(one, other, in: world) }
        #expect(world.login(["customerid": "anna", "device_application_stamp": "a"])?.mpid == one)
        try world.modify(one, "customerid", from: "anna", to: nil)
        world.run(.applyAlias(ApplyAlias(aliasId: result.aliasId, destinationMPID: other)))
        #expect(world.events.contains { ($0.base as? AliasDropped)?.rule == .becameKnown })
    }

    /// By a key that may not vouch.
    private func unvouched(in world: World, _ work: () throws -> AliasResult) rethrows -> AliasResult {
        let voucher = world.principal
        defer { world.principal = voucher }
        world.principal = Principal(kind: .apiKey("k"), scopes: [.identitySync])
        return try work()
    }

    private func alias(_ source: MPID, _ destination: MPID, in world: World) throws -> AliasResult {
        let alias = AliasUsers(
            sourceMPID: source, destinationMPID: destination, startUnixtimeMs: world.now, endUnixtimeMs: world.now)
        guard case .alias(let result) = world.run(.alias(alias)), result.isScheduled else {
            throw Rejection(.aliasError)
        }
        return result
    }

    /// S96: what was aliased into a person is the person, applied or not.
    @Test(arguments: [true, false]) func whoWasAliasedIntoAnErasedProfileGoesToo(_ isApplied: Bool) throws {
        let world = world(.link)
        let source = try #require(world.identify(["ios_idfv": "1", "push_token": "p"])?.mpid)
        let person = try #require(world.login(["customerid": "a"])?.mpid)
        let result = try alias(source, person, in: world)
        if isApplied { world.run(.applyAlias(ApplyAlias(aliasId: result.aliasId, destinationMPID: person))) }
        #expect(erase(["customerid": "a"], in: world) == .pending)
        #expect(gone(world) == [source, person])
        let dropped = AliasDropped(
            aliasId: result.aliasId, sourceMPID: source, destinationMPID: person, rule: .erased)
        #expect(world.events.contains(AnyHashable(dropped)) == !isApplied)
        #expect(world.state.aliases.isEmpty)
        #expect(try #require(world.identify(["ios_idfv": "1"], on: "d2")).rule == .created)
    }

    /// S96: one of two aliases comes to nothing; the other, applied or waiting, still says who goes.
    @Test(arguments: [true, false]) func anAliasThatIsDroppedLeavesTheOther(_ isApplied: Bool) throws {
        let world = world(.conversion)
        let source = try #require(world.identify(["device_application_stamp": "a"])?.mpid)
        let person = try #require(world.login(["customerid": "a"], on: "d2")?.mpid)
        let first = try alias(source, person, in: world)
        if isApplied { world.run(.applyAlias(ApplyAlias(aliasId: first.aliasId, destinationMPID: person))) }
        world.now += 1
        let second = try alias(source, person, in: world)
        let dropped = isApplied ? second : first
        for isRestricted in [true, false] {
            world.run(
                .restrict(RestrictProfile(mpid: person, isRestricted: isRestricted, author: "kim", reason: "r")))
            world.run(.applyAlias(ApplyAlias(aliasId: dropped.aliasId, destinationMPID: person)))
            #expect(world.events.contains { $0.base is AliasDropped } == isRestricted)
        }
        #expect(world.profile(person)?.aliasedFrom == [source])
        #expect(erase(["customerid": "a"], in: world) == .pending)
        #expect(gone(world) == [source, person])
    }

    /// S96: what anybody said of two nobodies comes to nothing when both are known; what was vouched for since stays.
    @Test func anAliasFromBeforeSomebodyWasKnownTakesNoLaterOneAlong() throws {
        let world = world(.conversion, .enforce)
        let source = try #require(world.identify(["device_application_stamp": "a"])?.mpid)
        let person = try #require(world.identify(["device_application_stamp": "b"], on: "d2")?.mpid)
        let early = try unvouched(in: world) { try alias(source, person, in: world) }
        #expect(world.login(["customerid": "anna", "device_application_stamp": "a"])?.mpid == source)
        #expect(world.login(["customerid": "anna2", "device_application_stamp": "b"], on: "d2")?.mpid == person)
        world.now += 1
        _ = try alias(source, person, in: world)
        world.run(.applyAlias(ApplyAlias(aliasId: early.aliasId, destinationMPID: person)))
        #expect(world.events.contains { ($0.base as? AliasDropped)?.rule == .becameKnown })
        #expect(erase(["customerid": "anna2"], in: world) == .pending)
        #expect(gone(world) == [source, person])
    }

    /// S54, S96: a source that goes drops its alias, and says so; whom it led to stays.
    @Test func anAliasOfAnErasedSourceIsDropped() throws {
        let world = world(.link)
        let source = try #require(world.identify(["ios_idfv": "1"])?.mpid)
        let person = try #require(world.login(["customerid": "a"])?.mpid)
        let result = try alias(source, person, in: world)
        #expect(world.run(.erase(EraseProfile(mpid: source))) == .pending)
        #expect(gone(world) == [source] && world.state.aliases.isEmpty)
        #expect(
            world.events.first
                == AnyHashable(
                    AliasDropped(
                        aliasId: result.aliasId, sourceMPID: source, destinationMPID: person, rule: .erased)))
        #expect(world.run(.applyAlias(ApplyAlias(aliasId: result.aliasId, destinationMPID: person))) == .noted)
    }

    /// S96: with the last of those it was aliased into.
    @Test func aSourceOfTwoGoesWithTheSecond() throws {
        let world = world(.link)
        let source = try #require(world.identify(["ios_idfv": "1"])?.mpid)
        let first = try #require(world.login(["customerid": "a"])?.mpid)
        _ = try alias(source, first, in: world)
        let second = try #require(world.login(["customerid": "b"])?.mpid)
        _ = try alias(source, second, in: world)
        #expect(erase(["customerid": "a"], in: world) == .pending)
        #expect(gone(world) == [first])
        #expect(erase(["customerid": "b"], in: world) == .pending)
        #expect(gone(world) == [first, second, source])
    }

    /// S96: anybody may alias two anonymous profiles; who logs in to one later is not the other.
    @Test(arguments: [true, false]) func whoHasBecomeSomebodySinceStays(_ isApplied: Bool) throws {
        let world = world(.conversion)
        let source = try #require(world.identify(["device_application_stamp": "annas"])?.mpid)
        let other = try #require(world.identify(["device_application_stamp": "mallorys"], on: "d2")?.mpid)
        let result = try alias(source, other, in: world)
        if isApplied { world.run(.applyAlias(ApplyAlias(aliasId: result.aliasId, destinationMPID: other))) }
        #expect(world.login(["customerid": "anna", "device_application_stamp": "annas"])?.mpid == source)
        let mallory = ["customerid": "mallory", "device_application_stamp": "mallorys"]
        #expect(world.login(mallory, on: "d2")?.mpid == other)
        #expect(erase(["customerid": "mallory"], in: world) == .pending)
        #expect(gone(world) == [other])
        #expect(world.identify(["customerid": "anna"])?.mpid == source)
    }

    /// S96: what was said of a known profile is said of the person.
    @Test func aKnownSourceGoesWithWhomItWasAliasedInto() throws {
        let world = world(.conversion)
        let source = try #require(world.login(["customerid": "old"])?.mpid)
        let person = try #require(world.login(["customerid": "new"], on: "d2")?.mpid)
        _ = try alias(source, person, in: world)
        #expect(erase(["customerid": "new"], in: world) == .pending)
        #expect(gone(world) == [source, person])
    }

    /// S96: a link says that it is somebody else.
    @Test func aSourceOfAnotherUserStays() throws {
        let world = world(.link)
        let source = try #require(world.login(["customerid": "old"])?.mpid)
        world.run(link("user-old", "old"))
        let person = try #require(world.login(["customerid": "a"], on: "d2")?.mpid)
        _ = try alias(source, person, in: world)
        #expect(erase(["customerid": "a"], in: world) == .pending)
        #expect(gone(world) == [person] && persons(world).isEmpty)
    }
}
