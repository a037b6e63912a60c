// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import Testing

@testable import Runtime
@testable import User

/// Unlinked users who do not come back (docs/user.md "Retention").
@Suite struct RetentionTests {
    private static let day: Int64 = 86_400_000
    private static let app = AppSettings(
        id: "demo", sdk: SDKSettings(appSecret: AppSecret(Fixture.secret), keysOpenInstalls: true),
        retention: RetentionSettings(unlinked: 500 * day))

    private func state(_ seenAt: Int64?, isLinked: Bool = false) -> UserState {
        var account = Fixture.account(isLinked: isLinked)
        account.registration.seenAt = seenAt
        return UserState(installs: [Fixture.present(account)])
    }

    private func seenAt(_ state: UserState) -> Int64? {
        guard case .present(let account)? = state.install("demo", "i1")?.state else { return nil }
        return account.registration.seenAt
    }

    private func decide(
        _ command: UserCommand, _ state: UserState, _ app: AppSettings = app, days: Int64 = 0
    ) -> (UserDecider.Decision, UserState) {
        let now = Timestamp(milliseconds: Fixture.start.milliseconds + days * Self.day)
        var context = Fixture.context(app, now: now)
        context.logged = Moment(milliseconds: now.milliseconds, isBrokers: true)
        let decision = UserDecider(state, context).decide(command)
        var after = state
        decision.changes.forEach { after.apply($0) }
        return (decision, after)
    }

    private func expire(_ seenAt: Int64?) -> UserCommand {
        .expire(
            ExpireUser(
                installId: "i1", userId: Fixture.userID, lastSeen: seenAt.map(Timestamp.init(milliseconds:))))
    }

    /// U200: noted once a day, and only of unlinked users where it counts.
    @Test func comingIsNotedOnceADay() {
        let start = Fixture.start.milliseconds
        let get = UserCommand.get(GetUser(installId: "i1"))
        #expect(seenAt(decide(get, state(nil)).1) == start)
        #expect(decide(get, state(start), days: 0).0.changes.isEmpty)
        #expect(seenAt(decide(get, state(start), days: 1).1) == start + Self.day)
        #expect(decide(get, state(nil, isLinked: true)).0.changes.isEmpty)
        #expect(decide(get, state(nil), Fixture.app).0.changes.isEmpty)
    }

    /// U200: who was there before it was noted counts from then.
    @Test func whoWasNeverNotedIsNotedFirst() {
        let (decision, after) = decide(expire(nil), state(nil), days: 900)
        #expect(decision.forwards.isEmpty && seenAt(after) == Fixture.start.milliseconds + 900 * Self.day)
    }

    /// U200, U201.
    @Test(arguments: [(500, false), (501, true)]) func theLinkServiceIsAskedWhenTheDaysAreOver(
        _ days: Int64, _ isOver: Bool
    ) {
        let start = Fixture.start.milliseconds
        let (decision, _) = decide(expire(start), state(start), days: days)
        let asked = [ExpirePerson(installId: "i1", userId: Fixture.userID)]
        #expect(decision.forwards.compactMap { $0.command as? ExpirePerson } == (isOver ? asked : []))
        // Who came meanwhile, is linked by now, or whose app names no days any more.
        #expect(decide(expire(start - 1), state(start), days: days).0.forwards.isEmpty)
        #expect(decide(expire(start), state(start, isLinked: true), days: days).0.forwards.isEmpty)
        #expect(decide(expire(start), state(start), Fixture.app, days: days).0.forwards.isEmpty)
    }

    /// U201: what the link service says then.
    @Test func theInstallIsForgottenWhenNobodyIsOnIt() {
        let start = Fixture.start.milliseconds
        let event = InstallDetached(installId: "i1", userId: Fixture.userID, version: 2)
        let (decision, after) = decide(.detached(event), state(start))
        #expect(after.install("demo", "i1") == nil)
        #expect(decision.events.map { AnyHashable($0) } == [AnyHashable(UserReset(installId: "i1", userId: nil))])
    }
}
