// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Runtime
@testable import Sync

/// The decisions of domain.md "Sync", one by one.
@Suite struct RulesTests {
    // MARK: Ties among anonymous profiles

    struct Tie: Sendable, CustomTestStringConvertible {
        var current: Int64?
        var seen: [Int64: Int64]
        var winner: Int64
        var rule: SyncRule
        var testDescription: String { rule.rawValue }
    }

    static let ties = [
        Tie(current: 3, seen: [1: 30, 2: 20, 3: 10], winner: 3, rule: .tieToCurrentUser),
        Tie(current: nil, seen: [1: 10, 2: 30, 3: 20], winner: 2, rule: .tieToMostRecent),
        Tie(current: 9, seen: [1: 10, 2: 30, 3: 20], winner: 2, rule: .tieToMostRecent),
        Tie(current: nil, seen: [1: 30, -2: 30, 3: 20], winner: -2, rule: .tieToSmallest),
    ]

    @Test(arguments: ties) func tiesAmongAnonymousProfiles(_ tie: Tie) throws {
        let world = World(.worked(.link))
        for (mpid, seen) in tie.seen.sorted(by: { $0.key < $1.key }) {
            _ = try world.given(mpid, [Identity(.iosIDFV, "1")], seen: seen)
        }
        var device = DeviceRecord(key: .init(app: "demo", id: "d1"))
        device.current = tie.current.flatMap { MPID($0) }
        world.state.apply(.device(device))
        let result = try #require(world.identify(["ios_idfv": "1"]))
        #expect(result.mpid == MPID(tie.winner))
        #expect(result.rule == tie.rule)
        // A tie that was decided by the losers' rows writes them too.
        let written = (world.last?.changes ?? []).compactMap { change -> Int64? in
            if case .profile(let profile) = change { profile.mpid.value } else { nil }
        }
        #expect(Set(written) == (tie.rule == .tieToCurrentUser ? [tie.winner] : Set(tie.seen.keys)))
    }

    // MARK: previous MPID

    @Test func previousMPIDNeverWidensTheSearch() throws {
        let world = World(.worked(.conversion))
        let first = try #require(world.identify(["ios_idfv": "1"])?.mpid)
        let result = try #require(world.move(.identify, ["roku_aid": "2"], on: "d2", previous: first))
        #expect(result.mpid != first && result.previousMismatch == true && result.previousMPID == nil)
        #expect(world.move(.identify, ["roku_aid": "2"], on: "d2", previous: result.mpid)?.previousMismatch == false)
        #expect(world.identify(["roku_aid": "2"], on: "d2")?.previousMismatch == nil)
    }

    // MARK: Write rules

    @Test func aUniqueValueIsReplacedWhenTheNewOneIsFree() throws {
        let world = World(.worked(.conversion))
        let mpid = world.login(["customerid": "a", "email": "old"])?.mpid
        #expect(world.login(["customerid": "a", "email": "new"])?.mpid == mpid)
        #expect(world.identities(mpid) == [Identity(.customerID, "a"), Identity(.email, "new")])
        #expect(world.events.contains { ($0.base as? IdentitiesChanged)?.reason == .replaced })
        // The old value is free again.
        #expect(world.login(["email": "old"], on: "d2")?.mpid != mpid)
    }

    @Test func aUniqueValueOfSomebodyElseStaysThere() throws {
        let world = World(.worked(.conversion))
        let a = world.login(["customerid": "a", "email": "mine"])?.mpid
        let b = world.login(["customerid": "b", "email": "yours"], on: "d2")?.mpid
        #expect(world.login(["customerid": "a", "email": "yours"])?.mpid == a)
        #expect(world.identities(a) == [Identity(.customerID, "a"), Identity(.email, "mine")])
        #expect(world.identities(b).contains(Identity(.email, "yours")))
    }

    @Test func logoutIgnoresLoginIdentities() throws {
        for strategy in [SyncStrategy.conversion, .link, .isolation] {
            let world = World(.worked(strategy))
            let known = world.login(["customerid": "a", "ios_idfv": "1"])?.mpid
            let out = try #require(world.logout(["customerid": "a", "ios_idfv": "1"]))
            #expect(out.mpid != known && !out.isLoggedIn)
            #expect(world.identities(out.mpid) == [Identity(.iosIDFV, "1")])
        }
    }

    @Test(arguments: [false, true]) func emailCase(_ isFolded: Bool) throws {
        var settings = SyncSettings.worked(.conversion)
        if isFolded { settings.foldedIdentities = [.email] }
        let world = World(settings)
        let mpid = world.login(["email": "Ed.Hyde@Example.com"])?.mpid
        #expect((world.login(["email": "ed.hyde@example.com"], on: "d2")?.mpid == mpid) == isFolded)
        #expect(world.identities(mpid) == [Identity(.email, "Ed.Hyde@Example.com")], "kept as it was given")
    }

    /// The Kelvin sign is no k: somebody else's address must not become mine by folding.
    @Test func onlyASCIIIsFolded() throws {
        var settings = SyncSettings.worked(.conversion)
        settings.foldedIdentities = [.email]
        let world = World(settings)
        let mike = world.login(["email": "Mike@corp.com"])?.mpid
        #expect(world.login(["email": "mi\u{212A}e@corp.com"], on: "d2")?.mpid != mike)
        #expect(world.login(["email": "MIKE@corp.com"], on: "d3")?.mpid == mike)
    }

    @Test func identityValuesAreComparedByTheirBytes() throws {
        let world = World(.worked(.conversion))
        let one = world.login(["customerid": "\u{e9}"])?.mpid
        #expect(world.login(["customerid": "e\u{301}"], on: "d2")?.mpid != one)
        #expect(world.login(["customerid": " \u{e9}"], on: "d2")?.mpid != one)
    }

    // MARK: Modify

    @Test func modifyDecisions() throws {
        let world = World(.worked(.conversion))
        #expect(try world.modify(MPID(5), "email", from: nil, to: "x") == .rejected(.notFoundError))
        let mpid = try #require(world.login(["customerid": "a", "email": "e"])?.mpid)
        // Nothing to do is no error.
        guard case .sync(let same) = try world.modify(mpid, "email", from: "e", to: "e") else {
            return #expect(Bool(false))
        }
        #expect(same.changeResults == [])
        // A value of a type that may have several is added, and the named one goes.
        _ = try world.modify(mpid, "push_token", from: nil, to: "t1")
        _ = try world.modify(mpid, "push_token", from: "stale", to: "t2")
        #expect(world.identities(mpid).isSuperset(of: [Identity(.pushToken, "t1"), Identity(.pushToken, "t2")]))
        _ = try world.modify(mpid, "push_token", from: "t1", to: "t3")
        #expect(world.profile(mpid)?.values(of: .pushToken).map(\.value) == ["t2", "t3"])
        _ = try world.modify(mpid, "push_token", from: nil, to: nil)
        #expect(world.profile(mpid)?.values(of: .pushToken) == [])
        // Taking the last identity makes an orphan, for good.
        _ = try world.modify(mpid, "email", from: nil, to: nil)
        _ = try world.modify(mpid, "customerid", from: nil, to: nil)
        #expect(world.profile(mpid)?.isOrphaned == true)
        #expect(try world.modify(mpid, "email", from: nil, to: "e") == .rejected(.notFoundError))
        #expect(world.login(["customerid": "a"])?.mpid != mpid)
    }

    @Test func immutableIdentities() throws {
        let world = World(SyncSettings())
        let mpid = try #require(world.identify(["device_application_stamp": "s"])?.mpid)
        guard case .sync = try world.modify(mpid, "customerid", from: nil, to: "c") else {
            return #expect(Bool(false), "setting it the first time")
        }
        for new in ["d", nil] {
            #expect(try world.modify(mpid, "customerid", from: "c", to: new) == .rejected(.validationError))
        }
        let other = try #require(world.identify(["email": "e"], on: "d2")?.mpid)
        #expect(try world.modify(other, "customerid", from: nil, to: "c") == .rejected(.validationError))
        #expect(world.identities(mpid).contains(Identity(.customerID, "c")))
    }

    // MARK: Hot keys

    @Test func tokenBuckets() {
        var bucket: TokenBucket?
        var taken = 0
        while let next = TokenBucket.take(from: bucket, perSecond: 2, burst: 5, now: 1000) {
            bucket = next
            taken += 1
        }
        #expect(taken == 5)
        #expect(TokenBucket.take(from: bucket, perSecond: 2, burst: 5, now: 1499) == nil)
        #expect(TokenBucket.take(from: bucket, perSecond: 2, burst: 5, now: 1500)?.thousandths == 0)
        #expect(TokenBucket.take(from: bucket, perSecond: 2, burst: 5, now: .max)?.thousandths == 4000)
        // A clock that is behind gives nothing, and takes nothing back.
        #expect(TokenBucket.take(from: bucket, perSecond: 2, burst: 5, now: 0) == nil)
    }

    @Test func hotKeysAreThrottledByDeviceAndByLoginIdentity() throws {
        var settings = SyncSettings.worked(.conversion)
        settings.throttle.deviceBurst = 3
        settings.throttle.devicePerSecond = 1
        settings.throttle.loginBurst = 4
        settings.throttle.loginPerSecond = 1
        let world = World(settings)
        func answers(_ devices: [String], _ identities: [String: String?]) -> [Bool] {
            devices.map { device in
                world.now -= 1000  // all in one instant
                return world.login(identities, on: device) != nil
            }
        }
        #expect(answers(["a", "a", "a", "a"], ["ios_idfv": "1"]) == [true, true, true, false])
        #expect(world.run(.move(.login, SyncRequest(deviceId: "b", knownIdentities: ["ios_idfv": "2"]))) != .noted)
        let devices = (0..<6).map { "d\($0)" }
        #expect(answers(devices, ["customerid": "hot"]) == [true, true, true, true, false, false])
        #expect(answers(["e"], ["customerid": "cold"]) == [true])
        world.now += 1000
        #expect(answers(["f"], ["customerid": "hot"]) == [true])
    }

    /// Also one that finds nothing: whoever tries values is who it is about.
    @Test func searchesAreThrottledToo() {
        var settings = SyncSettings.worked(.conversion)
        settings.throttle.deviceBurst = 3
        settings.throttle.devicePerSecond = 1
        let world = World(settings)
        var answers: [Answer] = []
        for number in 0..<5 {
            world.now -= 1000
            answers.append(world.search(["email": "e\(number)"]))
        }
        #expect(
            answers == Array(repeating: .rejected(.notFoundError), count: 3)
                + Array(repeating: .rejected(.throttled), count: 2))
        #expect(world.state.identities.isEmpty, "what nobody has leaves no row")
    }

    // MARK: Ephemeral

    @Test func ephemeralIsWhatNothingCanFindAgain() throws {
        let world = World(.worked(.conversion))
        #expect(world.identify(["push_token": "t"])?.isEphemeral == true)
        #expect(world.identify(["push_token": "t", "ios_idfv": "1"], on: "d2")?.isEphemeral == false)
        #expect(world.login(["customerid": "a"])?.isEphemeral == false)
    }
}
