// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import Testing

@testable import Link
@testable import Runtime
@testable import User

/// A user of whom what is known is kept and not used, across both services. U95.
@Suite struct RestrictionTests {
    @Test(arguments: 0..<10 as Range<UInt64>) func aRestrictedUserIsEnabledNowhere(_ seed: UInt64) throws {
        var world = World(seed: seed)
        try create("old", in: &world, number: 1)
        let user = try #require(world.links.install("demo", "old")?.userID)
        restrict(user, true, at: 1, in: &world)
        #expect(facts("old", world)?.inactiveBecause == .restricted)
        let told = UserDeactivated(installId: "old", userId: user, cause: .restricted)
        #expect(world.events.compactMap { $0 as? UserDeactivated } == [told])
        // A new install too.
        try create("new", in: &world, number: 2)
        #expect(world.final["create 2"] == .user(user.text, isLinked: true, isRemoteEnabled: false))
        #expect(["old", "new"].allSatisfy { facts($0, world)?.inactiveBecause == .restricted })
        // A code helps nowhere.
        try create("old", in: &world, number: 3)
        #expect(world.final["create 3"] == .rejected(.userAlreadyExists))
        restrict(user, false, at: 2, in: &world)
        #expect(facts("new", world)?.isRemoteEnabled == true && facts("old", world)?.inactiveBecause == .superseded)
        #expect(world.events.compactMap { $0 as? UserActivated } == [UserActivated(installId: "new", userId: user)])
    }

    /// U75, U95.
    @Test(arguments: [true, false]) func anExpiredTokenOpensNothingOfARestrictedUser(_ isRestricted: Bool) {
        let because: InactiveBecause = isRestricted ? .restricted : .superseded
        let facts = LinkFacts(
            version: 1, userID: Fixture.userID, isLinked: true, isActive: false, isUsersFirst: true,
            inactiveBecause: because, status: .enabled)
        let state = UserState(installs: [Fixture.present(Account(Fixture.registration, facts) ?? Fixture.account())])
        let context = DecisionContext(
            command: Fixture.key("c"), app: Fixture.app,
            principal: Principal(kind: .expiredInstall("life"), scopes: []), now: Fixture.start)
        let decision = UserDecider(state, context).decide(.get(GetUser(installId: "i1")))
        let isRefused =
            if case .rejected(let rejection) = decision.outcome {
                rejection.reason == .userTokenNotAllowed
            } else {
                false
            }
        #expect(isRefused == isRestricted)
    }

    /// What each answer and event of the link service says of it (U76).
    @Test func theLinkServiceSaysSo() {
        let linked = Linked(
            installId: "i", externalId: "anna", userId: "u", personCreated: false, activeInstallId: nil,
            deactivatedInstallIds: [], version: 1)
        #expect(LinkFacts(linked).inactiveBecause == .restricted && !LinkFacts(linked).isRemoteEnabled)
        let answer = LinkResult(
            userId: "u", installId: "i", isActive: false, isRestricted: true, personCreated: false, version: 1)
        #expect(LinkFacts(answer).inactiveBecause == .restricted)
    }

    private func facts(_ install: InstallID, _ world: World) -> LinkFacts? {
        world.users.install("demo", install)?.facts
    }

    private func create(_ install: InstallID, in world: inout World, number: Int) throws {
        world.send(.requestAuthCode(RequestAuthCode(externalId: "anna")), CommandID("code \(number)"), Fixture.app)
        world.drain()
        guard case .code(let code) = try #require(world.final[CommandID("code \(number)")]) else { return }
        let command = CreateUser(installId: install, device: Fixture.phone, authCode: code)
        world.send(.create(command), CommandID("create \(number)"), Fixture.app)
        world.drain()
    }

    private func restrict(_ user: UserID, _ isRestricted: Bool, at moment: Int64, in world: inout World) {
        let event = UserRestrictionChanged(
            userId: user, mpid: .max, isRestricted: isRestricted, changedAt: Timestamp(milliseconds: moment))
        world.send(.restricted(event), CommandID("restricted \(moment)"), Fixture.app)
        world.drain()
    }
}
