// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing
import WireJSON

@testable import Apps
@testable import Runtime
@testable import Sync

/// What tests of erasures have in common.
protocol ErasingTests {}

extension ErasingTests {
    func world(_ strategy: SyncStrategy = .conversion, _ mode: VerificationSettings.Mode = .off) -> World {
        var settings = SyncSettings.worked(strategy)
        settings.fromLinks = true
        let world = World(settings)
        world.verification = VerificationSettings(mode: mode)
        world.principal = Principal(kind: .apiKey("k"), scopes: [.identitySync, .identityVouch, .userDelete])
        return world
    }

    func link(_ user: UserID, _ externalID: ExternalID, at moment: Int64? = nil) -> SyncCommand {
        .linked(
            Linked(
                installId: "i", externalId: externalID, userId: user, personCreated: true, activeInstallId: "i",
                deactivatedInstallIds: [], version: 1, linkedAt: moment.map(Timestamp.init(milliseconds:))))
    }

    func erase(
        _ identities: [String: String], everyHolder: Bool? = nil, persons: EraseProfile.Persons? = nil, in world: World
    ) -> Answer {
        world.run(.erase(EraseProfile(identities: identities, everyHolder: everyHolder, persons: persons)))
    }

    func persons(_ world: World) -> [ForgetPerson] {
        (world.last?.forwards ?? []).compactMap { $0.command as? ForgetPerson }
    }

    func holders(_ world: World) -> String? {
        guard case .rejected(let rejection) = world.last?.outcome else { return nil }
        return rejection.result.map { String(decoding: $0.bytes, as: UTF8.self) }
    }

    func gone(_ world: World) -> Set<MPID> {
        Set(world.state.profiles.values.filter(\.isErased).map(\.mpid))
    }
}

/// Whom an erasure is about, and whom it is not: there is no way back.
@Suite struct ErasedProfilesTests: ErasingTests {
    // MARK: Who is meant

    /// S90, S92: a shared tablet. What a search by its id does not find, its id does not erase.
    @Test func aDevicesIdentityErasesNobodyWhoIsKnown() throws {
        let world = world()
        world.run(link("user-1", "alice"))
        let alice = world.login(["customerid": "alice", "device_application_stamp": "s1"])?.mpid
        world.run(link("user-2", "bob"))
        let bob = world.login(["customerid": "bob", "device_application_stamp": "s1"])?.mpid
        #expect(alice != bob && world.profile(alice)?.mark != nil)
        #expect(world.search(["device_application_stamp": "s1"]) == .rejected(.notFoundError))
        #expect(erase(["device_application_stamp": "s1"], in: world) == .rejected(.notFoundError))
        #expect(holders(world) == #"{"count":0,"heldByOthers":2}"#)
        // Whoever is anonymous is found, and those who are not stay.
        let visitor = try #require(world.logout(["device_application_stamp": "s1"])?.mpid)
        #expect(erase(["device_application_stamp": "s1"], in: world) == .pending)
        #expect(gone(world) == [visitor] && persons(world).isEmpty)
    }

    /// S91: a shared mailbox.
    @Test func anEmailOfSeveralErasesNobodyForCertain() throws {
        let world = World(.defaults(of: .userIDThenEmail))
        world.principal = Principal(kind: .apiKey("k"), scopes: [.identitySync, .userDelete])
        let family = try ["mum", "dad", "kid"].map { (name: String) -> MPID in
            try #require(world.login(["customerid": name, "email": "family@x.io"], on: DeviceID("d-\(name)"))?.mpid)
        }
        #expect(erase(["email": "family@x.io"], in: world) == .rejected(.ambiguousIdentity))
        #expect(holders(world) == #"{"count":3,"heldByOthers":0}"#)
        #expect(erase(["email": "family@x.io"], everyHolder: true, in: world) == .rejected(.insufficientScope))
        #expect(gone(world).isEmpty)
        // With the user id it is certain.
        #expect(erase(["email": "family@x.io", "customerid": "kid"], in: world) == .pending)
        #expect(gone(world) == [family[2]])
        world.principal.scopes.insert(.admin)
        #expect(erase(["email": "family@x.io"], everyHolder: true, in: world) == .pending)
        #expect(gone(world) == Set(family))
    }

    /// S91.
    @Test func identitiesThatLeadToDifferentProfilesEraseNobody() throws {
        let world = world()
        let anna = try #require(world.login(["customerid": "anna"], on: "d1")?.mpid)
        let visitor = try #require(world.identify(["ios_idfv": "1"], on: "d2")?.mpid)
        let both = ["customerid": "anna", "ios_idfv": "1"]
        #expect(erase(both, in: world) == .rejected(.ambiguousIdentity))
        #expect(holders(world) == #"{"count":2,"heldByOthers":0}"#)
        // An identity that finds nobody is in nobody's way.
        #expect(erase(["customerid": "anna", "email": "never@seen"], in: world) == .pending)
        #expect(gone(world) == [anna])
        #expect(erase(both, in: world) == .pending)
        #expect(gone(world) == [anna, visitor])
    }

    /// S9, S90: a higher-ranked identity says that it is somebody else.
    @Test func somebodysEmailIsNotTheirErasure() throws {
        let world = world()
        let victim = world.login(["customerid": "victim", "email": "v@x.io"])?.mpid
        #expect(erase(["customerid": "mallory", "email": "v@x.io"], in: world) == .rejected(.notFoundError))
        #expect(holders(world) == #"{"count":0,"heldByOthers":1}"#)
        #expect(world.profile(victim)?.isErased == false)
    }

    /// S7: that a search needs an immutable identity keeps strangers from trying values; who may erase is none.
    @Test func anAnonymousProfileIsFoundUnderImmutableIdentitiesToo() throws {
        let world = World(SyncSettings())
        let visitor = try #require(world.identify(["ios_idfv": "1"])?.mpid)
        #expect(world.search(["ios_idfv": "1"]) == .rejected(.notFoundError))
        #expect(erase(["ios_idfv": "1"], in: world) == .pending)
        #expect(gone(world) == [visitor])
    }

    // MARK: Persons

    /// S93: what a device said in an app that does not verify ends nobody in the link service.
    @Test func aCustomerIDOfADeviceReachesNoPerson() {
        let world = world()
        world.settings.fromLinks = false
        _ = world.login(["customerid": "victim", "email": "mallory@evil.io"])
        #expect(erase(["email": "mallory@evil.io"], in: world) == .pending)
        #expect(persons(world).isEmpty)
    }

    /// S93.
    @Test func whichPersonsGo() throws {
        func asked(
            _ mode: VerificationSettings.Mode, _ persons: EraseProfile.Persons?
        ) throws -> [ForgetPerson] {
            let world = world(.conversion, mode)
            _ = world.login(["customerid": "anna"])
            world.run(link("user-1", "anna"))
            #expect(erase(["customerid": "anna"], persons: persons, in: world) == .pending)
            #expect(world.state.erasedUsers.isEmpty, "the link service says who is gone")
            let persons = self.persons(world)
            #expect(persons.allSatisfy { $0.erasedAt?.milliseconds == world.now })
            return persons.map { ForgetPerson(userId: $0.userId, externalId: $0.externalId) }
        }
        let marked = [ForgetPerson(userId: "user-1", externalId: "anna")]
        #expect(try asked(.off, nil) == marked && asked(.report, nil) == marked && asked(.enforce, .marked) == marked)
        #expect(try asked(.enforce, nil) == marked && asked(.off, .byCustomerId) == marked)
        #expect(try asked(.off, EraseProfile.Persons.none) == [] && asked(.enforce, EraseProfile.Persons.none) == [])
    }

    /// S94: the mark goes with the customer id that it is about, and whoever was left behind is nobody's.
    @Test func aMarkGoesWithItsCustomerID() throws {
        let world = world()
        world.run(link("user-anna", "anna"))
        let left = try #require(world.login(["customerid": "anna", "email": "left@x.io"])?.mpid)
        #expect(world.profile(left)?.mark?.userID == "user-anna")
        let taker = try #require(world.login(["customerid": "other"], on: "d2")?.mpid)
        try world.modify(taker, "customerid", from: "other", to: "anna")
        #expect(world.profile(left)?.mark == nil)
        #expect(erase(["email": "left@x.io"], in: world) == .pending)
        #expect(persons(world).isEmpty && gone(world) == [left])
    }

    // MARK: Asked by the link service

    /// S95: the external id was free at once, and whoever has it since is another person.
    @Test func forgettingSparesWhoCameLater() throws {
        let world = world()
        let before = try #require(world.login(["customerid": "anna"], on: "d1")?.mpid)
        world.run(link("user-1", "anna"))
        let erasedAt = Timestamp(milliseconds: world.now)
        try world.modify(before, "customerid", from: nil, to: nil)
        let later = try #require(world.login(["customerid": "anna"], on: "d2")?.mpid)
        let forget = ForgetProfiles(userId: "user-1", externalId: "anna", erasedAt: erasedAt)
        #expect(world.run(.forget(forget)) == .pending)
        #expect(gone(world).isEmpty, "the mark of the first is gone with the customer id, and the second came later")
        #expect(world.profile(later)?.isErased == false)
        #expect(!world.state.erasedUsers.contains(LinkedUser(app: "demo", id: "user-2")))
        // And the user's own goes.
        world.run(link("user-2", "anna"))
        let own = ForgetProfiles(userId: "user-2", externalId: "anna", erasedAt: Timestamp(milliseconds: world.now))
        #expect(world.run(.forget(own)) == .pending)
        #expect(gone(world) == [later])
    }

    /// S95: links and erasures are told on different topics. Whose link is read before the erasure of whom they follow gets
    /// nothing of theirs, whether a link had marked that one or not, and a profile of their own at once (S115).
    @Test(arguments: [true, false]) func aLinkThatIsReadBeforeTheErasureKeepsNobody(_ wasMarked: Bool) throws {
        let world = world()
        let old = try #require(world.login(["customerid": "anna"])?.mpid)
        if wasMarked { world.run(link("user-1", "anna")) }
        let erasedAt = Timestamp(milliseconds: world.now)
        world.now += 5
        world.run(link("user-2", "anna"))
        world.run(link("user-2", "anna"))
        world.run(.forget(ForgetProfiles(userId: "user-1", externalId: "anna", erasedAt: erasedAt)))
        #expect(gone(world) == [old])
        let new = try #require(world.state.profiles.values.first { $0.mark?.userID == "user-2" }?.mpid)
        #expect(new != old && world.login(["customerid": "anna"])?.mpid == new)
        world.run(link("user-2", "anna"))
        world.run(.forget(ForgetProfiles(userId: "user-1", externalId: "anna", erasedAt: erasedAt)))
        #expect(world.profile(new)?.isErased == false)
    }

    /// S115: who is linked after the erasure was asked for is another person, though the link is read first.
    @Test(arguments: [VerificationSettings.Mode.off, .enforce])
    func anErasureThatIsReadLateSparesWhoWasLinkedSince(_ mode: VerificationSettings.Mode) throws {
        for byMPID in [true, false] {
            let world = world(.conversion, mode)
            let old = try #require(world.login(["customerid": "anna"])?.mpid)
            world.now += 1
            world.run(link("user-2", "anna"))
            world.lateness = 1001
            let command =
                byMPID ? EraseProfile(mpid: old) : EraseProfile(identities: ["customerid": "anna"])
            #expect(world.run(.erase(command)) == .pending)
            #expect(gone(world) == [old] && persons(world).allSatisfy { $0.userId == nil })
            #expect(!world.state.erasedUsers.contains(LinkedUser(app: "demo", id: "user-2")))
            world.lateness = 0
            let new = try #require(world.login(["customerid": "anna"])?.mpid)
            #expect(world.profile(new)?.mark?.userID == "user-2")
            // From now on an erasure means the user.
            #expect(world.run(.erase(EraseProfile(mpid: new))) == .pending)
            #expect(persons(world).map(\.userId) == ["user-2"])
        }
    }

    /// S115: asked for again, late too, it means nobody who came since; by the MPID it means whoever has it.
    @Test func anErasureThatIsRepeatedLateMeansNobodyWhoCameSince() throws {
        let world = world()
        let old = try #require(world.login(["customerid": "anna"])?.mpid)
        let moment = world.now
        world.run(link("user-2", "anna", at: moment + 1))
        func late(_ command: EraseProfile) -> Answer {
            world.lateness = world.now + 1000 - moment
            defer { world.lateness = 0 }
            return world.run(.erase(command))
        }
        let named = EraseProfile(identities: ["customerid": "anna"])
        #expect(late(named) == .pending)
        #expect(late(named) == .rejected(.notFoundError) && gone(world) == [old])
        #expect(holders(world) == #"{"count":0,"heldByOthers":1}"#)
        let new = try #require(world.login(["customerid": "anna"])?.mpid)
        #expect(late(EraseProfile(mpid: new)) == .pending)
        #expect(gone(world) == [old, new] && persons(world).allSatisfy { $0.userId == nil })
    }

    /// The same with a store, where an erased profile may have the MPID that the link would give.
    @Test(arguments: SQLEngine.allCases) func aLaterUserIsErasedLateAgainAndAgain(_ engine: SQLEngine) throws {
        let store = try SyncTestStore(engine)
        let world = world()
        func run(_ command: SyncCommand) throws -> SyncDecider.Decision {
            world.count += 1
            return try store.run([RandomCommands.Step(command: command, context: world.context)])[0]
        }
        func marked() throws -> [MPID] {
            try store.database.transaction { transaction in
                try transaction.query("SELECT mpid FROM profiles WHERE user_id = 'user-1'")
                    .map { try #require(MPID($0.integer(0))) }
            }
        }
        _ = try run(link("user-1", "anna", at: world.now + 1))
        world.lateness = 1000
        var seen: Set<MPID> = []
        for _ in 0..<4 {
            let mpids = try marked()
            #expect(mpids.count == 1 && seen.isDisjoint(with: mpids))
            seen.formUnion(mpids)
            #expect(Answer(try run(.erase(EraseProfile(mpid: mpids[0]))).outcome) == .pending)
        }
    }

    /// S95: a link of whom the erasure means was read late, and has marked the profile of whoever logged in since.
    @Test func aLateLinkEndsNobodyWhoLoggedInSince() throws {
        let world = world(.conversion, .enforce)
        let (linkedAt, erasedAt) = (world.now, Timestamp(milliseconds: world.now))
        let new = try #require(world.login(["customerid": "anna"])?.mpid)
        world.run(link("user-1", "anna", at: linkedAt))
        #expect(world.profile(new)?.mark?.userID == "user-1")
        world.run(.forget(ForgetProfiles(userId: "user-1", externalId: "anna", erasedAt: erasedAt)))
        #expect(gone(world).isEmpty && world.profile(new)?.mark == nil)
        #expect(world.login(["customerid": "anna"])?.mpid == new)
    }

    /// S115: since when the person is linked counts, not when an install of theirs was; and the last link counts, in whatever
    /// order they are read.
    @Test func theLastLinkCounts() throws {
        let world = world()
        let mpid = try #require(world.login(["customerid": "anna"])?.mpid)
        let moment = world.now
        world.run(link("user-2", "anna", at: moment + 1))
        world.run(link("user-1", "anna", at: moment - 1))
        #expect(world.profile(mpid)?.mark?.userID == "user-2")
        world.lateness = world.now + 1000 - moment
        #expect(world.run(.erase(EraseProfile(mpid: mpid))) == .pending)
        #expect(persons(world).isEmpty)
        let other = self.world()
        let old = try #require(other.login(["customerid": "anna"])?.mpid)
        other.run(link("user-1", "anna", at: moment - 1))
        other.lateness = other.now + 1000 - moment
        #expect(other.run(.erase(EraseProfile(mpid: old))) == .pending)
        #expect(persons(other).map(\.userId) == ["user-1"])
    }

    /// S115: in whatever order the link and the erasure are read, the later user's profile is the same one.
    @Test func theLaterUsersProfileHasTheLinksMPID() throws {
        func made(linkFirst: Bool) throws -> MPID {
            let world = world()
            _ = try #require(world.login(["customerid": "anna"]))
            let erasedAt = Timestamp(milliseconds: world.now)
            let commands = [link("user-2", "anna"), .forget(ForgetProfiles(externalId: "anna", erasedAt: erasedAt))]
            for (place, command) in (linkFirst ? commands : commands.reversed()).enumerated() {
                // The id of each is its own.
                world.count = linkFirst == (place == 0) ? 10 : 20
                world.run(command)
            }
            return try #require(world.state.profiles.values.first { $0.mark?.userID == "user-2" }?.mpid)
        }
        #expect(try made(linkFirst: true) == made(linkFirst: false))
    }

    /// S116: the link service may answer with somebody whom a link has marked here since, as another customer.
    @Test func whoWasLinkedInTheMeantimeGoes() throws {
        let world = world(.conversion, .enforce)
        let old = try #require(world.login(["customerid": "anna"])?.mpid)
        #expect(world.run(.erase(EraseProfile(mpid: old))) == .pending)
        let forwards = try #require(world.last).forwards.map(\.id)
        world.run(link("user-1", "anna's", at: world.now - 5000))
        let made = try #require(world.state.profiles.values.first { $0.mark?.userID == "user-1" }?.mpid)
        func answer(_ id: CommandID, _ users: [UserID] = []) {
            world.run(.answered(ForwardAnswer(forwardID: id, isPending: false, part: .part(users: users))))
        }
        answer(forwards[1], ["user-1"])
        #expect(gone(world) == [old, made])
        let sessions = try #require(world.last?.forwards.first)
        #expect((sessions.command as? ForgetSessions)?.mpids == [made] && world.last?.settlements.isEmpty == true)
        answer(forwards[0])
        #expect(world.last?.settlements.isEmpty == true)
        answer(sessions.id)
        guard case .succeeded(let certificate as ErasureCertificate)? = world.last?.settlements.first?.outcome else {
            Issue.record("not settled")
            return
        }
        #expect(certificate.subject.mpids == [old, made].sorted() && certificate.done.sync?.profiles == 2)
    }

    /// S86: a device that nobody is left on is forgotten, and whoever comes next counts as later.
    @Test(arguments: [1, 3]) func movesGoOnWhereAnErasureForgotTheDevice(_ logins: Int) throws {
        let world = world()
        func login(_ name: String) throws -> SyncResult {
            // All in one millisecond.
            world.now = World.start
            return try #require(world.login(["customerid": name]))
        }
        var mpid = try login("anna").mpid
        for _ in 1..<logins { mpid = try login("anna").mpid }
        world.now = World.start
        #expect(world.run(.erase(EraseProfile(mpid: mpid))) == .pending)
        let erased = world.events.compactMap { ($0.base as? CurrentUserErased)?.move }
        #expect(try #require(login("berta").move) > #require(erased.first))
    }

    /// S95: each customer id counts for itself, where a profile may have several.
    @Test func whoWasKnownByAnotherCustomerIDStays() throws {
        let world = world()
        world.settings.uniqueIdentities = [.email]
        let berta = try #require(world.login(["customerid": "berta"])?.mpid)
        let erasedAt = Timestamp(milliseconds: world.now)
        world.now += 1
        try world.modify(berta, "customerid", from: nil, to: "anna")
        world.run(.forget(ForgetProfiles(userId: "user-1", externalId: "anna", erasedAt: erasedAt)))
        #expect(gone(world).isEmpty)
        // What it got since does not make the other id younger.
        world.run(.forget(ForgetProfiles(userId: "user-2", externalId: "berta", erasedAt: erasedAt)))
        #expect(gone(world) == [berta])
    }

    /// S95, S100: a login that is decided late is still of before.
    @Test func whatCountsIsWhenTheCommandWasGiven() throws {
        for (lateness, isErased) in [(1001, true), (1000, false)] as [(Int64, Bool)] {
            let world = world()
            let erasedAt = Timestamp(milliseconds: world.now)
            world.lateness = lateness
            world.now += 1
            let made = try #require(world.login(["customerid": "anna"])?.mpid)
            world.lateness = 0
            world.run(.forget(ForgetProfiles(userId: "user-1", externalId: "anna", erasedAt: erasedAt)))
            #expect(world.profile(made)?.isErased == isErased, "\(lateness)")
        }
    }

    /// S95.
    @Test func forgettingFindsTheMarkedAndTheUnmarked() throws {
        let world = world()
        let known = try #require(world.login(["customerid": "anna", "email": "a@x.io"])?.mpid)
        #expect(world.run(.forget(ForgetProfiles(userId: "user-1", externalId: "anna"))) == .pending)
        #expect(gone(world) == [known])
        #expect(
            world.last?.forwards.map { AnyHashable($0.command) } == [
                AnyHashable(ForgetSessions(mpids: [known]))
            ], "the link service does its part itself")
        // Nobody there is no error.
        #expect(world.run(.forget(ForgetProfiles(externalId: "stranger"))) == .pending)
        #expect(
            world.last?.forwards.map { AnyHashable($0.command) } == [
                AnyHashable(ForgetSessions(mpids: []))
            ])
    }

    /// S95, S100: since when a profile has the customer id counts, and not since when there is a profile.
    @Test(arguments: [["ios_idfv": "1"], ["email": "a@x.io"]])
    func whoGetsTheCustomerIDLaterStays(_ before: [String: String]) throws {
        let world = world()
        let profile = try #require(world.login(before)?.mpid)
        let erasedAt = Timestamp(milliseconds: world.now)
        world.now += 1
        var now = before
        now["customerid"] = "anna"
        #expect(world.login(now)?.mpid == profile)
        world.run(.forget(ForgetProfiles(userId: "user-1", externalId: "anna", erasedAt: erasedAt)))
        #expect(gone(world).isEmpty)
        world.now += 1
        let later = Timestamp(milliseconds: world.now)
        world.run(.forget(ForgetProfiles(userId: "user-1", externalId: "anna", erasedAt: later)))
        #expect(gone(world) == [profile])
    }
}
