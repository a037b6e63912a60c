// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Apps
@testable import Runtime
@testable import Sync

/// Who may say who is who, and what says nothing about anybody.
@Suite struct WhoIsWhoTests {
    // MARK: Verification

    private func enforced(_ scopes: Set<Scope>, kind: Principal.Kind = .apiKey("k")) -> World {
        let world = World(.worked(.conversion))
        world.verification = VerificationSettings(mode: .enforce)
        world.principal = Principal(kind: kind, scopes: scopes)
        return world
    }

    private func answers(_ world: World) throws -> [Answer] {
        let known = try world.given(7, [Identity(.customerID, "victim")])
        let anonymous = try world.given(8, [Identity(.iosIDFV, "1")])
        let login = SyncRequest(deviceId: "d1", knownIdentities: ["customerid": "victim", "ios_idfv": "2"])
        return [
            world.run(.move(.identify, login)), world.run(.move(.login, login)), world.run(.search(login)),
            try world.modify(known, "email", from: nil, to: "mine@mail"),
            try world.modify(anonymous, "customerid", from: nil, to: "victim"),
            world.run(.alias(AliasUsers(sourceMPID: anonymous, destinationMPID: known))),
            world.run(.alias(AliasUsers(sourceMPID: known, destinationMPID: anonymous))),
        ]
    }

    @Test func anSDKKeyNamesNobodyWhereVerificationIsEnforced() throws {
        #expect(try answers(enforced([.identitySync])) == Array(repeating: .rejected(.verificationRequired), count: 7))
    }

    @Test(arguments: [true, false]) func servicesAndBackendsMay(_ isService: Bool) throws {
        let world = isService ? enforced([], kind: .service) : enforced([.identitySync, .identityVouch])
        for answer in try answers(world).prefix(5) {
            guard case .sync = answer else { return #expect(Bool(false), "\(answer)") }
        }
    }

    @Test(arguments: [VerificationSettings.Mode.off, .report]) func otherAppsBelieveTheirKeys(
        _ mode: VerificationSettings.Mode
    ) throws {
        let world = enforced([.identitySync])
        world.verification.mode = mode
        #expect(try !answers(world).contains(.rejected(.verificationRequired)))
    }

    @Test func devicesStayFree() throws {
        let world = enforced([.identitySync])
        let mpid = try #require(world.identify(["ios_idfv": "1"])?.mpid)
        #expect(world.login(["ios_idfv": "1"])?.mpid == mpid)
        guard case .sync = world.search(["ios_idfv": "1"]),
            case .sync = try world.modify(mpid, "push_token", from: nil, to: "t")
        else { return #expect(Bool(false)) }
        #expect(world.logout(["customerid": "victim", "ios_idfv": "1"])?.isLoggedIn == false, "ignored, as always")
    }

    // MARK: Finding by the lower rank

    @Test(arguments: [SyncStrategy.conversion, .link, .isolation], [true, false]) func anEMailTakesNobodyOver(
        _ strategy: SyncStrategy, _ isUnique: Bool
    ) {
        var settings = SyncSettings.worked(strategy)
        if !isUnique { settings.uniqueIdentities = [.customerID] }
        let world = World(settings)
        world.story(
            """
            login d1 customerid=owner email=e@mail  -> A known
            login d2 customerid=other email=e@mail  -> B known created-for-other-login
            profile A                               -> customerid=owner email=e@mail
            profile B                               -> customerid=other\(isUnique ? "" : " email=e@mail")
            login d3 customerid=other email=e@mail  -> B known matched
            login d4 customerid=owner email=e@mail  -> A known matched
            search d1 customerid=third email=e@mail -> NOT_FOUND_ERROR
            """)
        #expect(world.last?.changes.contains { if case .profile = $0 { true } else { false } } == false)
    }

    /// What the decision passed over is written, so that it is decided again when that changes meanwhile.
    @Test func whoWasPassedOverIsWritten() throws {
        let world = World(.worked(.conversion))
        let first = try #require(world.login(["customerid": "owner", "email": "e@mail"])?.mpid)
        _ = world.login(["customerid": "other", "email": "e@mail"], on: "d2")
        let written = (world.last?.changes ?? []).compactMap { change -> MPID? in
            if case .profile(let profile) = change { profile.mpid } else { nil }
        }
        #expect(written.contains(first))
    }

    @Test func withoutAHigherOneTheLowerOneFinds() {
        World(.worked(.conversion)).story(
            """
            login d1 email=e@mail                  -> A known
            login d2 customerid=other email=e@mail -> A known matched
            profile A                              -> customerid=other email=e@mail
            login d3 email=e@mail                  -> A known matched
            """)
    }

    @Test func theLiteralReading() {
        var settings = SyncSettings.worked(.conversion)
        settings.joinByLowerRank = true
        World(settings).story(
            """
            login d1 customerid=owner email=e@mail -> A known
            login d2 customerid=other email=e@mail -> A known matched
            profile A                              -> customerid=other email=e@mail
            """)
    }

    @Test func userIDThenEMailJoinsOnlyWhoHasNoUserID() {
        World(.defaults(of: .userIDThenEmail)).story(
            """
            login d1 email=e@mail                  -> A known
            login d1 customerid=owner email=e@mail -> A known
            login d2 customerid=other email=e@mail -> B known created-for-other-login
            """)
    }

    // MARK: Values that name nobody

    private let zero = "00000000-0000-0000-0000-000000000000"

    /// Devices without consent for an advertising id are not one device.
    @Test func aDeviceValueThatNamesNobodyIsPassedOver() throws {
        let world = World(SyncSettings())
        let first = try #require(world.identify(["ios_idfa": zero, "ios_idfv": "v1"]))
        let second = try #require(world.identify(["ios_idfa": zero, "ios_idfv": "v2"], on: "d2"))
        #expect(first.mpid != second.mpid)
        #expect(world.identities(second.mpid) == [Identity(.iosIDFV, "v2")])
        #expect(world.state.ignored == [.iosIDFA: 2])
        #expect(try world.modify(first.mpid, "ios_idfa", from: nil, to: zero) != .rejected(.validationError))
        #expect(world.identities(first.mpid) == [Identity(.iosIDFV, "v1")])
        #expect(world.state.ignored == [.iosIDFA: 3])
        #expect(world.search(["ios_idfa": zero]) == .rejected(.lookupError))
        #expect(world.identify(["ios_idfa": zero]) == nil)
    }

    @Test(arguments: ["null", "NULL", "(null)", " ", "undefined", "0", "NaN"]) func aLoginValueThatNamesNobodyIsRefused(
        _ value: String
    ) throws {
        let world = World(.worked(.conversion))
        let request = SyncRequest(deviceId: "d1", knownIdentities: ["customerid": value, "ios_idfv": "1"])
        for command in [SyncCommand.move(.identify, request), .move(.login, request), .search(request)] {
            #expect(world.run(command) == .rejected(.validationError))
        }
        let mpid = try #require(world.logout(["customerid": value, "ios_idfv": "1"])?.mpid)
        #expect(try world.modify(mpid, "customerid", from: nil, to: value) == .rejected(.validationError))
    }

    @Test func anAppHasItsOwnWords() {
        let world = World(.worked(.conversion))
        world.settings.nobody = NobodyValues(["nobody"])
        #expect(world.login(["customerid": "null"]) != nil)
        #expect(world.login(["customerid": "nobody"]) == nil)
        #expect(world.login(["customerid": "Nobody"]) != nil)
    }

    // MARK: The current user's state

    @Test func aModifyThatMakesACurrentUserKnownOrAnonymousIsTold() {
        World(.worked(.conversion)).story(
            """
            identify d1 ios_idfv=1  -> A anonymous
            identify d2 ios_idfv=1  -> A anonymous
            modify A push_token - t -> A anonymous; A modified +push_token=t
            modify A customerid - a -> A known; A modified +customerid=a, d1 has A known, d2 has A known
            modify A customerid - b -> A known; A modified +customerid=b -customerid=a
            identify d3 ios_idfv=9  -> B anonymous
            modify B customerid - b -> B known; A taken -customerid=b, B modified +customerid=b, d1 has A anonymous, d2 has A anonymous, d3 has B known
            """)
    }
}
