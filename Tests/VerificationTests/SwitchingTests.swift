// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import Testing
import WireJSON

@testable import Runtime
@testable import Verification

/// Logging in as somebody else, logging out, and answers that come late.
@Suite struct SwitchingTests {
    @Test func aSwitchTellsBothInOrder() {
        var world = World()
        let anna = world.vouched("anna")
        #expect(world.answer(anna, mpid: 1).told == ["session login verified 1"])
        let berta = world.vouched("berta")
        #expect(berta.told == ["verified k1"])
        #expect(world.session()?.mpid?.value == 1)
        let done = world.answer(berta, mpid: 2)
        #expect(done.told == ["session logout anonymous 1", "session login verified 2"])
        #expect(done.settled == ["verified k1 2"])
        // The same user again: nothing changed, nothing is told.
        let again = world.vouched("berta")
        #expect(world.answer(again, mpid: 2).told == [])
    }

    /// The same answer a second time, or one that nobody waits for.
    @Test func anAnswerCountsOnce() {
        var world = World()
        let anna = world.vouched("anna")
        _ = world.answer(anna, mpid: 1)
        let session = world.session()
        let again = world.answer(anna, mpid: 9)
        #expect(again.answer == "noted")
        #expect(again.settlements.isEmpty && again.events.isEmpty && again.changes.isEmpty)
        #expect(world.session() == session)
    }

    /// Another app's saga is not for it.
    @Test func anAnswerForAnotherApp() {
        var world = World()
        let anna = world.vouched("anna")
        let reply = Fixture.answer(to: anna.forwards[0].id, .succeeded, result: ["mpid": "1", "isLoggedIn": true])
        #expect(world.decide(reply, app: "other").settlements.isEmpty)
        #expect(world.answer(anna, mpid: 1).settled == ["verified k1 1"])
    }

    /// ```
    /// device   login A ── login B ──────────────────
    /// sync                        A answered, B answered
    /// ```
    @Test func twoLoginsInFlight() {
        var world = World()
        let anna = world.vouched("anna")
        let berta = world.vouched("berta")
        let first = world.answer(anna, mpid: 1)
        #expect(first.settled == ["verified k1 1"])
        #expect(first.told == ["session login verified 1"])
        let second = world.answer(berta, mpid: 2)
        #expect(second.settled == ["verified k1 2"])
        #expect(second.told == ["session logout anonymous 1", "session login verified 2"])
        #expect(world.session()?.mpid?.value == 2)
    }

    /// The answers in the wrong order: the later login stays, the earlier one only gets its reply.
    @Test func anOvertakenAnswerIsHarmless() {
        var world = World()
        let anna = world.vouched("anna")
        let berta = world.vouched("berta")
        #expect(world.answer(berta, mpid: 2).told == ["session login verified 2"])
        let session = world.session()
        let late = world.answer(anna, mpid: 1)
        #expect(late.settled == ["verified k1 1"])
        #expect(late.told == [])
        #expect(world.session() == session)
    }

    /// A logout that comes while a login is on its way: the sync service does both, in that order, and so it is told.
    @Test(arguments: ["logout", "anonymous"]) func aLogoutAfterALogin(_ what: String) {
        var world = World()
        let anna = world.vouched("anna")
        let next = what == "logout" ? world.logout() : world.login()
        #expect(next.answer == "pending")
        #expect(next.sent == ["logout"])
        #expect(next.told == [])
        #expect(world.answer(anna, mpid: 1).told == ["session login verified 1"])
        #expect(world.answer(next, mpid: -5).told == ["session logout anonymous 1"])
        #expect(world.session()?.state == .anonymous)
        #expect(world.session()?.hasLogin == false)
    }

    /// The answers in the wrong order: the login that the logout undid changes nothing.
    @Test func aLoginAnsweredAfterItsLogout() {
        var world = World()
        let anna = world.vouched("anna")
        let logout = world.logout()
        #expect(world.answer(logout, mpid: -5).told == ["session logout anonymous"])
        let session = world.session()
        let late = world.answer(anna, mpid: 1)
        #expect(late.settled == ["verified k1 1"])
        #expect(late.told == [])
        #expect(world.session() == session)
    }

    /// A refused login takes effect at once. The one before it has put its user on the device all the same, and the
    /// session says so: who comes next is told after them.
    @Test func aLoginAnsweredAfterARefusal() {
        var world = World()
        let anna = world.vouched("anna")
        #expect(world.login("berta", token: "x").forwards.isEmpty)
        let late = world.answer(anna, mpid: 1)
        #expect(late.settled == ["verified k1 1"])
        #expect(late.told == ["session login unverified! 1"])
        #expect(world.session()?.mpid?.value == 1)
        let carla = world.vouched("carla")
        #expect(world.answer(carla, mpid: 3).told == ["session logout anonymous 1", "session login verified 3"])
    }

    @Test func aLogoutAnsweredAfterARefusal() {
        var world = World()
        let anna = world.vouched("anna")
        _ = world.answer(anna, mpid: 1)
        let logout = world.logout()
        #expect(world.login("berta").told == ["failed AuthTokenNotProvided", "session refusal unverified!"])
        #expect(world.answer(logout, mpid: -5).told == ["session logout unverified! 1"])
        // Nobody was sent after it, so nobody is there.
        #expect(world.session()?.hasLogin == false)
        #expect(world.login().sent == ["identify"])
    }

    /// What was not done is not told: the user is there, and the next logout asks again.
    @Test(arguments: [ReasonCode.throttled, .internalError]) func aLogoutThatIsRefused(_ reason: ReasonCode) {
        var world = World()
        let anna = world.vouched("anna")
        _ = world.answer(anna, mpid: 1)
        let session = world.session()
        let refused = world.logout()
        #expect(refused.forwards.map(\.expiry) == [nil])
        #expect(world.answer(refused, .rejected, reason: reason).settled == ["rejected \(reason.rawValue)"])
        #expect(world.session()?.mpid == session?.mpid)
        #expect(world.session()?.state == .verified)
        let again = world.login()
        #expect(again.sent == ["logout"])
        #expect(world.answer(again, mpid: -5).told == ["session logout anonymous 1"])
    }

    @Test func logout() {
        var world = World()
        let anna = world.vouched("anna")
        _ = world.answer(anna, mpid: 1)
        let logout = world.logout()
        #expect(logout.answer == "pending")
        #expect(logout.told == [])
        #expect(logout.sent == ["logout"])
        let done = world.answer(logout, mpid: -5)
        #expect(done.settled == ["anonymous -5"])
        #expect(done.told == ["session logout anonymous 1"])
        // Again: nobody is there, so nothing is told.
        let again = world.logout()
        #expect(world.answer(again, mpid: -5).told == [])
    }

    /// V36.
    @Test func anAnonymousLoginLogsOut() {
        var world = World()
        let anna = world.vouched("anna")
        _ = world.answer(anna, mpid: 1)
        let anonymous = world.login(nil, "rubbish")
        #expect(anonymous.answer == "pending")
        let done = world.answer(anonymous, mpid: 5)
        #expect(done.settled == ["anonymous 5 userEmailInvalid"])
        #expect(done.told == ["session logout anonymous 1"])
        let again = world.login()
        #expect(again.answer == "pending")
        #expect(again.told == [])
        #expect(again.sent == ["identify"])
    }

    /// A refused login does not log the current user out: nobody knows who came. The next one who comes does.
    @Test func aRefusalInBetween() {
        var world = World()
        let anna = world.vouched("anna")
        _ = world.answer(anna, mpid: 1)
        #expect(world.login("berta").told == ["failed AuthTokenNotProvided", "session refusal unverified!"])
        #expect(world.login("berta").told == ["failed AuthTokenNotProvided"])
        let berta = world.vouched("berta")
        #expect(world.answer(berta, mpid: 2).told == ["session logout anonymous 1", "session login verified 2"])
        _ = world.login("anna")
        let back = world.vouched("berta")
        #expect(world.answer(back, mpid: 2).told == ["session login verified 2"])
    }

    // MARK: The sync service refuses

    @Test func whatTheSyncServiceRefuses() {
        var world = World()
        let anna = world.vouched("anna")
        _ = world.answer(anna, mpid: 1)
        let session = world.session()
        let berta = world.vouched("berta")
        let refused = world.answer(berta, .rejected, reason: .throttled)
        #expect(refused.settled == ["rejected THROTTLED"])
        #expect(refused.told == [])
        #expect(world.session()?.mpid == session?.mpid)
        #expect(world.session()?.state == .verified)
        let late = world.vouched("carla")
        #expect(world.answer(late, .expired).settled == ["expired"])
        let odd = world.vouched("carla")
        #expect(world.answer(odd, .succeeded, result: ["mpid": "0"]).settled == ["rejected INTERNAL_ERROR"])
        #expect(world.state.sagas.isEmpty)
    }

    /// A newer sync service says what this version does not know: the login ends all the same.
    @Test(arguments: [
        #"{"commandId":"ID","commandType":"t","commandDigest":"d","status":"rejected","reason":"A_LATER_REASON","message":"No."}"#,
        #"{"commandId":"ID","commandType":"t","commandDigest":"d","status":"postponed"}"#,
    ]) func wordsThatAreNotKnown(_ text: String) throws {
        var world = World()
        let anna = world.vouched("anna")
        let data = try JSONValue(parsing: Array(text.replacing("ID", with: anna.forwards[0].id.text).utf8))
        #expect(
            world.decide(try VerificationService.inputs.read("identity.reply.v1", data)).settled == [
                "rejected SERVER_ERROR"
            ])
        #expect(world.state.sagas.isEmpty)
    }

    /// An answer that is not the last one.
    @Test func aPendingAnswerIsWaitedOut() {
        var world = World()
        let anna = world.vouched("anna")
        let pending = world.answer(anna, .pending)
        #expect(pending.settlements.isEmpty)
        #expect(world.answer(anna, mpid: 1).settled == ["verified k1 1"])
    }

    @Test func devicesDoNotMeet() {
        var world = World()
        let anna = world.vouched("anna", device: "d1")
        let berta = world.vouched("berta", device: "d2")
        #expect(world.answer(berta, mpid: 2).told == ["session login verified 2"])
        #expect(world.answer(anna, mpid: 1).told == ["session login verified 1"])
        #expect(world.session("d1")?.mpid?.value == 1)
        #expect(world.session("d2")?.mpid?.value == 2)
    }
}
