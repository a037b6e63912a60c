// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing

@testable import Apps
@testable import Runtime
@testable import Sync

/// S125: whom an erasure erased is erased in a replay, though another command makes the profile there.
@Suite struct KeptErasedTests: ErasingTests {
    private func move(
        _ operation: SyncCommand.Operation, _ identities: [String: String], on device: DeviceID
    ) -> SyncCommand {
        .move(operation, SyncRequest(deviceId: device, knownIdentities: identities.mapValues(Optional.some)))
    }

    private func login(_ identities: [String: String], on device: DeviceID = "d1") -> SyncCommand {
        move(.login, identities, on: device)
    }

    private func mpid(_ answer: Answer) throws -> MPID {
        guard case .sync(let result) = answer else { throw StorageError(kind: .invalid, message: "\(answer)") }
        return result.mpid
    }

    /// The values of those who are there.
    static func values(_ world: World) -> Set<String> {
        Set(world.state.profiles.values.flatMap(\.identities).map(\.value.text))
    }

    /// Two commands that make one profile, of which the second was decided first.
    private func lagging(
        _ first: SyncCommand, _ second: SyncCommand, in world: World
    ) throws -> (log: ReplayLog, mpid: MPID) {
        var log = ReplayLog()
        let (first, second) = (log.append(first), log.append(second))
        let mpid = try mpid(log.live(second, in: world))
        log.live(first, in: world)
        #expect(world.state.profiles.count == 1)
        return (log, mpid)
    }

    private func replay(_ log: ReplayLog, _ strategy: SyncStrategy = .conversion) -> World {
        let world = world(strategy)
        log.replay(in: world)
        return world
    }

    // MARK: Who goes

    @Test func aLinkedPerson() throws {
        let live = world()
        var (log, mpid) = try lagging(
            link("user-1", "alice", at: World.start), login(["customerid": "alice", "email": "a@x"]), in: live)
        #expect(log.live(.erase(EraseProfile(mpid: mpid)), in: live) == .pending)
        #expect(persons(live).map(\.userId) == ["user-1"] && log.records.count == 4)
        let replay = replay(log)
        #expect(replay.profile(mpid) == nil && Self.values(replay).isEmpty)
        #expect(gone(replay).count == 1)
        // As the erasure would have: the sessions too, and the link service's persons by its own log.
        #expect(
            replay.last?.forwards.map { AnyHashable($0.command) } == [
                AnyHashable(ForgetSessions(mpids: gone(replay).sorted()))
            ])
        #expect(replay.last?.events.count { $0 is ProfileErased } == 1)
        #expect(replay.last?.due.isEmpty == true)
        let other = try #require(gone(replay).first)
        guard case .certificate(let certificate) = replay.run(.getErasure(GetProfileErasure(mpid: other))) else {
            return #expect(Bool(false))
        }
        #expect(certificate.mpids == [other] && certificate.done.sync?.profiles == 1)
    }

    /// A link of before the erasure that is read last of all: the link service tells it again, say, and the first one is
    /// removed from the log.
    @Test func aLateLinkOfTheErasedMarksNobody() throws {
        let live = world()
        let linked = link("user-1", "alice", at: World.start)
        var (log, mpid) = try lagging(linked, login(["customerid": "alice"]), in: live)
        log.live(.erase(EraseProfile(mpid: mpid)), in: live)
        for forward in log.forwards {
            let users: [UserID] = forward.command is ForgetPerson ? ["user-1"] : []
            let answer = ForwardAnswer(forwardID: forward.id, isPending: false, part: .part(users: users))
            log.live(.answered(answer), in: live)
        }
        let replay = replay(log)
        replay.run(linked)
        #expect(Self.values(replay).isEmpty)
    }

    /// Who was linked since the erasure has a profile of their own at once, as in S115: the one that was made once.
    @Test func whoWasLinkedSinceStays() throws {
        let live = world()
        var (log, mpid) = try lagging(
            link("user-1", "alice", at: World.start), login(["customerid": "alice"]), in: live)
        let erasure = log.append(.erase(EraseProfile(mpid: mpid)))
        let next = log.append(link("user-2", "alice", at: World.start + 2500))
        log.live(erasure, in: live)
        log.live(.answered(ForwardAnswer(forwardID: log.forwards[1].id, isPending: false, part: .part())), in: live)
        log.live(next, in: live)
        let heir = try #require(live.state.profiles.values.first { $0.mark?.userID == "user-2" })
        let replay = replay(log)
        #expect(replay.profile(heir.mpid)?.mark?.userID == "user-2")
        #expect(replay.profile(heir.mpid)?.identities == [Identity(.customerID, "alice")])
        #expect(gone(replay).count == 1)
    }

    @Test func whoHasAnEMailOnly() throws {
        for identities in [["email": "a@x"], ["email": "a@x", "device_application_stamp": "s"]] {
            let live = world()
            var (log, mpid) = try lagging(login(identities), login(identities, on: "d2"), in: live)
            log.live(.erase(EraseProfile(mpid: mpid)), in: live)
            let replay = replay(log)
            #expect(replay.profile(mpid) == nil && Self.values(replay).isEmpty && gone(replay).count == 1)
        }
    }

    /// The login makes an anonymous profile known, and in the replay it finds the link's.
    @Test func whoWasAnonymousBefore() throws {
        let live = world()
        var log = ReplayLog()
        let mpid = try mpid(log.live(move(.identify, ["device_application_stamp": "s"], on: "d1"), in: live))
        let linked = log.append(link("user-1", "alice", at: World.start))
        let login = log.append(login(["customerid": "alice", "device_application_stamp": "s"]))
        #expect(try self.mpid(log.live(login, in: live)) == mpid)
        log.live(linked, in: live)
        log.live(.erase(EraseProfile(mpid: mpid)), in: live)
        #expect(Self.values(live).isEmpty)
        let replay = replay(log)
        #expect(Self.values(replay).isEmpty && gone(replay).count == 2 && gone(replay).contains(mpid))
    }

    @Test func whoIsAnonymous() throws {
        let live = world()
        let (one, other) = (
            move(.identify, ["ios_idfv": "v"], on: "d1"), move(.identify, ["ios_idfv": "v"], on: "d2")
        )
        var (log, mpid) = try lagging(one, other, in: live)
        log.live(.erase(EraseProfile(mpid: mpid)), in: live)
        let replay = replay(log)
        #expect(replay.profile(mpid) == nil && Self.values(replay).isEmpty && gone(replay).count == 1)
    }

    /// The alias names an MPID that is not there in the replay.
    @Test func whoWasAliased() throws {
        let live = world(.link)
        let (one, other) = (login(["customerid": "alice"]), login(["customerid": "alice"], on: "d2"))
        var (log, mpid) = try lagging(one, other, in: live)
        let visitor = try self.mpid(log.live(move(.identify, ["ios_idfv": "v"], on: "d9"), in: live))
        let alias = AliasUsers(
            sourceMPID: visitor, destinationMPID: mpid, startUnixtimeMs: live.now - 2000, endUnixtimeMs: live.now - 1000
        )
        guard case .alias = log.live(.alias(alias), in: live) else { return #expect(Bool(false)) }
        log.live(.erase(EraseProfile(identities: ["customerid": "alice"])), in: live)
        #expect(gone(live) == [mpid, visitor])
        let replay = replay(log, .link)
        #expect(replay.profile(mpid) == nil && Self.values(replay).isEmpty)
        #expect(gone(replay).count == 2 && gone(replay).contains(visitor))
    }

    /// A profile got by its MPID what the erasure names.
    @Test func whoGotAnIdentityByMPID() throws {
        let live = world()
        var (log, mpid) = try lagging(
            login(["customerid": "alice"]), login(["customerid": "alice"], on: "d2"), in: live)
        let change = ModifyIdentities.Change(identityType: "email", newValue: "late@x")
        log.live(.modify(ModifyIdentities(mpid: mpid, changes: [change])), in: live)
        #expect(log.live(.erase(EraseProfile(identities: ["email": "late@x"])), in: live) == .pending)
        let replay = replay(log)
        #expect(replay.profile(mpid) == nil && Self.values(replay).isEmpty && gone(replay).count == 1)
    }

    /// The link service's word by the user's name leaves an e-mail of another MPID.
    @Test func whomTheLinkServiceForgets() throws {
        let live = world(.link)
        var log = ReplayLog()
        let mpid = try mpid(log.live(login(["customerid": "alice"]), in: live))
        let (one, other) = (login(["email": "b@x"], on: "d3"), login(["email": "b@x"], on: "d2"))
        let (first, second) = (log.append(one), log.append(other))
        let source = try self.mpid(log.live(second, in: live))
        log.live(first, in: live)
        let alias = AliasUsers(
            sourceMPID: source, destinationMPID: mpid, startUnixtimeMs: live.now - 2000, endUnixtimeMs: live.now - 1000)
        guard case .alias = log.live(.alias(alias), in: live) else { return #expect(Bool(false)) }
        log.live(.forget(ForgetProfiles(externalId: "alice")), in: live)
        #expect(gone(live) == [mpid, source])
        let replay = replay(log, .link)
        #expect(Self.values(replay).isEmpty && gone(replay).count == 2)
    }

    /// An e-mail that several may have: when all of them are gone.
    @Test func whoSharedAnEMailWithNobody() throws {
        for isShared in [false, true] {
            let live = world(.userIDThenEmail)
            live.settings = .defaults(of: .userIDThenEmail)
            var (log, mpid) = try lagging(login(["email": "a@x"]), login(["email": "A@x"], on: "d2"), in: live)
            if isShared { log.live(login(["customerid": "bob", "email": "a@x"], on: "d3"), in: live) }
            let holders = live.state.profiles.count
            log.live(.erase(EraseProfile(mpid: mpid)), in: live)
            let replay = World(live.settings)
            replay.principal = live.principal
            log.replay(in: replay)
            // Who has it beside others is not certain: nobody is erased for it.
            #expect(Self.values(replay).isEmpty == (holders == 1), "\(holders)")
        }
    }

    // MARK: Who stays

    @Test func whoCameLaterStays() throws {
        let live = world()
        var (log, mpid) = try lagging(
            login(["customerid": "alice", "email": "a@x"]), login(["customerid": "alice"], on: "d2"), in: live)
        let erasure = log.append(.erase(EraseProfile(mpid: mpid)))
        // Logged before the service has decided the erasure, and decided behind it.
        let early = log.append(login(["customerid": "alicia", "email": "a@x"], on: "d3"))
        log.live(erasure, in: live)
        log.live(early, in: live)
        let back = log.append(login(["customerid": "alice"], on: "d4"))
        log.live(back, in: live)
        let replay = replay(log)
        #expect(Self.values(live) == ["alice", "alicia", "a@x"] && Self.values(replay).isSuperset(of: ["alice"]))
        #expect(replay.search(["customerid": "alice"]) != .rejected(.notFoundError))
        #expect(replay.search(["customerid": "alicia"]) != .rejected(.notFoundError))
    }

    /// What was moved by MPID is where it was. Whoever has a higher-ranked name of their own is somebody else.
    @Test func whoHadALowerRankedOneBeforeStays() throws {
        let live = world()
        var (log, mpid) = try lagging(
            login(["customerid": "bob"]), login(["customerid": "bob"], on: "d2"), in: live)
        log.live(login(["customerid": "anna", "email": "a@x"], on: "d3"), in: live)
        let change = ModifyIdentities.Change(identityType: "email", newValue: "a@x")
        log.live(.modify(ModifyIdentities(mpid: mpid, changes: [change])), in: live)
        log.live(.erase(EraseProfile(mpid: mpid)), in: live)
        #expect(Self.values(live) == ["anna"])
        let replay = replay(log)
        #expect(Self.values(replay) == ["anna", "a@x"])
    }

    /// A device's next anonymous user, and one that other devices have too.
    @Test func anotherAnonymousUserStays() throws {
        for device in ["d1", "d3"] as [DeviceID] {
            let live = world()
            let one = move(.identify, ["ios_idfv": "v"], on: "d1")
            var (log, mpid) = try lagging(one, move(.identify, ["ios_idfv": "v"], on: "d2"), in: live)
            let erasure = log.append(.erase(EraseProfile(mpid: mpid)))
            let next = log.append(move(.identify, ["ios_idfv": device == "d1" ? "w" : "v"], on: device))
            log.live(erasure, in: live)
            log.live(next, in: live)
            #expect(Self.values(live) == [device == "d1" ? "w" : "v"])
            let replay = replay(log)
            #expect(Self.values(replay).isSuperset(of: Self.values(live)))
        }
    }

    /// In the order in which it was decided, nobody is left to be found.
    @Test func itChangesNothingWhereTheErasureFound() throws {
        let world = world()
        var log = ReplayLog()
        let mpid = try mpid(log.live(login(["customerid": "alice"]), in: world))
        log.live(.erase(EraseProfile(mpid: mpid)), in: world)
        log.live(login(["customerid": "alice"], on: "d2"), in: world)
        let kept = try #require(log.records.first { if case .keepErased = $0.command { true } else { false } })
        for _ in 0..<2 {
            #expect(world.run(kept.command) == .noted)
            #expect(world.last?.changes.isEmpty == true && world.last?.events.isEmpty == true)
        }
        #expect(Self.values(world) == ["alice"])
    }

    // MARK: What is told

    private func kept(_ world: World) throws -> [KeepErased] {
        try #require(world.last).due.compactMap { $0.command as? KeepErased }
    }

    @Test func theLogSaysNothing() throws {
        let world = world()
        let mpid = try #require(world.login(["customerid": "alice", "email": "Alice@x"])?.mpid)
        world.run(.erase(EraseProfile(mpid: mpid)))
        let kept = try #require(try kept(world).first)
        #expect(kept.mpid == mpid && kept.erasedAt.milliseconds == world.now)
        let closed = try #require(kept.whom.flatMap { [UInt8](hex: $0) })
        #expect(!String(decoding: closed, as: UTF8.self).contains("customerid"))
        let traces = try #require(kept.traces(world.context))
        #expect(traces.map { $0.logins.map(\.exact) } == [[TextDigest(of: "alice"), TextDigest(of: "Alice@x")]])
        // Another store's salt.
        world.count += 1
        var context = world.context
        context.secrets = DerivedSecrets(.none, salt: [UInt8](repeating: 1, count: 32))
        let decision = SyncDecider(world.state, context, aliasDelay: 0).decide(.keepErased(kept))
        #expect(Answer(decision.outcome) == .rejected(.validationError) && decision.changes.isEmpty)
        // Of another app.
        context = world.context
        context.app = AppSettings(id: "other", sync: world.settings)
        #expect(kept.traces(context) == nil)
    }

    /// By the time of the replay the app may ignore the case of its values, or no longer.
    @Test(arguments: [[IdentityType.email], []]) func caseMayCountOtherwise(_ folded: [IdentityType]) throws {
        let live = world()
        live.settings.foldedIdentities = folded.isEmpty ? [.email] : []
        var (log, mpid) = try lagging(login(["email": "Alice@x"]), login(["email": "Alice@x"], on: "d2"), in: live)
        log.live(login(["email": "alice@y"], on: "d3"), in: live)
        log.live(.erase(EraseProfile(mpid: mpid)), in: live)
        let replay = world()
        replay.settings.foldedIdentities = Set(folded)
        log.replay(in: replay)
        #expect(Self.values(replay) == ["alice@y"])
    }

    /// A record has its limit: of a profile the highest-ranked are told, and what is of one profile is in one record.
    @Test func veryManyIdentities() throws {
        let world = world()
        world.settings.uniqueIdentities = [.customerID]
        world.principal.scopes.insert(.admin)
        let counts = [10, 100, 300, 600]
        let mpids = try counts.map { count in
            let emails = (0..<count).map { Identity(.email, IdentityValue("\($0)@\(count)")) }
            return try world.given(
                Int64(count), emails + [Identity(.email, "all@x"), Identity(.customerID, IdentityValue("\(count)"))])
        }
        #expect(erase(["email": "all@x"], everyHolder: true, in: world) == .pending)
        #expect(gone(world) == Set(mpids))
        let told = try kept(world)
        #expect(told.allSatisfy { $0.mpid == mpids[0] && $0.whom?.utf8.count ?? 0 < 200_000 })
        #expect(Set(try #require(world.last).due.map(\.id)).count == 2)
        let traces = told.compactMap { $0.traces(world.context) }
        #expect(traces.map { $0.map(\.count) } == [[12, 102, 302], [KeepErased.most]])
        #expect(traces.joined().allSatisfy { $0.logins.first?.type == .customerID })
    }

    /// On real databases, in batches and one by one.
    @Test(arguments: SQLEngine.allCases, [1, 3, 100]) func theStoreFindsThem(_ engine: SQLEngine, _ size: Int) throws {
        let live = world()
        var (log, mpid) = try lagging(
            link("user-1", "alice", at: World.start), login(["customerid": "alice", "email": "a@x"]), in: live)
        log.live(.erase(EraseProfile(mpid: mpid)), in: live)
        let visitors = [
            log.append(move(.identify, ["ios_idfv": "v"], on: "d3")),
            log.append(move(.identify, ["ios_idfv": "v"], on: "d4")),
        ]
        let visitor = try self.mpid(log.live(visitors[1], in: live))
        log.live(visitors[0], in: live)
        log.live(.erase(EraseProfile(mpid: visitor)), in: live)
        log.live(login(["customerid": "bob"], on: "d5"), in: live)
        let store = try SyncTestStore(engine)
        let world = world()
        var steps = log.records.map { record in
            (world.count, world.now) = (record.number, World.start + 1000 * Int64(record.number))
            return RandomCommands.Step(command: record.command, context: world.context)
        }
        while !steps.isEmpty {
            _ = try store.run(Array(steps.prefix(size)))
            steps.removeFirst(min(size, steps.count))
        }
        #expect(try Set(store.liveTexts()) == ["bob"])
        #expect(try store.count("identities") == 1)
        #expect(try store.count("certificates") == 2)
    }
}
