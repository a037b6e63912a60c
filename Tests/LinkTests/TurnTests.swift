// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import Testing

@testable import Link
@testable import Runtime

/// An act is about the turn in which it was made (docs/link.md "Turns").
@Suite struct TurnTests {
    private static let second: Int64 = 1000
    private static let phone = Fixture.phone

    private func at(_ seconds: Int64, isBrokers: Bool = false) -> Moment {
        Moment(milliseconds: seconds * Self.second, isBrokers: isBrokers)
    }

    private func decide(
        _ command: LinkCommand, _ state: LinkState, _ id: CommandID, _ moment: Moment, key: KeyID? = nil
    ) -> (LinkState, LinkDecider.Decision) {
        let context = Fixture.context(id: id, moment: moment, as: key.map { .apiKey($0) } ?? .service)
        let decision = Fixture.decide(command, state, context)
        return (state.after(decision), decision)
    }

    private func register(_ user: RegisterInstall.User) -> LinkCommand {
        .registerInstall(RegisterInstall(installId: "i1", device: Self.phone, user: user))
    }

    private static let detach = LinkCommand.detachInstall(DetachInstall(installId: "i1", cause: .reset))

    /// L46. Whose backend was late links nobody who came behind: neither an unlinked person, nor the next linker's.
    @Test(arguments: [RegisterInstall.User.new, .none]) func aLateRequestIsNotAboutTheNextTurn(
        _ user: RegisterInstall.User
    ) throws {
        var (state, _) = decide(register(user), LinkState(), "r1", at(100))
        (state, _) = decide(Self.detach, state, "d", at(150))
        (state, _) = decide(register(user), state, "r2", at(200))
        let (after, late) = decide(Fixture.request("i1", "carol"), state, "late", at(120), key: "backend")
        #expect(late.answer == .rejected(.noLinkingInProgress))
        #expect(late.told == [LinkRefused(installId: "i1", reason: .noLinkingInProgress)])
        #expect(late.changes == [.late(LateLink(app: "demo", key: "backend", age: 80_000))])
        #expect(after.installs.changed.map(\.id) == state.installs.changed.map(\.id))
        #expect(after.person(app: "demo", externalID: "carol") == nil)
        if case .rejected(let rejection) = late.outcome { #expect(rejection.message.contains("is 1 min 20 s older")) }
        let (_, timely) = decide(Fixture.request("i1", "dora"), after, "timely", at(201))
        if case .link = timely.answer {} else { Issue.record("\(timely.answer)") }
    }

    /// L45, L46. The turn of an unlinked person lasts on each of its installs, whichever support makes the active one.
    @Test func aChoiceOfSupportBeginsNoTurn() throws {
        var state = LinkState()
        for (install, second) in [("i1", 100), ("i2", 110)] as [(InstallID, Int64)] {
            let register = RegisterInstall(installId: install, device: Self.phone, user: .none)
            (state, _) = decide(.registerInstall(register), state, CommandID("r\(second)"), at(second))
            (state, _) = decide(Fixture.request(install, "anna"), state, CommandID("l\(second)"), at(second))
        }
        let user = try #require(state.person(app: "demo", externalID: "anna")?.userID)
        (state, _) = decide(.unlink(UnlinkUser(userId: user, author: "a", reason: "r")), state, "u", at(200))
        let choice = LinkCommand.makeActive(MakeInstallActive(installId: "i1", author: "a", reason: "r"))
        (state, _) = decide(choice, state, "m", at(210))
        for install in ["i1", "i2"] as [InstallID] {
            let (_, late) = decide(Fixture.request(install, "carol"), state, "late", at(120))
            #expect(late.answer == .rejected(.noLinkingInProgress), "\(install)")
        }
    }

    /// L46. Producers' clocks differ by some seconds; the brokers of a cluster do not.
    @Test(arguments: [
        (turn: false, request: false, tolerance: 5), (false, true, 5), (true, false, 5), (true, true, 1),
    ]) func clocksMayDiffer(_ turn: Bool, _ request: Bool, _ tolerance: Int64) {
        let (state, _) = decide(register(.none), LinkState(), "r", at(100, isBrokers: turn))
        func answer(_ milliseconds: Int64) -> Answer {
            let moment = Moment(milliseconds: milliseconds, isBrokers: request)
            return decide(Fixture.request("i1", "anna"), state, "c", moment).1.answer
        }
        let edge = (100 - tolerance) * Self.second
        #expect(answer(edge) != .rejected(.noLinkingInProgress))
        #expect(answer(edge - 1) == .rejected(.noLinkingInProgress))
    }

    /// `linking.clockToleranceSeconds`.
    @Test func theToleranceIsTheApps() {
        let (state, _) = decide(register(.none), LinkState(), "r", at(100))
        func answer(_ tolerance: Int64) -> Answer {
            let app = AppSettings(id: "demo", linking: .init(clockTolerance: tolerance))
            return Fixture.decide(Fixture.request("i1", "anna"), state, Fixture.context(app, moment: at(41))).answer
        }
        if case .link = answer(60_000) {} else { Issue.record("a minute is allowed") }
        #expect(answer(58_000) == .rejected(.noLinkingInProgress))
    }

    /// L45. A linker's turn begins with each registration; one that is repeated does not move it back.
    @Test func aRegistrationBeginsTheTurnAnew() {
        var (state, _) = decide(register(.none), LinkState(), "r1", at(100))
        (state, _) = decide(register(.none), state, "r2", at(200))
        #expect(state.install("i1")?.turn == at(200))
        (state, _) = decide(register(.none), state, "r1 again", at(100))
        #expect(state.install("i1")?.turn == at(200))
    }

    /// Who is linked has no turn: L8 to L10 answer first.
    @Test func whoIsLinkedIsAnsweredAsBefore() {
        let state = LinkState("i1 u1=anna, i2 deactivated u2=bert")
        let long = at(-1000)
        let same = decide(Fixture.request("i1", "anna"), state, "c1", long).1.answer
        if case .link = same {} else { Issue.record("\(same)") }
        #expect(
            decide(Fixture.request("i1", "bert"), state, "c2", long).1.answer == .rejected(.installLinkedToOtherUser))
        #expect(decide(Fixture.request("i2", "bert"), state, "c3", long).1.answer == .rejected(.installDeactivated))
    }

    /// The user service's word names whom it is about.
    @Test func establishIsNotAsked() {
        let (state, _) = decide(register(.none), LinkState(), "r", at(100))
        let establish = EstablishLink(installId: "i1", device: Self.phone, externalId: "anna", mode: .create)
        let answer = decide(.establish(establish), state, "e", at(0)).1.answer
        if case .link = answer {} else { Issue.record("\(answer)") }
    }

    /// Installs from before turns were kept.
    @Test func withoutATurnNothingIsLate() {
        let state = LinkState(installs: [Fixture.install("i1")])
        let answer = decide(Fixture.request("i1", "anna"), state, "c", at(-1000)).1.answer
        if case .link = answer {} else { Issue.record("\(answer)") }
    }
}
