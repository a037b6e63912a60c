// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Link
@testable import Runtime

/// A person of whom what is known is kept and not used (docs/link.md "Restriction").
@Suite struct RestrictionTests {
    private static let anna = Fixture.userID
    private static let (one, other) = (MPID.max, MPID(7) ?? .max)

    /// Anna, on a phone and on a tablet that waits for it.
    private final class House {
        var state = LinkState(
            installs: [
                Fixture.install("phone", of: anna), Fixture.install("tablet", .tablet, of: anna, .standby),
            ], persons: [Fixture.person(anna, "anna")])
        var count = 0
        var told: [InstallStatusChanged] = []
        var events: [any EventMessage] = []

        @discardableResult func run(_ command: LinkCommand) -> Answer {
            count += 1
            let context = Fixture.context(
                id: CommandID("c\(count)"), moment: Moment(milliseconds: Int64(count) * 1000),
                now: Int64(count) * 1000)
            let decision = Fixture.decide(command, state, context)
            state = state.after(decision)
            events = decision.events
            told = decision.events.compactMap { $0 as? InstallStatusChanged }
            return decision.answer
        }

        @discardableResult func restrict(_ isRestricted: Bool, _ mpid: MPID = one, at moment: Int64) -> Answer {
            run(
                .restricted(
                    UserRestrictionChanged(
                        userId: anna, mpid: mpid, isRestricted: isRestricted,
                        changedAt: Timestamp(milliseconds: moment))))
        }

        func install(_ id: InstallID) -> InstallResult? {
            guard case .install(let result) = run(.query(QueryInstall(installId: id))) else { return nil }
            return result
        }
    }

    /// L82, L83.
    @Test func nobodyIsActiveMeanwhile() throws {
        let house = House()
        house.restrict(true, at: 1)
        #expect(house.told.map(\.installId) == ["phone", "tablet"] && house.told.allSatisfy { !$0.isActive })
        #expect(
            house.told.allSatisfy { $0.cause == .restricted && $0.inactiveBecause == .restricted && $0.version == 1 })
        #expect(house.install("phone")?.inactiveBecause == .restricted)
        guard case .user(let read) = house.run(.getUser(GetLinkedUser(userId: Self.anna))) else {
            Issue.record("Anna is not found")
            return
        }
        #expect(read.installs.allSatisfy { !$0.isActive && $0.inactiveBecause == .restricted && $0.status == .enabled })
        house.restrict(true, at: 2)
        #expect(house.told.isEmpty)
        house.restrict(false, at: 3)
        #expect(house.told.map(\.isActive) == [true, false] && house.told.allSatisfy { $0.cause == .unrestricted })
        #expect(house.told.map(\.inactiveBecause) == [nil, .waitsForPhone])
    }

    /// L82: a new install, a repeated request and whoever support chooses too. L83: whoever was elected is active then.
    @Test func electionsGoOnUnderneath() throws {
        let house = House()
        house.restrict(true, at: 1)
        #expect(
            house.run(Fixture.request("phone", "anna"))
                == .link(
                    LinkResult(
                        userId: Self.anna, installId: "phone", isActive: false, isRestricted: true,
                        personCreated: false, version: 1)))
        house.run(
            .registerInstall(RegisterInstall(installId: "new", device: Fixture.phone, user: .none)))
        guard case .link(let linked) = house.run(Fixture.request("new", "anna")) else {
            Issue.record("not linked")
            return
        }
        #expect(!linked.isActive && linked.isRestricted == true)
        #expect((house.events.first as? Linked)?.activeInstallId == nil)
        #expect(house.told.map(\.installId) == ["phone"] && house.told.first?.inactiveBecause == .restricted)
        house.restrict(false, at: 2)
        #expect(house.told.filter(\.isActive).map(\.installId) == ["new"])
        #expect(house.install("phone")?.inactiveBecause == .superseded)
        house.restrict(true, at: 3)
        house.run(.makeActive(MakeInstallActive(installId: "tablet", author: "kim", reason: "r")))
        #expect(house.told.allSatisfy { !$0.isActive })
        house.restrict(false, at: 4)
        #expect(house.told.filter(\.isActive).map(\.installId) == ["tablet"])
    }

    /// L83, L25.
    @Test(arguments: [true, false]) func thePlatformsWordStands(_ isEnabledAgain: Bool) {
        let house = House()
        func set(_ status: InstallStatus) {
            house.run(.setInstallStatus(SetInstallStatus(installId: "phone", status: status)))
        }
        set(.disabled)
        house.restrict(true, at: 1)
        #expect(house.install("phone")?.inactiveBecause == .restricted)
        if isEnabledAgain { set(.enabled) }
        #expect(house.install("phone")?.isActive == false)
        house.restrict(false, at: 2)
        #expect(house.install("phone")?.isActive == isEnabledAgain)
        #expect(house.install("phone")?.inactiveBecause == (isEnabledAgain ? nil : .disabled))
    }

    /// L82: of one profile the latest counts, and one of several is enough.
    @Test func itIsReadInAnyOrder() {
        let house = House()
        house.restrict(false, at: 5)
        house.restrict(true, at: 4)
        #expect(house.told.isEmpty && house.install("phone")?.isActive == true)
        house.restrict(true, Self.other, at: 1)
        house.restrict(true, at: 6)
        house.restrict(false, Self.other, at: 2)
        #expect(house.told.isEmpty && house.install("phone")?.isActive == false)
        house.restrict(false, at: 7)
        #expect(house.install("phone")?.isActive == true)
        for number in 10..<40 { house.restrict(false, MPID(Int64(number)) ?? .max, at: 9) }
        #expect(house.state.person(userID: Self.anna)?.restrictions.count == 16)
    }

    /// L84, and another app's user.
    @Test func whoIsErasedIsNot() {
        let house = House()
        house.restrict(true, at: 1)
        house.run(.eraseUser(EraseUser(userId: Self.anna)))
        #expect(house.state.person(userID: Self.anna)?.restrictions.isEmpty == true)
        house.restrict(true, at: 2)
        #expect(house.state.person(userID: Self.anna)?.isRestricted == false && house.told.isEmpty)
        let elsewhere = LinkState(persons: [Fixture.person(Self.anna, "anna", app: "other")])
        let event = UserRestrictionChanged(
            userId: Self.anna, mpid: Self.one, isRestricted: true, changedAt: Timestamp(milliseconds: 1))
        #expect(Fixture.decide(.restricted(event), elsewhere, Fixture.context()).changes.isEmpty)
    }
}
