// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import Testing
import WireJSON

@testable import Runtime
@testable import Verification

/// The sync service moves devices for others too, and tells (docs/verification.md "The device's user").
@Suite struct FollowingTests {
    private func signedIn(_ mpid: Int64 = 1, move: Int64 = 10) -> World {
        var world = World()
        let anna = world.vouched("anna")
        _ = world.answer(anna, mpid: mpid, move: move)
        return world
    }

    /// V72, V76: an identity logout, an identify that finds somebody else, and a backend's login of somebody else.
    @Test(arguments: [DeviceMove.User.anonymous, .known]) func aSessionEndsWithItsUser(_ user: DeviceMove.User) {
        var world = signedIn()
        let moved = world.moved(11, to: 2, user)
        #expect(moved.told == ["session ended userChanged anonymous 1"])
        #expect(moved.forwards.isEmpty && moved.settlements.isEmpty)
        #expect(world.getSession().answer == (user == .known ? "anonymous login" : "anonymous"))
        #expect(world.moved(12, to: 3, user).told == [])
        // Whoever the device has now is logged out; where nobody is, its anonymous user is asked for.
        #expect(world.login().sent == [user == .known ? "logout" : "identify"])
    }

    /// V77, also when it was heard while a login was on its way.
    @Test(arguments: [(DeviceMove.User.anonymous, Int64(1)), (.known, 2), (.known, 1)], [true, false])
    func aSessionEndsThatSupportTookApart(_ move: (user: DeviceMove.User, mpid: Int64), _ isBusy: Bool) {
        var world = signedIn()
        let berta = isBusy ? world.vouched("berta") : nil
        let moved = world.moved(12, to: move.mpid, move.user, isDetached: true)
        let told = berta.map { world.answer($0, .rejected, reason: .throttled).told } ?? moved.told
        #expect(told == ["session ended detached anonymous 1"] && moved.told == (isBusy ? [] : told))
        #expect(DeviceMove(event(.detach)).isDetached && !DeviceMove(event(.login)).isDetached)
    }

    private func event(_ cause: SyncCause) -> CurrentUserChanged {
        CurrentUserChanged(
            deviceId: "d", previousMPID: nil, mpid: .max, cause: cause, rule: .detached, isLoggedIn: true,
            isEphemeral: false, move: 1)
    }

    /// V72: a modify took the user's last login identity.
    @Test func aSessionEndsWhenItsUserIsAnonymous() {
        var world = signedIn()
        #expect(world.moved(11, to: 1, .anonymous).told == ["session ended userChanged anonymous 1"])
    }

    /// V71.
    @Test func whatIsLowerChangesNothing() {
        var world = signedIn()
        #expect(world.moved(10, to: 2).changes.isEmpty)
        #expect(world.moved(9, to: 2).told == [] && world.session()?.mpid?.value == 1)
        #expect(world.moved(12, to: 1).told == [] && world.session()?.move == 12)
        #expect(world.moved(11, to: 2).told == [])
        // Nor does an answer of before: it goes to its sender.
        let anna = world.vouched("anna")
        let berta = world.vouched("berta")
        #expect(
            world.answer(berta, mpid: 2, move: 20).told == ["session logout anonymous 1", "session login verified 2"])
        _ = world.moved(21, to: 2)
        let late = world.answer(anna, mpid: 1, move: 19)
        #expect(late.settled == ["verified k1 1"] && late.told == [])
        #expect(world.session()?.mpid?.value == 2 && world.session()?.move == 21)
    }

    /// V71.
    @Test func aDeviceWithoutASessionStaysUnknown() {
        var world = World()
        let moved = world.moved(11, to: 2)
        #expect(moved.told == [] && moved.changes.isEmpty && world.session() == nil && world.state.sessions.isEmpty)
    }

    /// A clock that is ahead of the sync service's counts from zero.
    @Test func theLongestWayIsMeasured() {
        var state = SessionState()
        for (number, lag) in [(Int64(1_000), Int64(0)), (990, 10), (995, 10)] {
            state.hear(of: DeviceMove(number: number, mpid: .max, user: .known), at: Timestamp(milliseconds: 1_000))
            #expect(state.lag == lag)
        }
        var ahead = SessionState()
        ahead.hear(of: DeviceMove(number: 1_001, mpid: .max, user: .known), at: Timestamp(milliseconds: 1_000))
        #expect(ahead.lag == 0)
    }

    /// V73. The event of a login comes before its answer.
    @Test func aSwitchIsToldAsOne() {
        var world = signedIn()
        let berta = world.vouched("berta")
        #expect(world.moved(11, to: 2).told == [])
        #expect(world.session()?.mpid?.value == 1, "as it was, until it is answered")
        let done = world.answer(berta, mpid: 2, move: 11)
        #expect(done.told == ["session logout anonymous 1", "session login verified 2"])
        #expect(world.session()?.heard == nil && world.session()?.hasLogin == true)
    }

    /// V73. Somebody else moved the device after the login that is on its way.
    @Test func whatCameAfterTheLastAnswerCounts() {
        var world = World()
        let anna = world.vouched("anna")
        _ = world.moved(12, to: 5, .anonymous)
        let done = world.answer(anna, mpid: 1, move: 11)
        #expect(done.settled == ["verified k1 1"])
        #expect(done.told == ["session login verified 1", "session ended userChanged anonymous 1"])
        #expect(world.session()?.hasLogin == false)
        // Also when the login is refused there.
        var other = signedIn()
        let berta = other.vouched("berta")
        _ = other.moved(11, to: 5, .anonymous)
        let refused = other.answer(berta, .rejected, reason: .throttled)
        #expect(refused.told == ["session ended userChanged anonymous 1"])
    }

    /// V45: the command that ends it comes with the event.
    @Test func anErasedUsersSessionEndsByTheErasure() {
        var world = signedIn()
        #expect(world.moved(11, to: 1, .erased).told == [])
        #expect(world.forget(1).told == ["session ended erased anonymous 1", "erased 1"])
        var other = signedIn()
        #expect(other.moved(11, to: 9, .erased).told == ["session ended userChanged anonymous 1"])
    }

    /// V38, V72.
    @Test func aRefusalStands() {
        var world = signedIn()
        _ = world.login("berta", token: "x")
        #expect(world.moved(11, to: 2).told == ["session ended userChanged unverified! 1"])
        #expect(world.getSession().answer == "unverified! login")
    }

    /// V74.
    @Test func whoIsNotKnownHasNotLoggedIn() {
        var world = World(Fixture.settings(.off))
        let mail = world.login(nil, "anna@x.io")
        #expect(world.answer(mail, mpid: 7, move: 10, isKnown: false).settled == ["anonymous 7"])
        #expect(world.getSession().answer == "anonymous")
    }

    /// V75.
    @Test func theAnonymousUserIsAskedFor() {
        var world = World()
        let nobody = world.login()
        #expect(nobody.answer == "pending" && nobody.sent == ["identify"])
        #expect(nobody.told == ["session login anonymous"])
        let done = world.answer(nobody, mpid: 5, move: 10, isKnown: false)
        #expect(done.settled == ["anonymous 5 noIdentifier"] && done.told == [])
        #expect(world.getSession().answer == "anonymous")
        // The sync service has somebody there of whom nothing was known here.
        let again = world.login()
        #expect(world.answer(again, mpid: 6, move: 11).settled == ["anonymous noIdentifier"])
        #expect(world.login().sent == ["logout"])
    }
}
