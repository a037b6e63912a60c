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
            try world.modify(known, "push_token", from: nil, to: "mine"),
            world.run(.getUsers(GetDeviceUsers(deviceId: "d1"))),
            world.run(.move(.identify, SyncRequest(deviceId: "d1", knownIdentities: ["other": "mine"]))),
            world.run(.search(SyncRequest(deviceId: "d1", knownIdentities: ["mobile_number": "1"]))),
        ]
    }

    @Test func anSDKKeyNamesNobodyWhereVerificationIsEnforced() throws {
        #expect(try answers(enforced([.identitySync])) == Array(repeating: .rejected(.verificationRequired), count: 11))
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

    /// A profile that only anonymous visitors touch may change by a device's word, one that holds a word about a person may
    /// not be carried anywhere (S71).
    @Test func noDeviceTouchesWhatSomebodySaidOfAPerson() throws {
        var settings = SyncSettings.worked(.conversion)
        settings.uniqueIdentities.insert(.iosIDFV)
        let world = World(settings)
        world.verification = VerificationSettings(mode: .enforce)
        let known = try world.given(7, [Identity(.customerID, "anna"), Identity(.iosIDFV, "1")])
        let plain = try world.given(8, [Identity(.iosIDFV, "2")])
        let named = try world.given(9, [Identity(.other, "word")])
        #expect(try world.modify(plain, "ios_idfv", from: nil, to: "1") == .rejected(.verificationRequired))
        #expect(world.identities(known).contains(Identity(.iosIDFV, "1")))
        let alias = AliasUsers(sourceMPID: named, destinationMPID: plain)
        #expect(world.run(.alias(alias)) == .rejected(.verificationRequired))
        #expect(try world.modify(named, "push_token", from: nil, to: "t") != .rejected(.verificationRequired))
    }

    /// A logout that tells of people is a logout (S75).
    @Test func aDevicesLogoutPassesOverWhatItSaysOfPeople() throws {
        let world = enforced([.identitySync])
        let mpid = try #require(world.logout(["other": "word", "ios_idfv": "1"])?.mpid)
        #expect(world.identities(mpid) == [Identity(.iosIDFV, "1")])
        #expect(world.logout(["customerid": "victim"]) != nil && world.logout(["other": "word"]) != nil)
    }

    // MARK: What a login may take over

    /// - Returns: what Anna's login, vouched for by the verification service, comes to on device `anna`.
    private func annasLogin(
        _ world: World, _ identities: [String: String?] = ["customerid": "anna", "email": "anna@x.io"]
    ) -> SyncResult? {
        world.principal = Principal(kind: .service, scopes: [])
        defer { world.principal = Principal(kind: .apiKey("k"), scopes: [.identitySync]) }
        return world.login(identities, on: "anna")
    }

    private func strategies(_ test: (World) throws -> Void) throws {
        for strategy in SyncStrategy.all where strategy != .bestMatch {
            let world = World(.defaults(of: strategy))
            world.verification = VerificationSettings(mode: .enforce)
            try test(world)
        }
    }

    /// S72, V60. An attacker's device says that it is Anna's.
    @Test func aWordOfADeviceFindsNobodyLater() throws {
        try strategies { world in
            #expect(world.identify(["email": "anna@x.io", "device_application_stamp": "evil"], on: "evil") == nil)
            // Stored before the app enforced.
            let evil = try world.given(7, [Identity(.email, "anna@x.io"), Identity(.deviceApplicationStamp, "evil")])
            let isKnown = world.settings.loginIdentities.contains(.email)
            let anna = try #require(annasLogin(world))
            #expect(isKnown || anna.mpid != evil, "\(world.settings.strategy.name)")
            #expect(world.identities(anna.mpid).contains(Identity(.customerID, "anna")))
        }
    }

    /// S73. Two devices with one advertising id have one anonymous profile: it is nobody's own.
    @Test func aProfileThatAnotherDeviceHasIsNotTakenOver() throws {
        for strategy in [SyncStrategy.default, .conversion] {
            let world = World(strategy == .default ? SyncSettings() : .worked(strategy))
            world.verification = VerificationSettings(mode: .enforce)
            let shared = world.identify(["ios_idfv": "1"], on: "evil")?.mpid
            #expect(world.identify(["ios_idfv": "1"], on: "anna")?.mpid == shared)
            let anna = try #require(annasLogin(world, ["customerid": "anna", "ios_idfv": "1"]))
            #expect(anna.mpid != shared && anna.rule == .createdBesideUnvouched)
            #expect(world.current("evil") == shared)
            // Alone on it again, the next person has it.
            let other = world.identify(["ios_idfv": "1"], on: "anna")
            #expect(other?.mpid == shared && other?.isLoggedIn == false)
            _ = world.identify(["ios_idfv": "2"], on: "evil")
            let bob = annasLogin(world, ["customerid": "bob", "ios_idfv": "1"])
            #expect(bob?.mpid == shared && bob?.rule == .converted)
        }
    }

    /// S73. What somebody said of a person before the app enforced stays where it is.
    @Test func aProfileWithAWordAboutAnotherIsNotTakenOver() throws {
        let world = World(SyncSettings())
        world.verification = VerificationSettings(mode: .off)
        let before = world.identify(["other": "word", "ios_idfv": "1"], on: "anna")?.mpid
        world.verification = VerificationSettings(mode: .enforce)
        let anna = try #require(annasLogin(world, ["customerid": "anna", "ios_idfv": "1"]))
        #expect(anna.mpid != before && anna.rule == .createdBesideUnvouched)
        _ = world.identify(["ios_idfv": "1"], on: "anna")
        let named = try #require(annasLogin(world, ["customerid": "bob", "other": "word", "ios_idfv": "1"]))
        #expect(named.mpid == before && named.rule == .converted)
    }

    /// S73. Nor one that the device never had.
    @Test func onlyTheOwnDevicesProfileIsTakenOver() throws {
        let world = World(SyncSettings())
        world.verification = VerificationSettings(mode: .enforce)
        let other = world.identify(["ios_idfv": "1"], on: "old")?.mpid
        _ = world.identify(["ios_idfv": "2"], on: "old")
        let anna = try #require(annasLogin(world, ["customerid": "anna", "ios_idfv": "1"]))
        #expect(anna.mpid != other && anna.rule == .createdBesideUnvouched)
    }

    /// S76.
    @Test(arguments: VerificationSettings.Mode.allCases) func onlyAVoucherNamesAndClears(
        _ mode: VerificationSettings.Mode
    ) throws {
        for isVoucher in [false, true] {
            let world = enforced(isVoucher ? [.identitySync, .identityVouch] : [.identitySync])
            world.verification.mode = mode
            let anonymous = try #require(world.identify(["ios_idfv": "1"])?.mpid)
            _ = world.identify(["ios_idfv": "2"], on: "d2")
            var request = SyncRequest(deviceId: "d1", knownIdentities: ["ios_idfv": "2"])
            (request.name, request.clearAnonymousUser) = ("Mallory", true)
            guard case .sync(let result) = world.run(.move(.login, request)) else { return #expect(Bool(false)) }
            #expect((world.profile(result.mpid)?.name == "Mallory") == isVoucher)
            #expect(world.identities(anonymous).isEmpty == isVoucher)
        }
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

    /// S38. Two devices have one anonymous user, as after a restored back-up.
    @Test func aLoginThatMakesAnotherDevicesUserKnownIsTold() {
        World(.worked(.conversion)).story(
            """
            identify d2 ios_idfv=1            -> A anonymous
            identify d1 ios_idfv=1            -> A anonymous
            login d1 customerid=a ios_idfv=1  -> A known converted; A attached +customerid=a, d1 has A known, d2 has A known
            login d1 customerid=a ios_idfv=1  -> A known matched;
            """)
    }

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
