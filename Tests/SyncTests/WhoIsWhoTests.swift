// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Runtime
@testable import Sync

/// Who may say who is who, and what says nothing about anybody.
@Suite struct WhoIsWhoTests {
    // MARK: Verification

    private func enforced(_ scopes: Set<Scope>, kind: Principal.Kind = .apiKey("k")) -> World {
        let world = World(.worked(.conversion))
        world.app.verification = VerificationSettings(mode: .enforce)
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
        world.app.verification.mode = mode
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

    private let owner = ["customerid": "owner", "email": "e@mail"]
    private let other = ["customerid": "other", "email": "e@mail"]

    @Test(arguments: [SyncStrategy.conversion, .link, .isolation], [true, false]) func anEMailTakesNobodyOver(
        _ strategy: SyncStrategy, _ isUnique: Bool
    ) throws {
        var settings = SyncSettings.worked(strategy)
        if !isUnique { settings.uniqueIdentities = [.customerID] }
        let world = World(settings)
        let first = try #require(world.login(owner)?.mpid)
        let second = try #require(world.login(other, on: "d2"))
        #expect(second.mpid != first && second.rule == .createdForOtherLogin && second.isLoggedIn)
        #expect(world.identities(first) == [Identity(.customerID, "owner"), Identity(.email, "e@mail")])
        #expect(world.identities(second.mpid).contains(Identity(.email, "e@mail")) == !isUnique)
        #expect(world.login(other, on: "d3")?.mpid == second.mpid && world.login(owner, on: "d4")?.mpid == first)
        #expect(world.search(["customerid": "third", "email": "e@mail"]) == .rejected(.notFoundError))
        #expect(world.last?.changes.contains { if case .profile = $0 { true } else { false } } == false)
    }

    /// What the decision passed over is written, so that it is decided again when that changes meanwhile.
    @Test func whoWasPassedOverIsWritten() throws {
        let world = World(.worked(.conversion))
        let first = try #require(world.login(owner)?.mpid)
        _ = world.login(other, on: "d2")
        let written = (world.last?.changes ?? []).compactMap { change -> MPID? in
            if case .profile(let profile) = change { profile.mpid } else { nil }
        }
        #expect(written.contains(first))
    }

    @Test func withoutAHigherOneTheLowerOneFinds() throws {
        let world = World(.worked(.conversion))
        let mpid = world.login(["email": "e@mail"])?.mpid
        #expect(world.login(other, on: "d2")?.mpid == mpid)
        #expect(world.identities(mpid) == [Identity(.customerID, "other"), Identity(.email, "e@mail")])
        #expect(world.login(["email": "e@mail"], on: "d3")?.mpid == mpid)
    }

    @Test func theLiteralReading() throws {
        var settings = SyncSettings.worked(.conversion)
        settings.joinByLowerRank = true
        let world = World(settings)
        let first = try #require(world.login(owner)?.mpid)
        #expect(world.login(other, on: "d2")?.mpid == first)
        #expect(world.identities(first) == [Identity(.customerID, "other"), Identity(.email, "e@mail")])
    }

    @Test func userIDThenEMailJoinsOnlyWhoHasNoUserID() throws {
        let world = World(.defaults(of: .userIDThenEmail))
        let byMail = try #require(world.login(["email": "e@mail"])?.mpid)
        #expect(world.login(owner)?.mpid == byMail)
        let second = try #require(world.login(other, on: "d2"))
        #expect(second.mpid != byMail && second.rule == .createdForOtherLogin)
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
        world.app.sync.nobody = NobodyValues(["nobody"])
        #expect(world.login(["customerid": "null"]) != nil)
        #expect(world.login(["customerid": "nobody"]) == nil)
        #expect(world.login(["customerid": "Nobody"]) != nil)
    }

    // MARK: The current user's state

    @Test func aModifyThatMakesACurrentUserKnownOrAnonymousIsTold() throws {
        let world = World(.worked(.conversion))
        let mpid = try #require(world.identify(["ios_idfv": "1"])?.mpid)
        #expect(world.identify(["ios_idfv": "1"], on: "d2")?.mpid == mpid)
        func told() -> [String: Bool] {
            Dictionary(
                uniqueKeysWithValues: (world.last?.events ?? []).compactMap { event in
                    (event as? CurrentUserChanged).map { ($0.deviceId, $0.isLoggedIn) }
                })
        }
        try world.modify(mpid, "push_token", from: nil, to: "t")
        #expect(told().isEmpty)
        try world.modify(mpid, "customerid", from: nil, to: "a")
        #expect(told() == ["d1": true, "d2": true])
        try world.modify(mpid, "customerid", from: nil, to: "b")
        #expect(told().isEmpty)
        // Taken by somebody else: the loser's devices learn of it.
        let thief = try #require(world.identify(["ios_idfv": "9"], on: "d3")?.mpid)
        try world.modify(thief, "customerid", from: nil, to: "b")
        #expect(told() == ["d1": false, "d2": false, "d3": true])
    }
}
