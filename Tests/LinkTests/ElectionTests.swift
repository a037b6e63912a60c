// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Link
@testable import Runtime

/// The election of a person's active install (domain.md "Link", facts A4.4).
@Suite struct ElectionTests {
    struct Pair: Sendable, CustomTestStringConvertible {
        var old: Device.Kind
        var new: Device.Kind
        var testDescription: String { "(\(old), \(new))" }
    }

    static let pairs = Device.Kind.allCases.flatMap { old in Device.Kind.allCases.map { Pair(old: old, new: $0) } }

    @Test(arguments: pairs) func allPairs(_ pair: Pair) throws {
        #expect(Self.pairs.count == 9)
        let phoneStays = pair.old == .phone && pair.new == .tablet
        let state = LinkState(
            installs: [Fixture.install("old", pair.old, of: Fixture.userID), Fixture.install("new", pair.new)],
            persons: [Fixture.person(Fixture.userID, "anna")])
        let decision = LinkDecider.decide(Fixture.request("new", "anna"), state, Fixture.context())
        let after = state.after(decision)
        #expect(after.install("new")?.activity == (phoneStays ? .standby : .active))
        #expect(after.install("old")?.activity == (phoneStays ? .active : .deactivated))
        #expect(
            decision.answer
                == .link(
                    LinkResult(userId: Fixture.userID, installId: "new", isActive: !phoneStays, personCreated: false)))
        #expect(decision.events.count == (phoneStays ? 1 : 2))
        #expect(
            decision.told.first
                == AnyHashable(
                    Linked(
                        installId: "new", externalId: "anna", userId: Fixture.userID, personCreated: false,
                        activeInstallId: phoneStays ? "old" : "new", deactivatedInstallIds: phoneStays ? [] : ["old"])))
    }

    @Test(arguments: Device.Kind.allCases) func theFirstOneIsActive(_ kind: Device.Kind) throws {
        let state = LinkState(
            installs: [Fixture.install("new", kind)], persons: [Fixture.person(Fixture.userID, "anna")])
        let after = state.after(LinkDecider.decide(Fixture.request("new", "anna"), state, Fixture.context()))
        #expect(after.install("new")?.activity == .active)
    }

    @Test func nothingIsPromotedWhenTheActiveOneGoes() throws {
        let start = LinkState(
            installs: [
                Fixture.install("phone", of: Fixture.userID),
                Fixture.install("tablet", .tablet, of: Fixture.userID, .standby),
            ], persons: [Fixture.person(Fixture.userID, "anna")])
        let commands: [LinkCommand] = [
            .detachInstall(DetachInstall(installId: "phone")),
            .setInstallStatus(SetInstallStatus(installId: "phone", status: .deleted)),
            .setInstallStatus(SetInstallStatus(installId: "phone", status: .disabled)),
        ]
        for command in commands {
            let after = start.after(LinkDecider.decide(command, start, Fixture.context()))
            #expect(after.install("tablet")?.activity == .standby)
            #expect(after.installs.values.filter(\.isActive).isEmpty)
            // But the tablet becomes active when it asks again.
            let again = after.after(
                LinkDecider.decide(Fixture.request("tablet", "anna"), after, Fixture.context(id: "c2")))
            #expect(again.install("tablet")?.activity == .active)
        }
    }

    /// Enabling gives back what disabling took, with an event, unless another install took over.
    @Test(arguments: [false, true]) func enablingGivesActivityBackUnlessItIsTaken(_ isTaken: Bool) throws {
        let start = LinkState(
            installs: [
                Fixture.install("phone", of: Fixture.userID),
                Fixture.install("tablet", .tablet, of: Fixture.userID, .standby),
            ], persons: [Fixture.person(Fixture.userID, "anna")])
        func set(_ status: InstallStatus, _ state: LinkState) -> LinkDecider.Decision {
            LinkDecider.decide(
                .setInstallStatus(SetInstallStatus(installId: "phone", status: status)), state, Fixture.context())
        }
        let disabling = set(.disabled, start)
        var state = start.after(disabling)
        #expect(state.install("phone")?.activity == .suspended)
        #expect((disabling.told.first as? InstallStatusChanged)?.isActive == false)
        if isTaken {
            state = state.after(LinkDecider.decide(Fixture.request("tablet", "anna"), state, Fixture.context(id: "c2")))
            #expect(state.install("tablet")?.activity == .active)
        }
        let enabling = set(.enabled, state)
        #expect(state.after(enabling).install("phone")?.activity == (isTaken ? .deactivated : .active))
        #expect((enabling.told.first as? InstallStatusChanged)?.isActive == !isTaken)
        // What was taken over by another stays so, as any install that was.
        let again = LinkDecider.decide(
            Fixture.request("phone", "anna"), state.after(enabling), Fixture.context(id: "c3"))
        #expect((again.answer == .rejected(.installDeactivated)) == isTaken)
    }

    @Test func aNewPhoneTakesOverFromPhoneAndStandbyStays() throws {
        let start = LinkState(
            installs: [
                Fixture.install("phone", of: Fixture.userID),
                Fixture.install("tablet", .tablet, of: Fixture.userID, .standby), Fixture.install("new"),
            ], persons: [Fixture.person(Fixture.userID, "anna")])
        let after = start.after(LinkDecider.decide(Fixture.request("new", "anna"), start, Fixture.context()))
        #expect(after.install("new")?.activity == .active)
        #expect(after.install("phone")?.activity == .deactivated)
        #expect(after.install("tablet")?.activity == .standby)
    }
}
