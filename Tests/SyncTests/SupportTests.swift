// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing
import WireJSON

@testable import Apps
@testable import Runtime
@testable import Sync

/// Links of people whom somebody puts right, or erases, meanwhile; and what support reads of a profile.
@Suite struct SupportTests: ErasingTests {
    /// S116: the link service has still to forget whoever has the customer id. A link of before makes nobody with whom the next
    /// one who logs in would go, and ends nobody who has; a later one marks.
    @Test(arguments: SQLEngine.allCases, [true, false])
    func aLinkOfWhoIsToBeForgottenMarksNobody(_ engine: SQLEngine, _ isBeforeTheLogin: Bool) throws {
        let store = try SyncTestStore(engine)
        let world = world(.conversion, .enforce)
        @discardableResult func run(_ command: SyncCommand) throws -> SyncDecider.Decision {
            (world.count, world.now) = (world.count + 1, world.now + 1000)
            return try store.run([RandomCommands.Step(command: command, context: world.context)])[0]
        }
        func login() throws -> MPID {
            let request = SyncRequest(deviceId: "d1", knownIdentities: ["customerid": "anna"])
            let answer = Answer(try run(.move(.login, request)).outcome)
            guard case .sync(let result) = answer else { return try #require(nil as MPID?, "\(answer)") }
            return result.mpid
        }
        func users() throws -> [MPID: String] {
            try store.database.transaction { transaction in
                let rows = try transaction.query("SELECT mpid, user_id FROM profiles WHERE user_id IS NOT NULL")
                return Dictionary(
                    uniqueKeysWithValues: try rows.map { (try #require(MPID($0.integer(0))), try $0.text(1)) })
            }
        }
        let old = try login()
        let linkedAt = world.now
        let forwards = try run(.erase(EraseProfile(mpid: old))).forwards
        if isBeforeTheLogin { try run(link("user-1", "anna", at: linkedAt)) }
        let new = try login()
        if !isBeforeTheLogin { try run(link("user-1", "anna", at: linkedAt)) }
        #expect(try users().isEmpty)
        try run(.answered(ForwardAnswer(forwardID: forwards[1].id, isPending: false, part: .part(users: ["user-1"]))))
        #expect(try login() == new && new != old)
        try run(link("user-2", "anna", at: world.now))
        #expect(try users() == [new: "user-2"])
    }

    // MARK: Names

    private func rename(_ user: UserID, _ old: ExternalID?, to new: ExternalID, at moment: Int64) -> SyncCommand {
        .renamed(
            ExternalIDChanged(
                userId: user, externalId: new, previousExternalId: old,
                linkedAt: Timestamp(milliseconds: moment), author: "kim", reason: "typo"))
    }

    private func customers(_ world: World, _ mpid: MPID?) -> [String] {
        world.profile(mpid)?.values(of: .customerID).map(\.value.text) ?? []
    }

    /// S118: the same profile under the new name, in whatever order the two are read.
    @Test(arguments: [true, false], [[], [IdentityType.customerID]])
    func whoIsRenamedKeepsTheProfile(_ isLinkReadFirst: Bool, _ immutable: Set<IdentityType>) throws {
        let world = world()
        world.settings.immutableIdentities = immutable
        let mpid = try #require(world.login(["customerid": "anna", "email": "a@b.io"])?.mpid)
        let linkedAt = world.now
        if isLinkReadFirst { world.run(link("user-1", "anna", at: linkedAt)) }
        world.run(rename("user-1", "anna", to: "annette", at: linkedAt + 1))
        if !isLinkReadFirst { world.run(link("user-1", "anna", at: linkedAt)) }
        #expect(customers(world, mpid) == ["annette"])
        #expect(world.profile(mpid)?.mark?.userID == "user-1" && world.profile(mpid)?.mark?.externalID == "annette")
        #expect(world.login(["customerid": "annette"])?.mpid == mpid)
        // Who has the old name by now is somebody else.
        #expect(try #require(world.login(["customerid": "anna"], on: "d2")?.mpid) != mpid)
    }

    /// S118: an older word about the name changes nothing.
    @Test func theLastNameCounts() throws {
        let world = world()
        let mpid = try #require(world.login(["customerid": "anna"])?.mpid)
        let linkedAt = world.now
        world.run(link("user-1", "anna", at: linkedAt))
        world.run(rename("user-1", "anna", to: "annette", at: linkedAt + 2))
        world.run(rename("user-1", "anna", to: "other", at: linkedAt + 1))
        #expect(customers(world, mpid) == ["annette"] && world.last?.changes.isEmpty == true)
        world.run(link("user-1", "annette", at: linkedAt + 3))
        #expect(world.profile(mpid)?.mark?.userID == "user-1")
    }

    /// S119.
    @Test(arguments: [true, false]) func whoIsUnlinkedLosesTheMark(_ isLinkReadFirst: Bool) throws {
        let world = world()
        let mpid = try #require(world.login(["customerid": "anna"])?.mpid)
        let linkedAt = world.now
        let event = ExternalIDRemoved(
            userId: "user-1", externalId: "anna", unlinkedAt: Timestamp(milliseconds: linkedAt + 1), author: "kim",
            reason: "wrong")
        if isLinkReadFirst { world.run(link("user-1", "anna", at: linkedAt)) }
        world.run(.unlinked(event))
        if !isLinkReadFirst { world.run(link("user-1", "anna", at: linkedAt)) }
        #expect(world.profile(mpid)?.mark == nil && customers(world, mpid) == ["anna"])
        world.run(link("user-2", "anna", at: linkedAt + 5))
        #expect(world.profile(mpid)?.mark?.userID == "user-2")
    }

    /// S142: what support pairs is told with what comes along, so that a dry run shows it.
    @Test func whatSupportPairsIsTold() throws {
        let world = world()
        let utes = try #require(world.login(["customerid": "ute", "email": "ute@x.io"])?.mpid)
        let uwes = try #require(world.login(["customerid": "uwe", "email": "uwe@x.io"], on: "d2")?.mpid)
        let linkedAt = world.now
        let named = { (profile: MPID, before: UserID?, user: UserID?, identities: [Identity]) in
            AnyHashable(
                LinkedUserChanged(
                    mpid: profile, cause: .link, previousUserId: before, userId: user, identities: identities))
        }
        let ofUwe = [Identity(.customerID, "uwe"), Identity(.email, "uwe@x.io")]
        world.run(link("user-1", "ute", at: linkedAt))
        world.run(link("user-2", "uwe", at: linkedAt))
        #expect(world.events == [named(uwes, nil, "user-2", ofUwe)])
        // Nothing changes for whoever it is already.
        world.run(link("user-2", "uwe", at: linkedAt + 1))
        #expect(world.events.isEmpty)
        world.run(
            .unlinked(
                ExternalIDRemoved(
                    userId: "user-2", externalId: "uwe", unlinkedAt: Timestamp(milliseconds: linkedAt + 2),
                    author: "kim",
                    reason: "wrong")))
        #expect(world.events == [named(uwes, "user-2", nil, ofUwe)])
        world.run(rename("user-1", "ute", to: "uwe", at: linkedAt + 3))
        let joined = ProfileJoined(
            sourceMPID: uwes, destinationMPID: utes, cause: .link, identities: [Identity(.email, "uwe@x.io")])
        #expect(world.events.contains(AnyHashable(joined)))
        #expect(world.profile(uwes)?.aliasedInto == [utes])
        // A name that nobody has any more marks whoever has the next one.
        world.run(rename("user-2", nil, to: "ulf", at: linkedAt + 4))
        let made = try #require(world.events.compactMap { $0.base as? LinkedUserChanged }.first)
        #expect(made.userId == "user-2" && ![utes, uwes].contains(made.mpid))
    }

    // MARK: Erasing whom support put right

    /// S121: a link by mistake that support took back, whether that was read before the erasure or not.
    @Test(arguments: [true, false], [nil, "bert"])
    func whoWasMarkedByMistakeIsNotErased(_ isUnlinkReadFirst: Bool, _ present: ExternalID?) throws {
        let world = world()
        let mpid = try #require(world.login(["customerid": "anna"])?.mpid)
        let linkedAt = world.now
        world.run(link("user-1", "anna", at: linkedAt))
        let unlink = SyncCommand.unlinked(
            ExternalIDRemoved(
                userId: "user-1", externalId: "anna", unlinkedAt: Timestamp(milliseconds: linkedAt + 1), author: "kim",
                reason: "wrong"))
        if isUnlinkReadFirst { world.run(unlink) }
        world.run(.forget(ForgetProfiles(userId: "user-1", externalId: present)))
        if !isUnlinkReadFirst { world.run(unlink) }
        #expect(world.profile(mpid)?.isErased == false && world.profile(mpid)?.mark == nil)
        #expect(customers(world, mpid) == ["anna"])
        world.run(link("user-2", "anna", at: linkedAt + 2))
        #expect(world.profile(mpid)?.mark?.userID == "user-2")
    }

    /// S121: the profile of a person that support renamed goes, whatever of link and rename was read.
    @Test(arguments: [0, 1, 2]) func whoWasRenamedIsErasedWhole(_ read: Int) throws {
        let world = world()
        let mpid = try #require(world.login(["customerid": "anna", "email": "a@b.io"])?.mpid)
        let other = try #require(world.login(["customerid": "bert"], on: "d3")?.mpid)
        let linkedAt = world.now
        if read > 0 { world.run(link("user-1", "anna", at: linkedAt)) }
        if read > 1 { world.run(rename("user-1", "anna", to: "annette", at: linkedAt + 1)) }
        let former = [FormerExternalID(externalId: "anna", until: Timestamp(milliseconds: linkedAt + 1))]
        // Whoever is called so later is another person.
        world.now += 1000
        if read > 1 { _ = world.login(["customerid": "anna"], on: "d2") }
        world.run(.forget(ForgetProfiles(userId: "user-1", externalId: "annette", former: former)))
        #expect(world.profile(mpid)?.isErased == true && world.profile(other)?.isErased == false)
        #expect(world.current("d2").flatMap { world.profile($0) }?.isErased != true)
    }

    /// S121: a former name that another user is marked with by now is that user's.
    @Test func aFormerNameOfAnotherUserIsTheirs() throws {
        let world = world()
        let mpid = try #require(world.login(["customerid": "anna"])?.mpid)
        world.run(link("user-2", "anna", at: world.now))
        let former = [FormerExternalID(externalId: "anna", until: Timestamp(milliseconds: world.now))]
        world.run(.forget(ForgetProfiles(userId: "user-1", externalId: "annette", former: former)))
        #expect(world.profile(mpid)?.isErased == false && world.profile(mpid)?.mark?.userID == "user-2")
    }

    // MARK: Reading

    private func read(_ query: GetProfile, in world: World) -> Answer { world.run(.getProfile(query)) }

    /// S120.
    @Test func aProfileIsToldAsItIs() throws {
        let world = world()
        let mpid = try #require(world.login(["customerid": "anna", "email": "a@b.io"])?.mpid)
        world.run(link("user-1", "anna"))
        _ = world.login(["customerid": "anna"], on: "d2")
        guard case .profile(let told) = read(GetProfile(identity: .init(type: "email", value: "a@b.io")), in: world)
        else {
            Issue.record("refused")
            return
        }
        #expect(told.mpid == mpid && told.isLoggedIn && told.userId == "user-1" && !told.isErased)
        #expect(told.identities == ["customerid": ["anna"], "email": ["a@b.io"]])
        #expect(told.devices.map(\.deviceId) == ["d2", "d1"] && told.devices.allSatisfy(\.isCurrent))
        #expect(told.deviceCount == 2 && told.firstSeen < told.lastSeen)
        #expect(read(GetProfile(mpid: mpid), in: world) == .profile(told))
    }

    /// S120: the devices come in pages, each once, and what leads on leads on in this profile only.
    @Test func manyDevicesComeInPages() throws {
        let world = world()
        let mpid = try #require(world.login(["customerid": "anna"], on: "d0")?.mpid)
        for number in 1..<250 { _ = world.login(["customerid": "anna"], on: DeviceID("d\(number)")) }
        let other = try #require(world.login(["customerid": "bert"], on: "b")?.mpid)
        var query = GetProfile(identity: .init(type: "customerid", value: "anna"))
        var seen: [ProfileResult.Device] = []
        for page in 0..<3 {
            guard case .profile(let told) = read(query, in: world) else {
                Issue.record("refused")
                return
            }
            #expect(told.devices.count == [100, 100, 50][page] && told.deviceCount == 250)
            #expect((told.next == nil) == (page == 2))
            seen += told.devices
            if let next = told.next {
                #expect(read(GetProfile(mpid: other, after: next), in: world) == .rejected(.invalidRequest))
            }
            query = GetProfile(mpid: mpid, after: told.next)
        }
        #expect(Set(seen.map(\.deviceId)).count == 250)
        #expect(seen.map(\.lastSeen) == seen.map(\.lastSeen).sorted(by: >))
    }

    /// S120: whatever a profile holds, it is told in an answer that can be read.
    @Test func aProfileIsToldInOneMessage() throws {
        let world = world()
        let mpid = try #require(world.login(["customerid": "anna"])?.mpid)
        var profile = try #require(world.profile(mpid))
        for number in 1000..<1200 {
            let value = "\(number)" + String(repeating: "\"", count: 746)
            profile.add(Identity(.other2, IdentityValue(value)), at: Int64(number))
        }
        profile.aliasedFrom = (1...5000).compactMap { MPID(Int64.max - $0) }
        let other = try #require(MPID(Int64.max))
        profile.barriers = (1000..<4000).map { number in
            let value = number < 3950 ? "\(number)" + String(repeating: "\"", count: 746) : "\(number)"
            return Barrier(Identity(.email, IdentityValue(value)), from: mpid, for: other)
        }
        world.state.apply(.profile(profile))
        for number in 100..<200 {
            _ = world.login(["customerid": "anna"], on: DeviceID("\(number)" + String(repeating: "\"", count: 252)))
        }
        guard case .profile(let told) = read(GetProfile(mpid: mpid), in: world) else {
            Issue.record("refused")
            return
        }
        #expect(told.identityCount == 201 && told.identities["other2"]?.count == 64)
        #expect(told.identities["other2"]?.last?.hasPrefix("1199") == true && told.identities["customerid"] == nil)
        #expect(told.aliasedFrom.count == 1000 && told.aliasedFromCount == 5000)
        #expect(told.barrierCount == 3000 && told.barriers.count == 50 + 15)
        #expect(told.barriers.last?.identity.value.text == "3999")
        #expect(try WireJSONEncoder().encode(told).count < 240_000)
    }

    /// S132: all are taken away, and as many are told as an answer has room for.
    @Test func veryManyBarriersGoAtOnce() throws {
        let world = world()
        let mpid = try #require(world.login(["customerid": "anna"])?.mpid)
        let other = try #require(world.login(["customerid": "bert"], on: "d2")?.mpid)
        var profile = try #require(world.profile(mpid))
        profile.barriers = (1000..<4000).map {
            Barrier(Identity(.email, IdentityValue("\($0)@b.io")), from: mpid, for: other)
        }
        var heir = try #require(world.profile(other))
        heir.barriers = profile.barriers
        for one in [profile, heir] { world.state.apply(.profile(one)) }
        let allow = AllowMerge(mpid: mpid, otherMPID: other, author: "kim", reason: "one person after all")
        guard case .allowed(let told) = world.run(.allow(allow)) else {
            Issue.record("refused")
            return
        }
        #expect(told.allowedCount == 3000 && told.allowed.count == 100)
        #expect(world.profile(mpid)?.barriers == [] && world.profile(other)?.barriers == [])
    }

    /// S120, S90, S91: a shared tablet leads to nobody who is known, and what several have to nobody for certain.
    @Test func whoIsNotCertainIsNotTold() throws {
        let world = World(.defaults(of: .userIDThenEmail))
        _ = world.login(["customerid": "anna", "email": "a@b.io", "device_application_stamp": "tablet"])
        _ = world.login(["customerid": "bert", "email": "a@b.io"], on: "d2")
        let byEmail = read(GetProfile(identity: .init(type: "email", value: "a@b.io")), in: world)
        #expect(byEmail == .rejected(.ambiguousIdentity) && holders(world) == #"{"count":2,"heldByOthers":0}"#)
        let byDevice = read(GetProfile(identity: .init(type: "device_application_stamp", value: "tablet")), in: world)
        #expect(byDevice == .rejected(.notFoundError) && holders(world) == #"{"count":0,"heldByOthers":1}"#)
        let nobody = read(GetProfile(identity: .init(type: "customerid", value: "null")), in: world)
        #expect(nobody == .rejected(.validationError))
    }
}
