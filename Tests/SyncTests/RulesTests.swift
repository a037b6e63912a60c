// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import Testing

@testable import Runtime
@testable import Sync

/// The rules of docs/sync.md, one by one.
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

    /// S8.
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

    @Test func aUniqueValueIsReplacedWhenTheNewOneIsFree() {
        World(.worked(.conversion)).story(
            """
            login d1 customerid=a email=old -> A known
            login d1 customerid=a email=new -> A known matched; A replaced +email=new -email=old
            profile A                       -> customerid=a email=new
            login d2 email=old              -> B known created
            """)
    }

    /// S30.
    @Test func aUniqueValueOfSomebodyElseStaysThere() {
        World(.worked(.conversion)).story(
            """
            login d1 customerid=a email=mine  -> A known
            login d2 customerid=b email=yours -> B known
            login d1 customerid=a email=yours -> A known matched
            profile A                         -> customerid=a email=mine
            profile B                         -> customerid=b email=yours
            """)
    }

    @Test(arguments: [SyncStrategy.conversion, .link, .isolation]) func logoutIgnoresLoginIdentities(
        _ strategy: SyncStrategy
    ) {
        World(.worked(strategy)).story(
            """
            login d1 customerid=a ios_idfv=1  -> A known
            logout d1 customerid=a ios_idfv=1 -> B anonymous
            profile B                         -> ios_idfv=1
            """)
    }

    /// A value is kept as it was given.
    @Test func emailCase() {
        var settings = SyncSettings.worked(.conversion)
        World(settings).story(
            """
            login d1 email=Ed.Hyde@Example.com -> A
            login d2 email=ed.hyde@example.com -> B
            profile A                          -> email=Ed.Hyde@Example.com
            """)
        settings.foldedIdentities = [.email]
        World(settings).story(
            """
            login d1 email=Ed.Hyde@Example.com -> A
            login d2 email=ed.hyde@example.com -> A
            profile A                          -> email=Ed.Hyde@Example.com
            """)
    }

    /// The Kelvin sign is no k: somebody else's address must not become mine by folding.
    @Test func onlyASCIIIsFolded() {
        var settings = SyncSettings.worked(.conversion)
        settings.foldedIdentities = [.email]
        World(settings).story(
            """
            login d1 email=Mike@corp.com         -> A
            login d2 email=mi\u{212A}e@corp.com  -> B
            login d3 email=MIKE@corp.com         -> A
            """)
    }

    @Test func identityValuesAreComparedByTheirBytes() throws {
        let world = World(.worked(.conversion))
        let one = world.login(["customerid": "\u{e9}"])?.mpid
        #expect(world.login(["customerid": "e\u{301}"], on: "d2")?.mpid != one)
        #expect(world.login(["customerid": " \u{e9}"], on: "d2")?.mpid != one)
    }

    // MARK: Modify

    @Test func modifyDecisions() {
        World(.worked(.conversion)).story(
            """
            modify 5 email - x           -> NOT_FOUND_ERROR
            login d1 customerid=a email=e -> A known
            modify A email e e           -> A known named unchanged
            modify A push_token - t1     -> A known named changed A
            modify A push_token stale t2 -> A known named changed A
            profile A                    -> customerid=a email=e push_token=t1 push_token=t2
            modify A push_token t1 t3    -> A known named changed A
            profile A                    -> customerid=a email=e push_token=t2 push_token=t3
            modify A push_token - -      -> A known named changed A
            profile A                    -> customerid=a email=e
            modify A email - -           -> A known named changed A
            modify A customerid - -      -> A anonymous named changed A
            profile A                    -> orphaned
            modify A email - e           -> NOT_FOUND_ERROR
            login d1 customerid=a        -> B known created
            """)
    }

    @Test func immutableIdentities() {
        World(SyncSettings()).story(
            """
            identify d1 device_application_stamp=s -> A anonymous
            modify A customerid - c                -> A known named changed A
            modify A customerid c d                -> VALIDATION_ERROR
            modify A customerid c -                -> VALIDATION_ERROR
            identify d2 email=e                    -> B anonymous
            modify B customerid - c                -> VALIDATION_ERROR
            profile A                              -> customerid=c device_application_stamp=s
            """)
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
                return world.login(identities, on: DeviceID(device)) != nil
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

    @Test func aModifyThatNamesAnIdentityTwiceIsOneCommand() throws {
        var settings = SyncSettings.worked(.conversion)
        settings.throttle.loginBurst = 1
        settings.throttle.loginPerSecond = 1
        let world = World(settings)
        let mpid = try #require(world.identify(["ios_idfv": "1"])?.mpid)
        let changes = [nil, "other"].map {
            ModifyIdentities.Change(identityType: "email", oldValue: $0, newValue: "new@mail")
        }
        world.run(.modify(ModifyIdentities(mpid: mpid, changes: changes)))
        #expect(world.identities(mpid) == [Identity(.iosIDFV, "1"), Identity(.email, "new@mail")])
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

    /// S17.
    @Test func ephemeralIsWhatNothingCanFindAgain() throws {
        let world = World(.worked(.conversion))
        #expect(world.identify(["push_token": "t"])?.isEphemeral == true)
        #expect(world.identify(["push_token": "t", "ios_idfv": "1"], on: "d2")?.isEphemeral == false)
        #expect(world.login(["customerid": "a"])?.isEphemeral == false)
    }
}
