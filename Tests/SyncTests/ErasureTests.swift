// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing
import WireJSON

@testable import Runtime
@testable import Sync

/// What is erased is gone, here and, by way of the commands that are forwarded, elsewhere.
@Suite struct ErasureTests {
    private func world() -> World {
        var settings = SyncSettings.worked(.conversion)
        settings.fromLinks = true
        return World(settings)
    }

    private func link(_ user: UserID, _ externalID: ExternalID) -> SyncCommand {
        .linked(
            Linked(
                installId: "i", externalId: externalID, userId: user, personCreated: true, activeInstallId: "i",
                deactivatedInstallIds: [], version: 1))
    }

    private func forwards(_ world: World) -> [AnyHashable] {
        (world.last?.forwards ?? []).map { AnyHashable($0.command) }
    }

    @Test func everythingOfAProfileGoes() throws {
        let world = world()
        world.run(link("user-1", "anna"))
        let request = SyncRequest(
            deviceId: "stamp-1", knownIdentities: ["customerid": "anna", "email": "a@mail", "ios_idfv": "1"],
            name: "Anna")
        guard case .sync(let result) = world.run(.move(.login, request)) else { return #expect(Bool(false)) }
        let mpid = result.mpid
        #expect(world.run(.erase(EraseProfile(mpid: mpid))) == .pending)
        let (profile, move) = (try #require(world.profile(mpid)), try #require(result.move) + 1000)
        #expect(profile.isErased && profile.isOrphaned && profile.identities.isEmpty)
        #expect(profile.name == nil && profile.mark == nil)
        #expect(world.state.identities.values.allSatisfy { $0 == IdentityEntry(key: $0.key) })
        #expect(world.current("stamp-1") == nil && world.state.device("demo", "stamp-1").isUnused)
        #expect(
            world.events == [
                AnyHashable(ProfileErased(mpid: mpid, cause: .erase)),
                AnyHashable(CurrentUserErased(deviceId: "stamp-1", mpid: mpid, cause: .erase, move: move)),
            ])
        #expect(
            forwards(world) == [
                AnyHashable(ForgetSessions(mpids: [mpid])),
                AnyHashable(
                    ForgetPerson(
                        userId: "user-1", externalId: "anna", erasedAt: Timestamp(milliseconds: world.now))),
            ])
        // A new person may come by the same name, and starts with nothing.
        let next = try #require(world.login(["customerid": "anna"], on: "d2"))
        #expect(next.mpid != mpid && next.rule == .created)
        #expect(world.identities(next.mpid) == [Identity(.customerID, "anna")])
        // The link service's word of before comes too late (S58).
        world.run(link("user-1", "anna"))
        #expect(world.profile(next.mpid)?.mark == nil)
    }

    @Test func theCommandThatMadeItDoesNotBringItBack() throws {
        let world = world()
        let login = SyncCommand.move(.login, SyncRequest(deviceId: "d1", knownIdentities: ["customerid": "anna"]))
        guard case .sync(let result) = world.run(login) else { return #expect(Bool(false)) }
        world.run(.erase(EraseProfile(identities: ["customerid": "anna"])))
        #expect(world.profile(result.mpid)?.isErased == true)
        world.count = 0
        #expect(world.run(login) == .rejected(.profileErased))
        world.count = 100
        #expect(try world.modify(result.mpid, "email", from: nil, to: "e") == .rejected(.notFoundError))
    }

    @Test func whoIsUnknownIsNotFoundAndWhoIsErasedIsErasedAgain() throws {
        let world = world()
        #expect(world.run(.erase(EraseProfile(identities: ["email": "nobody@mail"]))) == .rejected(.notFoundError))
        #expect(world.run(.erase(EraseProfile(identities: ["email": "null"]))) == .rejected(.validationError))
        let nobody = try #require(MPID(5))
        #expect(world.run(.erase(EraseProfile(mpid: nobody))) == .rejected(.notFoundError))
        let mpid = try #require(world.identify(["ios_idfv": "1"])?.mpid)
        #expect(world.run(.erase(EraseProfile(mpid: mpid))) == .pending)
        let first = try #require(world.last?.forwards.first)
        #expect(forwards(world) == [AnyHashable(ForgetSessions(mpids: [mpid]))])
        #expect(world.run(.erase(EraseProfile(mpid: mpid))) == .pending)
        #expect(world.events.isEmpty && forwards(world).isEmpty, "it waits along")
        world.run(.answered(ForwardAnswer(forwardID: first.id, isPending: false, part: nil)))
        #expect(
            world.last?.settlements.map { Answer($0.outcome) } == [.rejected(.serverError), .rejected(.serverError)])
        #expect(world.run(.erase(EraseProfile(mpid: mpid))) == .pending)
        #expect(world.events.isEmpty && forwards(world) == [AnyHashable(ForgetSessions(mpids: [mpid]))])
    }

    @Test(arguments: [true, false]) func theAnswerComesWhenAllHaveAnswered(_ isDone: Bool) throws {
        let world = world()
        let mpid = try #require(world.login(["customerid": "anna", "email": "a@x.io"])?.mpid)
        world.run(link("user-1", "anna"))
        let query = SyncCommand.getErasure(GetProfileErasure(mpid: mpid))
        #expect(world.run(query) == .rejected(.notFoundError))
        world.run(.erase(EraseProfile(mpid: mpid)))
        let asked = try #require(world.last)
        let command = world.context.command
        let ids = asked.forwards.map(\.id)
        #expect(ids.count == 2 && asked.forwards.allSatisfy { $0.expiry == nil })
        func answer(_ id: CommandID, _ isPending: Bool, _ part: ErasureCertificate?) -> [Settlement] {
            world.run(.answered(ForwardAnswer(forwardID: id, isPending: isPending, part: part)))
            return world.last?.settlements ?? []
        }
        let links = ErasureCertificate.part(
            .init(link: .init(persons: 1, installs: 2), user: .init(installs: 2)), users: ["user-1"])
        #expect(answer(ids[1], true, nil).isEmpty)
        #expect(answer(ids[1], false, isDone ? links : nil).isEmpty)
        #expect(answer("another", false, links).isEmpty)
        #expect(answer(ids[1], false, links).isEmpty, "the same again")
        let settled = try #require(answer(ids[0], false, .part(.init(verification: .init(sessions: 3)))).first)
        #expect(settled.command == command)
        // S97: counts of all services, zeros included.
        let done = ErasureCertificate.Counts(
            link: isDone ? .init(persons: 1, installs: 2) : .init(), user: isDone ? .init(installs: 2) : .init(),
            sync: .init(profiles: 1, identities: 2, devices: 1), verification: .init(sessions: 3))
        let gone = Gone(users: isDone ? ["user-1"] : [], mpids: [mpid], done: done, others: 0, isComplete: isDone)
        #expect(Answer(settled.outcome) == (isDone ? .certificate(gone) : .rejected(.serverError)))
        #expect(world.run(query) == .certificate(gone), "kept")
        #expect(world.state.erasures.isEmpty == isDone && answer(ids[0], false, .part()).isEmpty)
        // What is over is not asked for again; what failed is, of the same person (S55).
        #expect(world.run(.erase(EraseProfile(mpid: mpid))) == (isDone ? .certificate(gone) : .pending))
        #expect(isDone || forwards(world).contains(asked.forwards.map { AnyHashable($0.command) }[1]))
        for forward in world.last?.forwards ?? [] {
            _ = answer(forward.id, false, forward.command is ForgetPerson ? links : .part())
        }
        #expect(world.state.erasures.isEmpty)
        guard case .certificate(let whole) = world.run(query) else { return #expect(Bool(false)) }
        #expect(whole.isComplete && whole.done.link == links.done.link)
    }

    /// S55: the certificate of one is of all who went with it.
    @Test func whoWentTogetherIsForgottenTogetherAlsoTheSecondTime() throws {
        let world = world()
        world.principal = Principal(kind: .apiKey("k"), scopes: [.identitySync, .userDelete, .admin])
        let gone = try [1, 2].map { try world.given($0, [Identity(.email, "family@x")]) }
        #expect(world.run(.erase(EraseProfile(identities: ["email": "family@x"], everyHolder: true))) == .pending)
        let sessions = AnyHashable(ForgetSessions(mpids: gone))
        #expect(forwards(world) == [sessions])
        let first = try #require(world.last?.forwards.first)
        world.run(.answered(ForwardAnswer(forwardID: first.id, isPending: false, part: nil)))
        #expect(world.run(.erase(EraseProfile(mpid: gone[1]))) == .pending)
        #expect(forwards(world) == [sessions])
        let second = try #require(world.last?.forwards.first)
        world.run(.answered(ForwardAnswer(forwardID: second.id, isPending: false, part: .part())))
        for mpid in gone {
            guard case .certificate(let whole) = world.run(.getErasure(GetProfileErasure(mpid: mpid))) else {
                Issue.record("\(mpid) has no certificate")
                continue
            }
            #expect(whole.isComplete && whole.mpids == gone)
        }
    }

    /// S55, S97: an erasure that comes again while the first one waits is not over before the others have done their part.
    @Test func whoAsksAgainWaitsForTheOthersToo() throws {
        let world = world()
        let mpid = try #require(world.login(["customerid": "anna"])?.mpid)
        world.run(link("user-1", "anna"))
        #expect(world.run(.erase(EraseProfile(mpid: mpid))) == .pending)
        let first = try #require(world.last).forwards
        #expect(world.run(.erase(EraseProfile(mpid: mpid))) == .pending)
        let again = try #require(world.last)
        #expect(again.forwards.isEmpty && again.events.isEmpty)
        func answer(_ forward: Forward) -> [Answer] {
            world.run(.answered(ForwardAnswer(forwardID: forward.id, isPending: false, part: .part())))
            return (world.last?.settlements ?? []).map { Answer($0.outcome) }
        }
        #expect(answer(first[0]).isEmpty)
        let ends = answer(first[1])
        #expect(ends.count == 2 && ends[0] == ends[1])
        #expect(ends[0] == world.run(.getErasure(GetProfileErasure(mpid: mpid))))
        #expect(world.state.erasures.isEmpty)
    }

    /// As many as wait for an erasure in the link service (L40).
    @Test func notAnyNumberWaitsForOneErasure() throws {
        let world = world()
        let mpid = try #require(world.login(["customerid": "anna"])?.mpid)
        let answers = (0..<18).map { _ in world.run(.erase(EraseProfile(mpid: mpid))) }
        #expect(answers.prefix(17).allSatisfy { $0 == .pending } && answers[17] == .rejected(.throttled))
    }

    /// A value that others share is theirs, and stays.
    @Test func whatOthersHaveStays() throws {
        let world = world()
        let first = try #require(world.logout(["ios_idfv": "1"])?.mpid)
        let second = try #require(world.logout(["ios_idfv": "1"])?.mpid)
        world.run(.erase(EraseProfile(mpid: second)))
        #expect(world.identities(first) == [Identity(.iosIDFV, "1")])
        #expect(world.current() == nil && world.state.device("demo", "d1").users.map(\.mpid) == [first])
        #expect(world.identify(["ios_idfv": "1"])?.mpid == first)
    }

    // MARK: Tables

    /// After any commands: no text of anybody stands in any table that no profile has, a removed value's included, but of whom
    /// the link service has yet to forget (S55). A certificate names the user, by an id that the platform made (S97).
    @Test(arguments: SQLEngine.allCases) func tablesHaveNoTextThatNobodyHas(_ engine: SQLEngine) throws {
        let universe =
            RandomCommands.values.values.joined().map { $0.lowercased() } + RandomCommands.names.map { $0.lowercased() }
            + RandomCommands.users.map(\.text) + ["new-1"] + RandomCommands.nobodies.map { $0.lowercased() }
        var erased = 0
        try runSequences(engine == .sqlite ? 8 : 4, until: { erased > 4 }) { seed in
            let store = try SyncTestStore(engine)
            var commands = RandomCommands(seed: seed)
            for place in 0..<80 {
                let (profiles, aliases) = try store.known()
                let step = commands.next(profiles: profiles, aliases: aliases)
                let decision = try store.run([step])[0]
                commands.note(decision)
                if step.command.isErasure, case .pending = decision.outcome { erased += 1 }
                let live = Set(try store.liveTexts().map { $0.lowercased() })
                let texts = try store.rows().flatMap { row in
                    row.compactMap { value in if case .text(let text) = value { text.lowercased() } else { nil } }
                }
                let certified = Set(try store.certifiedUsers())
                for text in Set(universe).subtracting(live).subtracting(certified) {
                    try #require(
                        !texts.contains { $0.contains(text) },
                        "seed \(seed), step \(place): \(text) after \(step.command)")
                }
            }
        }
        #expect(erased > 4)
    }
}
