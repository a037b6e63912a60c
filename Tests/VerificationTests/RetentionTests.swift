// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import Testing

@testable import Runtime
@testable import Verification

/// Sessions of devices that nobody uses (docs/verification.md "Retention"). V200.
@Suite struct RetentionTests {
    private static let day: Int64 = 86_400_000

    private func expire(
        _ world: inout World, _ device: DeviceID = "d", after days: Int64, lastSeen: Int64? = nil,
        isBrokers: Bool = true
    ) -> VerificationDecider.Decision {
        var context = Fixture.context(
            world.settings, id: "expire", now: Timestamp(milliseconds: world.now.milliseconds + days * Self.day))
        context.app = AppSettings(
            id: "support", verification: world.settings, retention: RetentionSettings(session: 30 * Self.day))
        context.logged = Moment(milliseconds: context.now.milliseconds, isBrokers: isBrokers)
        let seen = lastSeen ?? world.session(device)?.quietSince ?? 0
        let command = ExpireSession(deviceId: device, lastSeen: Timestamp(milliseconds: seen))
        let decision = VerificationDecider(world.state, context).decide(.expire(command))
        decision.changes.forEach { world.state.apply($0) }
        return decision
    }

    @Test(arguments: [(29, true, false), (30, true, true), (43, false, false), (44, false, true)])
    func anAnonymousSessionGoes(_ days: Int64, _ isBrokers: Bool, _ goes: Bool) {
        var world = World()
        let login = world.login()
        _ = world.answer(login, mpid: 7, move: 1, isKnown: false)
        let decision = expire(&world, after: days, isBrokers: isBrokers)
        #expect((world.session() == nil) == goes)
        let told = decision.events.compactMap { $0 as? SessionExpired }
        #expect(told.map(\.deviceId) == (goes ? ["d"] : []) && decision.events.count == told.count)
    }

    /// A refusal is forgotten too, and that is told.
    @Test func aRefusedSessionGoes() {
        var world = World()
        _ = world.login("anna", token: "wrong")
        #expect(world.session()?.mayFileIssues == false)
        let decision = expire(&world, after: 31)
        #expect(world.session() == nil)
        let told = decision.events.compactMap { $0 as? SessionChanged }
        #expect(told.map(\.reason) == [.sessionForgotten] && told.map(\.state) == [.anonymous])
    }

    @Test(arguments: ["logged in", "a login on its way", "known elsewhere", "seen since"])
    func whoIsNeededStays(_ why: String) {
        var world = World()
        let login = world.vouched("anna")
        if why != "a login on its way" { _ = world.answer(login, mpid: 7, move: 1) }
        if why == "known elsewhere" || why == "seen since" {
            let logout = world.logout()
            _ = world.answer(logout, mpid: 8, move: 2, isKnown: false)
        }
        if why == "known elsewhere" { _ = world.moved(3, to: 9) }
        let seen = why == "seen since" ? world.now.milliseconds - 1 : nil
        let before = world.session()
        #expect(expire(&world, after: 60, lastSeen: seen).changes.isEmpty)
        #expect(world.session() == before)
    }
}
