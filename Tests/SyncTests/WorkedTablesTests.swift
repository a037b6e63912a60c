// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Runtime
@testable import Sync

/// Every row of facts/idsync.md 3.3 to 3.6.
@Suite struct WorkedTablesTests {
    // MARK: 3.3

    struct PriorityRow: Sendable, CustomTestStringConvertible {
        var priority: [IdentityType]
        var request: [String: String]
        var expected: Int64
        var testDescription: String { "\(request) -> P\(expected)" }
    }

    static let priorityRows = [
        PriorityRow(
            priority: [.customerID, .email, .other, .iosIDFV, .androidAAID],
            request: ["email": "E", "other": "AAAA", "ios_idfv": "2345"], expected: 1),
        PriorityRow(
            priority: [.customerID, .email, .iosIDFV, .androidAAID], request: ["email": "E", "android_aaid": "2345"],
            expected: 2),
    ]

    @Test(arguments: priorityRows) func priorityExample(_ row: PriorityRow) throws {
        let world = World(SyncSettings(strategy: .conversion, priority: row.priority, unique: [], immutable: []))
        _ = try world.given(1, [Identity(.email, "E"), Identity(.iosIDFV, "1234"), Identity(.other, "AAAA")])
        _ = try world.given(2, [Identity(.email, "E"), Identity(.androidAAID, "2345"), Identity(.other, "BBBB")])
        #expect(world.identify(row.request)?.mpid == MPID(row.expected))
    }

    struct LoginRow: Sendable {
        var login: Set<IdentityType>
        var request: [String: String]
        /// `nil` is a new profile.
        var expected: Int64?
    }

    static let loginRows = [
        LoginRow(login: [.email, .customerID], request: ["email": "ed.hyde"], expected: 1234),
        LoginRow(login: [.email], request: ["email": "h.jekyll.md", "ios_idfv": "5678"], expected: 5678),
        LoginRow(login: [.email], request: ["ios_idfv": "1234"], expected: nil),
    ]

    private func loginExample(_ settings: SyncSettings) throws -> World {
        let world = World(settings)
        _ = try world.given(
            1234, [Identity(.customerID, "h.jekyll.85"), Identity(.email, "ed.hyde"), Identity(.iosIDFV, "1234")])
        _ = try world.given(5678, [Identity(.email, "h.jekyll.md")])
        return world
    }

    @Test(arguments: loginRows) func loginIDExample(_ row: LoginRow) throws {
        let world = try loginExample(
            SyncSettings(
                strategy: .conversion, priority: [.customerID, .email, .iosIDFV], login: row.login,
                unique: [.customerID, .email], immutable: []))
        let result = try #require(world.identify(row.request))
        if let expected = row.expected {
            #expect(result.mpid == MPID(expected))
        } else {
            #expect(![MPID(1234), MPID(5678)].contains(result.mpid))
            #expect(world.identities(result.mpid) == [Identity(.iosIDFV, "1234")])
            #expect(!result.isLoggedIn && result.rule == .created)
        }
    }

    @Test(
        arguments: [
            (["customerid": "h.jekyll.85"], 1234), (["email": "h.jekyll.md"], nil), (["customerid": "9101"], nil),
        ] as [([String: String], Int64?)]) func immutableExample(_ request: [String: String], _ expected: Int64?) throws
    {
        var settings = SyncSettings(
            strategy: .conversion, priority: [.customerID, .email, .iosIDFV], login: [.customerID, .email],
            unique: [.customerID, .email], immutable: [.customerID])
        let world = try loginExample(settings)
        let answer = world.search(request)
        if let expected {
            guard case .sync(let result) = answer else { return #expect(Bool(false), "\(answer)") }
            #expect(result.mpid == MPID(expected))
        } else {
            #expect(answer == .rejected(.notFoundError))
        }
        #expect(world.state.changedProfiles.count == 2, "nothing is created")
        // The switch: search with any identity.
        settings.searchByAnyIdentity = true
        world.app.sync = settings
        if request == ["email": "h.jekyll.md"] {
            guard case .sync(let result) = world.search(request) else { return #expect(Bool(false)) }
            #expect(result.mpid == MPID(5678))
        }
    }

    @Test(arguments: [true, false]) func uniqueExample(_ isUnique: Bool) throws {
        let world = try loginExample(
            SyncSettings(
                strategy: .conversion, priority: [.customerID, .email, .iosIDFV], login: [.customerID, .email],
                unique: isUnique ? [.customerID, .email] : [.customerID], immutable: []))
        let answer = try world.modify(MPID(1234), "email", from: "ed.hyde", to: "h.jekyll.md")
        guard case .sync(let result) = answer else { return #expect(Bool(false), "\(answer)") }
        #expect(world.identities(MPID(1234)).contains(Identity(.email, "h.jekyll.md")))
        #expect(!world.identities(MPID(1234)).contains(Identity(.email, "ed.hyde")))
        #expect(world.identities(MPID(5678)) == (isUnique ? [] : [Identity(.email, "h.jekyll.md")]))
        #expect(world.profile(MPID(5678))?.isOrphaned == isUnique)
        #expect(
            result.changeResults?.map { $0.modifiedMPID.value } == (isUnique ? [1234, 5678] : [1234]))
    }

    // MARK: 3.4, 3.5

    struct Flow: Sendable, CustomTestStringConvertible {
        var strategy: SyncStrategy
        /// By step; `nil` is a new profile, a number the profile of that step.
        var expected: [Int?]
        var testDescription: String { strategy.name }
    }

    static let flows = [
        //            1    2    3    4    5  6  7    8
        Flow(strategy: .conversion, expected: [nil, 1, nil, nil, 1, 1, nil, 1]),
        Flow(strategy: .link, expected: [nil, nil, nil, nil, 2, 2, nil, 2]),
        Flow(strategy: .isolation, expected: [nil, nil, 1, nil, 2, 2, nil, 2]),
    ]

    @Test(arguments: flows) func conversionLinkAndIsolation(_ flow: Flow) throws {
        let world = World(.worked(flow.strategy))
        var profiles: [MPID] = []
        func check(_ result: SyncResult?, _ step: Int, isLoggedIn: Bool, device: String? = "d1") throws {
            let result = try #require(result)
            if let earlier = flow.expected[step - 1] {
                #expect(result.mpid == profiles[earlier - 1], "step \(step)")
            } else {
                #expect(!profiles.contains(result.mpid), "step \(step) makes a new profile")
            }
            #expect(result.isLoggedIn == isLoggedIn, "step \(step)")
            if let device { #expect(world.current(device) == result.mpid) }
            profiles.append(result.mpid)
        }
        let person = ["customerid": "ABC123", "email": "ed.hyde", "ios_idfv": "9876"]
        try check(world.identify(["ios_idfv": "9876"]), 1, isLoggedIn: false)
        try check(world.login(person), 2, isLoggedIn: true)
        let known = profiles[1]
        #expect(
            world.identities(known)
                == [Identity(.customerID, "ABC123"), Identity(.email, "ed.hyde"), Identity(.iosIDFV, "9876")])
        try check(world.logout(["ios_idfv": "9876"]), 3, isLoggedIn: false)
        #expect(world.identities(profiles[2]) == [Identity(.iosIDFV, "9876")])
        try check(world.identify(["email": "h.jekyll.md"], on: "feed"), 4, isLoggedIn: true, device: "feed")
        let feed = profiles[3]
        try check(world.login(person), 5, isLoggedIn: true)
        let answer = try world.modify(known, "email", from: "ed.hyde", to: "h.jekyll.md")
        guard case .sync(let modified) = answer else { return #expect(Bool(false), "\(answer)") }
        try check(modified, 6, isLoggedIn: true)
        #expect(world.profile(feed)?.isOrphaned == true)
        #expect(modified.changeResults?.map(\.modifiedMPID) == [known, feed])
        try check(world.identify(["roku_aid": "8765"], on: "roku"), 7, isLoggedIn: false, device: "roku")
        try check(
            world.login(["customerid": "ABC123", "email": "h.jekyll.md", "roku_aid": "8765"], on: "roku"), 8,
            isLoggedIn: true, device: "roku")
        #expect(
            world.identities(known)
                == [
                    Identity(.customerID, "ABC123"), Identity(.email, "h.jekyll.md"), Identity(.iosIDFV, "9876"),
                    Identity(.rokuAID, "8765"),
                ])
    }

    // MARK: 3.6

    @Test func bestMatch() throws {
        let world = World(.worked(.bestMatch))
        let first = try #require(world.identify(["ios_idfv": "9876"])?.mpid)
        #expect(world.identify(["email": "ed.hyde", "ios_idfv": "9876"])?.mpid == first)
        #expect(world.identities(first) == [Identity(.iosIDFV, "9876"), Identity(.email, "ed.hyde")])
        try world.modify(first, "email", from: "ed.hyde", to: "h.jekyll.md")
        #expect(world.identities(first) == [Identity(.iosIDFV, "9876"), Identity(.email, "h.jekyll.md")])
        #expect(world.identify(["email": "poole", "ios_idfv": "9876"])?.mpid == first)
        let emails: Set = [Identity(.email, "h.jekyll.md"), Identity(.email, "poole")]
        #expect(world.identities(first) == emails.union([Identity(.iosIDFV, "9876")]))
        let second = try #require(world.identify(["android_uuid": "8765"], on: "d2")?.mpid)
        #expect(second != first)
        #expect(world.identify(["android_uuid": "8765", "email": "poole"], on: "d2")?.mpid == first)
        #expect(world.identities(first).contains(Identity(.androidUUID, "8765")))
        // Login and logout behave as identify (domain.md "Sync").
        #expect(world.login(["ios_idfv": "9876"])?.mpid == first)
        #expect(world.logout(["ios_idfv": "9876"])?.mpid == first)
        #expect(world.state.profiles.values.allSatisfy { !$0.isKnown(world.settings) })
    }

    // MARK: Default: conversion with fixed settings (3.1)

    @Test func defaultStrategy() throws {
        let world = World(SyncSettings())
        let anonymous = try #require(world.identify(["device_application_stamp": "das"]))
        let login = ["customerid": "c", "email": "e", "device_application_stamp": "das"]
        #expect(world.login(login)?.mpid == anonymous.mpid)
        let out = try #require(world.logout(["device_application_stamp": "das"]))
        #expect(out.mpid != anonymous.mpid && !out.isLoggedIn)
        #expect(world.login(login)?.mpid == anonymous.mpid)
        // The e-mail alone marks no login here.
        let other = try #require(world.identify(["email": "e2"], on: "d2"))
        #expect(!other.isLoggedIn)
        #expect(try world.modify(anonymous.mpid, "customerid", from: "c", to: "c2") == .rejected(.validationError))
    }
}
