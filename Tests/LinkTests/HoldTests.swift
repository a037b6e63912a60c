// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Testing

@testable import Link
@testable import Runtime

/// External ids that support has changed: for whom they are held, and since when they are somebody else's (docs/link.md
/// "Support").
@Suite struct HoldTests {
    private static let day: Int64 = 86_400_000

    /// L66, L75: until it is free again it names nobody, and then whoever comes.
    @Test func anExternalIDThatWasChangedNamesNobodyForAWhile() throws {
        let desk = Desk()
        let user = try #require(desk.link("phone", "anna"))
        guard case .user(let read) = desk.change(user, to: "annette") else {
            Issue.record("refused")
            return
        }
        #expect(read.externalId == "annette" && read.installs.map(\.isActive) == [true])
        let told = try #require(desk.told.first?.base as? ExternalIDChanged)
        #expect(told.previousExternalId == "anna" && told.author == "kim" && told.reason == "typo")
        #expect(desk.told.count == 1)
        // The backend repeats its request, and a new phone comes with the old id.
        #expect(desk.run(Fixture.request("phone", "anna")) == .rejected(.externalIDChanged))
        #expect(desk.link("other", "anna") == nil)
        #expect(desk.run(Fixture.request("other", "anna")) == .rejected(.externalIDChanged))
        #expect(desk.link("new", "annette") == user)
        desk.now += 30 * Self.day
        let next = try #require(desk.link("other", "anna"))
        #expect(next != user)
    }

    /// L67: the change is taken back.
    @Test func itsPersonMayHaveItBack() throws {
        let desk = Desk()
        let user = try #require(desk.link("phone", "anna"))
        _ = desk.change(user, to: "annette")
        _ = desk.change(user, to: "anna")
        #expect(desk.run(Fixture.request("other", "annette")) == .rejected(.installNotFound))
        #expect(desk.link("new", "anna") == user)
        #expect(desk.link("newer", "annette") == nil)
    }

    /// L68.
    @Test func nobodyGetsWhatIsAnothersOrIsHeld() throws {
        let desk = Desk()
        let anna = try #require(desk.link("phone", "anna"))
        let bert = try #require(desk.link("berts", "bert"))
        #expect(desk.change(bert, to: "anna") == .rejected(.externalIDTaken))
        #expect(desk.message == "Another user has this external id.")
        _ = desk.change(anna, to: "annette")
        let end = Timestamp(milliseconds: desk.now + Fixture.app.linking.hold).rfc3339
        #expect(desk.change(bert, to: "anna") == .rejected(.externalIDTaken))
        #expect(desk.message?.contains("is held until \(end) for the user who had it") == true)
        #expect(desk.change(bert, to: " x") == .rejected(.invalidRequest))
        // The hold goes with its person.
        desk.run(.eraseUser(EraseUser(userId: anna)))
        #expect(desk.change(anna, to: "other") == .rejected(.userErased))
        guard case .user = desk.change(bert, to: "anna") else {
            Issue.record("refused")
            return
        }
    }

    /// L68: support may end a hold, when every service had a minute to hear that the external id was changed.
    @Test func aHoldThatIsEndedGivesTheExternalIDAway() throws {
        let desk = Desk()
        let (ute, uwe) = (try #require(desk.link("utes", "uwe")), try #require(desk.link("uwes", "ute")))
        func give(_ user: UserID, _ externalID: ExternalID) -> Answer {
            desk.run(
                .changeExternalID(
                    ChangeExternalID(
                        userId: user, newExternalId: externalID, endHold: true, author: "kim", reason: "swapped")))
        }
        #expect(give(ute, "ute") == .rejected(.externalIDTaken))
        _ = desk.change(ute, to: "nobody's")
        let changed = desk.now
        desk.now = changed + 58_999
        #expect(give(uwe, "uwe") == .rejected(.externalIDTaken))
        #expect(desk.message?.contains(Timestamp(milliseconds: changed + 60_000).rfc3339) == true)
        #expect(desk.change(uwe, to: "uwe") == .rejected(.externalIDTaken))
        guard case .user(let one) = give(uwe, "uwe") else {
            Issue.record("refused")
            return
        }
        #expect(one.userId == uwe && one.externalId == "uwe")
        desk.now += 60_000
        guard case .user(let other) = give(ute, "ute") else {
            Issue.record("refused")
            return
        }
        #expect(other.userId == ute && other.externalId == "ute")
        // Neither is held for anybody any more.
        #expect(desk.change(ute, to: "uwe") == .rejected(.externalIDTaken))
        #expect(desk.link("utes", "ute") == ute && desk.link("uwes", "uwe") == uwe)
    }

    /// L66a: what was meant before support gave the external id away means its person of then, also when it is read later. It
    /// counts when the code was asked for, not when it was shown.
    @Test func whatWasMeantBeforeAHoldEndedIsRefused() throws {
        let desk = Desk()
        let (ute, uwe) = (try #require(desk.link("utes", "ute")), try #require(desk.link("uwes", "uwe")))
        _ = desk.change(ute, to: "nobody's")
        desk.now += 60_000
        let before = desk.now
        desk.run(
            .changeExternalID(
                ChangeExternalID(userId: uwe, newExternalId: "ute", endHold: true, author: "kim", reason: "swapped")))
        let ended = desk.now
        func create(_ asked: Int64?) -> Answer {
            desk.run(
                .establish(
                    EstablishLink(
                        installId: "new", device: Fixture.phone, externalId: "ute", mode: .create,
                        askedAt: asked.map(Timestamp.init(milliseconds:)))))
        }
        #expect(create(before) == .rejected(.externalIDChanged))
        #expect(create(ended - 1) == .rejected(.externalIDChanged))
        desk.run(.registerInstall(RegisterInstall(installId: "next", device: Fixture.phone, user: .none)))
        func requestOfBefore(_ install: InstallID) -> Answer {
            desk.run(Fixture.request(install, "ute"), late: desk.now + 1000 - before)
        }
        #expect(requestOfBefore("next") == .rejected(.externalIDChanged))
        for asked in [ended, nil] {
            guard case .link(let result) = create(asked) else {
                Issue.record("refused")
                return
            }
            #expect(result.userId == uwe)
        }
        // Whoever is linked with it is, whenever that was asked for.
        #expect(requestOfBefore("uwes") != .rejected(.externalIDChanged))
        // Also when it is free again.
        _ = desk.unlink(uwe)
        #expect(requestOfBefore("next") == .rejected(.externalIDChanged))
    }
}
