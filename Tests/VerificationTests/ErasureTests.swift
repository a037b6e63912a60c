// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing
import WireJSON

@testable import Runtime
@testable import Verification

/// An erased user leaves no session, and no answer that is late brings one back.
@Suite struct ErasureTests {
    @Test func aSessionGoes() {
        var world = World()
        for (device, user, mpid) in [("d", "anna", 1), ("e", "anna", 1), ("f", "berta", 2)] as [(String, String, Int64)]
        {
            let login = world.vouched(user, device: DeviceID(device))
            _ = world.answer(login, mpid: mpid)
        }
        let erasure = world.forget(1, 9)
        #expect(erasure.answer == "removed 2")
        #expect(erasure.told == ["session ended erased anonymous 1", "session ended erased anonymous 1", "erased 1,9"])
        #expect(world.session("d") == nil && world.session("e") == nil)
        #expect(world.session("f")?.mpid?.value == 2)
        #expect(world.getSession("d").answer == "anonymous")
        // Again, and of somebody who was never here.
        #expect(world.forget(1).answer == "removed 0")
        #expect(world.forget(1).told == ["erased 1"])
        #expect(world.forget().told == [])
        // Whoever comes back is somebody new.
        let again = world.vouched("anna")
        #expect(world.answer(again, mpid: 5).told == ["session login verified 5"])
    }

    /// V53, V54. The sync service had found the user before it erased the profile; its answer is read afterwards.
    @Test func anAnswerThatIsLateBringsNobodyBack() {
        var world = World(Fixture.settings(.off))
        let anna = world.login("anna", "anna@b.io")
        #expect(world.forget(1).settled == [])
        let late = world.answer(anna, mpid: 1)
        #expect(late.settled == ["rejected PROFILE_ERASED"] && late.told == [])
        #expect(world.session()?.mpid == nil)
        #expect(world.state.sagas.isEmpty)
        // The device may have somebody in the sync service, so the next anonymous login says that they go.
        #expect(world.login().sent == ["logout"])
    }

    /// V53. Whoever the sync service finds after the erasure is somebody new: the login is theirs.
    @Test func aLoginThatTheErasureOvertookIsOfSomebodyNew() {
        var world = World()
        let before = world.vouched("anna")
        _ = world.answer(before, mpid: 1)
        let after = world.vouched("anna")
        #expect(world.forget(1).told == ["session ended erased anonymous 1", "erased 1"])
        let answer = world.answer(after, mpid: 2)
        #expect(answer.settled == ["verified k1 2"] && answer.told == ["session login verified 2"])
        #expect(world.session()?.hasLogin == true)
    }

    /// A refusal that came after the erased user stays one for who arrives before it.
    @Test func aRefusalStands() {
        var world = World()
        let anna = world.vouched("anna")
        _ = world.answer(anna, mpid: 1)
        let berta = world.vouched("berta")
        _ = world.login("carla")
        #expect(world.forget(1).told == ["session ended erased unverified! 1", "erased 1"])
        #expect(world.answer(berta, mpid: 2).told == ["session login unverified! 2"])
    }

    /// Another user's login is on its way on the same device: it arrives, after what came before it.
    @Test func anotherLoginOnItsWay() {
        var world = World()
        let anna = world.vouched("anna")
        _ = world.answer(anna, mpid: 1)
        let berta = world.vouched("berta")
        let carla = world.vouched("carla")
        #expect(world.forget(1).told == ["session ended erased anonymous 1", "erased 1"])
        #expect(world.session()?.mpid == nil)
        #expect(world.answer(carla, mpid: 3).told == ["session login verified 3"])
        #expect(world.answer(berta, mpid: 2).told == [])
        #expect(world.session()?.mpid?.value == 3)
    }

    /// Another app's user with this MPID stays.
    @Test func anotherApp() {
        var world = World(Fixture.settings(.off))
        let anna = world.login("anna")
        let erasure = world.decide(
            .forget(ForgetSessions(mpids: [MPID(1)].compactMap(\.self))), app: "other")
        #expect(erasure.answer == "removed 0" && erasure.settlements.isEmpty)
        #expect(world.answer(anna, mpid: 1).told == ["session login unchecked 1"])
        #expect(
            world.decide(
                .forget(ForgetSessions(mpids: [MPID(1)].compactMap(\.self))), app: "other"
            )
            .answer == "removed 0")
        #expect(world.session()?.mpid?.value == 1)
    }

    private func step(_ command: VerificationCommand, _ id: String) -> RandomCommands.Step {
        RandomCommands.Step(command: command, context: Fixture.context(Fixture.settings(.off), id: CommandID(id)))
    }

    private static let erasure = VerificationCommand.forget(ForgetSessions(mpids: [MPID(1)].compactMap(\.self)))

    private static func login(_ device: DeviceID) -> VerificationCommand {
        .login(
            VerificationLogin(
                deviceId: device, userId: "anna-of-the-tables", userEmail: "Anna@Tables.io", userName: "Anna T."))
    }

    /// Through the tables: what was there goes, what is late brings it not back, and no column ever held an identifier.
    @Test(arguments: SQLEngine.allCases) func theTables(_ engine: SQLEngine) throws {
        let store = try VerificationTestStore(engine)
        func clearText() throws -> [String] {
            try store.rows().joined().compactMap { value in
                guard case .text(let text) = value else { return nil }
                return text.lowercased().contains("anna") || text.lowercased().contains("tables") ? text : nil
            }
        }
        let there = try store.run([step(Self.login("d"), "c1")])
        _ = try store.run([
            step(
                Fixture.answer(to: there[0].forwards[0].id, .succeeded, result: ["mpid": "1", "isLoggedIn": true]), "c2"
            )
        ])
        let onItsWay = try store.run([step(Self.login("e"), "c3")])
        #expect(try clearText() == [])
        let erased = try store.run([step(Self.erasure, "c4")])
        #expect(erased[0].answer == "removed 1" && erased[0].settled.isEmpty)
        let late = try store.run([
            step(
                Fixture.answer(to: onItsWay[0].forwards[0].id, .succeeded, result: ["mpid": "1", "isLoggedIn": true]),
                "c5")
        ])
        #expect(late[0].settled == ["rejected PROFILE_ERASED"])
        let rows = try store.database.transaction { transaction in
            try transaction.query("SELECT COUNT(*) FROM sessions WHERE mpid IS NOT NULL").map(\.values)
                + transaction.query("SELECT COUNT(*) FROM login_sagas").map(\.values)
        }
        #expect(rows == [[.integer(0)], [.integer(0)]])
        // A login that is answered with the erased user, whoever asked for it, is refused for ever.
        let again = try store.run([step(Self.login("f"), "c6")])
        let refused = try store.run([
            step(
                Fixture.answer(to: again[0].forwards[0].id, .succeeded, result: ["mpid": "1", "isLoggedIn": true]), "c7"
            )
        ])
        #expect(refused[0].settled == ["rejected PROFILE_ERASED"])
    }

    /// One replica decides the login's answer while another one erases the user: they meet in one row, whichever of them
    /// is first, and the later one decides again.
    @Test(arguments: [true, false]) func twoReplicas(_ erasureIsFirst: Bool) throws {
        let store = try VerificationTestStore(.postgresql)
        let other = try store.another()
        let login = try store.run([
            step(.login(VerificationLogin(deviceId: "d", userId: "somebody")), "c1")
        ])
        let answer = step(
            Fixture.answer(to: login[0].forwards[0].id, .succeeded, result: ["mpid": "1", "isLoggedIn": true]), "c2")
        let erasure = step(Self.erasure, "c3")
        let (first, second) = erasureIsFirst ? (erasure, answer) : (answer, erasure)
        let service = VerificationService(counterShard: 0)
        let conflict = #expect(throws: StorageError.self) {
            try other.transaction { transaction in
                var state = try service.load([(second.command, second.context)], in: transaction)
                let decision = service.decide(second.command, state, second.context)
                decision.changes.forEach { state.apply($0) }
                // What the other replica does in the meantime.
                _ = try store.run([first])
                try service.save(state, in: transaction)
            }
        }
        #expect(conflict?.kind == .conflict)
        let decided = try store.run([second])
        if erasureIsFirst {
            #expect(decided[0].settled == ["rejected PROFILE_ERASED"])
        } else {
            #expect(decided[0].answer == "removed 1")
        }
        let left = try store.database.transaction { try $0.query("SELECT COUNT(*) FROM sessions WHERE mpid = 1") }
        #expect(left.map(\.values) == [[.integer(0)]])
    }
}
