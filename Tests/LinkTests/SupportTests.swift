// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing
import WireJSON

@testable import Link
@testable import Runtime

/// Reading and repairing people (docs/link.md "Support").
@Suite struct SupportTests {
    private static let day: Int64 = 86_400_000
    private static let anna = Fixture.userID

    // MARK: Reading

    /// L65.
    @Test func aUserIsFoundByAnyOfItsIDs() throws {
        let desk = Desk()
        let user = try #require(desk.link("phone", "anna"))
        #expect(desk.link("tablet", "anna", .tablet) == user)
        let read = try #require(desk.read(GetLinkedUser(externalId: "anna")))
        #expect(read.userId == user && read.externalId == "anna" && read.next == nil && !read.isErased)
        #expect(read.installs.map(\.installId) == ["tablet", "phone"])
        #expect(read.installs.map(\.inactiveBecause) == [.waitsForPhone, nil])
        #expect(desk.read(GetLinkedUser(userId: user)) == read)
        #expect(desk.read(GetLinkedUser(installId: "tablet")) == read)
        #expect(read.createdAt == read.linkedAt)
    }

    /// L65. Nobody learns of another app's users.
    @Test(arguments: [
        GetLinkedUser(userId: Fixture.userID), GetLinkedUser(externalId: "anna"), GetLinkedUser(installId: "phone"),
    ])
    func anotherAppsUserIsNotFound(_ query: GetLinkedUser) {
        let desk = Desk()
        desk.state = LinkState(
            installs: [Fixture.install("phone", of: Self.anna)], persons: [Fixture.person(Self.anna, "anna")])
        #expect(desk.run(.getUser(query), in: Fixture.otherApp) == .rejected(.userNotFound))
        #expect(desk.read(query)?.userId == Self.anna)
    }

    /// L65. The latest first, and each once, whichever of the user's ids is asked for.
    @Test(arguments: SQLEngine.allCases) func manyInstallsComeInPages(_ engine: SQLEngine) throws {
        let store = try LinkTestStore(engine)
        var ids: [InstallID] = []
        for number in 0..<205 {
            let id = InstallID("i\(number)-\u{e9}")
            ids.append(id)
            let establish = EstablishLink(installId: id, device: Fixture.phone, externalId: "anna", mode: .create)
            // Some at one moment.
            let context = Fixture.context(id: CommandID(id.text), moment: Moment(milliseconds: Int64(number / 10)))
            _ = try store.run([RandomCommands.Step(command: .establish(establish), context: context)])
        }
        var seen: [InstallID] = []
        var query = GetLinkedUser(externalId: "anna")
        for page in 0..<3 {
            let decision = try store.run([
                RandomCommands.Step(command: .getUser(query), context: Fixture.context(id: CommandID("page\(page)")))
            ])[0]
            guard case .user(let result) = decision.answer else {
                Issue.record("\(decision.answer)")
                return
            }
            #expect(result.installs.count == [100, 100, 5][page])
            #expect((result.next == nil) == (page == 2))
            seen += result.installs.map(\.installId)
            query = GetLinkedUser(userId: result.userId, after: result.next)
        }
        let tens = stride(from: 200, through: 0, by: -10).map { ids[$0..<min($0 + 10, 205)].sorted() }
        #expect(seen == Array(tens.joined()))
    }

    /// L65. What leads on in one user's answer leads nowhere in another's, and tells nothing.
    @Test func aPageIsOfOneUser() throws {
        let desk = Desk()
        let (anna, bert) = (Self.anna, UserID("5a18fc4b0962209e00000bbb"))
        func installs(_ prefix: String, of user: UserID) -> [Install] {
            (0..<101).map { Fixture.install(InstallID("\(prefix)\($0)"), of: user) }
        }
        desk.state = LinkState(
            installs: installs("a", of: anna) + installs("b", of: bert),
            persons: [Fixture.person(anna, "anna"), Fixture.person(bert, "bert")])
        let next = try #require(desk.read(GetLinkedUser(userId: anna))?.next)
        #expect(desk.read(GetLinkedUser(installId: "a7", after: next))?.installs.count == 1)
        for other in [
            GetLinkedUser(userId: bert, after: next), GetLinkedUser(userId: anna, after: String(next.dropLast())),
            GetLinkedUser(userId: anna, after: "A" + next.dropFirst()), GetLinkedUser(userId: anna, after: "a100"),
        ] {
            #expect(desk.run(.getUser(other)) == .rejected(.invalidRequest))
        }
        #expect(desk.run(.getUser(GetLinkedUser(userId: "nobody", after: next))) == .rejected(.userNotFound))
    }

    /// L65. Whatever ids and devices hold, a page is an answer that can be read.
    @Test func aPageIsNoLargerThanAMessage() throws {
        let desk = Desk()
        let text = String(repeating: "\"", count: 255)
        let device = Device(kind: .other, platform: text, model: text, osVersion: text)
        let installs = (100..<201).map { number in
            Install(id: InstallID("\(number)" + text.dropFirst(3)), app: "demo", device: device, userID: Self.anna)
        }
        desk.state = LinkState(
            installs: installs, persons: [Fixture.person(Self.anna, ExternalID(String(repeating: "\"", count: 750)))])
        let page = try #require(desk.read(GetLinkedUser(userId: Self.anna)))
        #expect(page.installs.count == 100)
        #expect(try WireJSONEncoder().encode(page).count < 240_000)
    }

    /// L65.
    @Test func anErasedUserIsSaidToBe() throws {
        let desk = Desk()
        let user = try #require(desk.link("phone", "anna"))
        desk.run(.eraseUser(EraseUser(userId: user)))
        let read = try #require(desk.read(GetLinkedUser(userId: user)))
        #expect(read.isErased && read.externalId == nil && read.installs.isEmpty && read.createdAt == nil)
        #expect(desk.run(.getUser(GetLinkedUser(externalId: "anna"))) == .rejected(.userNotFound))
    }

    // MARK: Which install is active

    /// L70, L71: also where the rules want another one, and where an external id has two that are active.
    @Test(arguments: [Install.Activity.standby, .deactivated, .active])
    func theChosenInstallIsTheActiveOne(_ activity: Install.Activity) throws {
        let desk = Desk()
        desk.state = LinkState(
            installs: [
                Fixture.install("tablet", .tablet, of: Self.anna, activity), Fixture.install("phone", of: Self.anna),
                Fixture.install("lost", of: Self.anna, .suspended, status: .disabled),
            ], persons: [Fixture.person(Self.anna, "anna")])
        let command = MakeInstallActive(installId: "tablet", author: "kim", reason: "the phone is broken")
        guard case .install(let result) = desk.run(.makeActive(command)) else {
            Issue.record("refused")
            return
        }
        #expect(result.isActive && result.inactiveBecause == nil)
        #expect(
            desk.state.installs(of: Self.anna).map(\.activity) == [.deactivated, .deactivated, .active])
        let told = desk.told.compactMap { $0.base as? InstallStatusChanged }
        #expect(told.map(\.cause) == (activity == .active ? [] : [.chosen]) + [.superseded, .superseded])
        if activity != .active { #expect(told[0].author == "kim" && told[0].reason == command.reason) }
        #expect(desk.run(.makeActive(command)) == .install(result) && desk.told.isEmpty)
    }

    /// L71. What support chose was a creation that comes to nothing: the person's own phone must not stay switched off.
    @Test(arguments: [Device.Kind.tablet, .phone])
    func whoLostToAChosenInstallIsBackWhenItsCreationFails(_ kind: Device.Kind) {
        let desk = Desk()
        desk.state = LinkState(
            installs: [
                Fixture.install("new", kind), Fixture.install("phone", of: Self.anna, .active),
                Fixture.install("lost", of: Self.anna, .suspended, status: .disabled),
            ], persons: [Fixture.person(Self.anna, "anna")])
        let create = EstablishLink(
            installId: "new", device: Fixture.device(kind), externalId: "anna", mode: .create)
        _ = desk.run(.establish(create))
        _ = desk.run(.makeActive(MakeInstallActive(installId: "new", author: "kim", reason: "asked for")))
        #expect(desk.state.installs(of: Self.anna).map(\.activity) == [.deactivated, .active, .deactivated])
        _ = desk.run(.detachInstall(DetachInstall(installId: "new", cause: .creationFailed)))
        #expect(desk.state.installs(of: Self.anna).map(\.activity) == [.suspended, .active])
        #expect(desk.state.installs(of: Self.anna).map(\.id) == ["lost", "phone"])
    }

    /// L70.
    @Test(arguments: [
        (InstallStatus.disabled, ReasonCode.installDisabled), (.deleted, .installDeleted), (.enabled, .noUser),
    ])
    func whoCannotBeActiveIsNotMadeSo(_ status: InstallStatus, _ reason: ReasonCode) {
        let desk = Desk()
        desk.state = LinkState(
            installs: [Fixture.install("i1", of: status == .enabled ? nil : Self.anna, status: status)],
            persons: [Fixture.person(Self.anna, "anna")])
        let command = MakeInstallActive(installId: "i1", author: "kim", reason: "because")
        #expect(desk.run(.makeActive(command)) == .rejected(reason))
        #expect(
            desk.run(.makeActive(MakeInstallActive(installId: "none", author: "kim", reason: "because")))
                == .rejected(.installNotFound))
    }

    // MARK: External ids

    /// L76: a command that waited is not about who has the external id by now; one that names the user always is about it.
    @Test func aLateChangeDoesNotRenameTheNextOwner() throws {
        let desk = Desk()
        let user = try #require(desk.link("phone", "anna"))
        _ = desk.unlink(user)
        let next = try #require(desk.link("other", "anna"))
        func change(late: Int64) -> Answer {
            desk.run(
                .changeExternalID(
                    ChangeExternalID(externalId: "anna", newExternalId: "annette", author: "kim", reason: "typo")),
                late: late)
        }
        #expect(change(late: 10_000) == .rejected(.externalIDChanged))
        #expect(desk.read(GetLinkedUser(externalId: "anna"))?.userId == next)
        guard case .user(let read) = change(late: 0) else {
            Issue.record("refused")
            return
        }
        #expect(read.userId == next && read.externalId == "annette")
        let byUser = ChangeExternalID(userId: next, newExternalId: "anne", author: "kim", reason: "typo")
        guard case .user = desk.run(.changeExternalID(byUser), late: 10_000) else {
            Issue.record("refused")
            return
        }
    }

    /// L77.
    @Test func aLateChoiceDoesNotElectTheNextPerson() throws {
        let desk = Desk()
        _ = try #require(desk.link("phone", "anna"))
        desk.run(.detachInstall(DetachInstall(installId: "phone", cause: .reset)))
        let next = try #require(desk.link("phone", "bert"))
        #expect(desk.link("newer", "bert") == next)
        let command = MakeInstallActive(installId: "phone", author: "kim", reason: "because")
        #expect(desk.run(.makeActive(command), late: 10_000) == .rejected(.noUser))
        guard case .install(let result) = desk.run(.makeActive(command)) else {
            Issue.record("refused")
            return
        }
        #expect(result.isActive)
    }

    /// L78.
    @Test func formerNamesAreKeptAndToldAtTheErasure() throws {
        let desk = Desk()
        let user = try #require(desk.link("phone", "anna"))
        _ = desk.change(user, to: "annette")
        let first = try #require(desk.state.person(userID: user)?.linkedAt)
        _ = desk.unlink(user)
        _ = desk.change(user, to: "anne")
        let former = [FormerExternalID(externalId: "anna", until: Timestamp(milliseconds: first))]
        #expect(desk.state.person(userID: user)?.former == former)
        for number in 0..<20 { _ = desk.change(user, to: ExternalID("a\(number)")) }
        let names = desk.state.person(userID: user)?.former.map(\.externalId.text)
        #expect(names == (3..<19).map { "a\($0)" })
        _ = desk.change(user, to: "a10")
        let left = try #require(desk.state.person(userID: user)?.former)
        #expect(left.count == 16 && left.last?.externalId == "a19" && !left.contains { $0.externalId == "a10" })
        desk.run(.eraseUser(EraseUser(userId: user)))
        let sent = desk.sent.compactMap { $0 as? ForgetProfiles }
        #expect(sent.map(\.former) == [left] && sent.map(\.externalId) == ["a10"])
        #expect(desk.state.person(userID: user)?.former == [])
    }

    /// L72, L73, L74.
    @Test func whoIsUnlinkedStaysAndIsNotLinkedWithTheSameIDAgain() throws {
        let desk = Desk()
        let user = try #require(desk.link("phone", "anna"))
        #expect(desk.link("tablet", "anna", .tablet) == user)
        guard case .user(let read) = desk.unlink(user) else {
            Issue.record("refused")
            return
        }
        #expect(read.externalId == nil && read.linkedAt == nil && read.installs.count == 2)
        let news = desk.told.compactMap { $0.base as? InstallStatusChanged }
        #expect(
            news.map(\.installId) == ["phone", "tablet"] && news.allSatisfy { !$0.isLinked && $0.cause == .unlinked })
        #expect(desk.told.first?.base is ExternalIDRemoved)
        #expect(desk.run(Fixture.request("phone", "anna")) == .rejected(.linkBarred))
        // The external id is free, for somebody else.
        let other = try #require(desk.link("other", "anna"))
        #expect(other != user)
        // What was sent before the repair comes to nothing.
        #expect(desk.run(Fixture.request("phone", "bert"), late: 60_000) == .rejected(.noLinkingInProgress))
        guard case .link(let linked) = desk.run(Fixture.request("phone", "bert")) else {
            Issue.record("refused")
            return
        }
        #expect(linked.userId == user)
        let relinked = desk.told.compactMap { $0.base as? InstallStatusChanged }
        #expect(relinked.map(\.installId) == ["tablet"] && relinked.allSatisfy { $0.isLinked && $0.cause == .relinked })
    }

    /// L73, L75: support itself may link them.
    @Test func supportGivesBackWhatItTook() throws {
        let desk = Desk()
        let user = try #require(desk.link("phone", "anna"))
        _ = desk.unlink(user)
        guard case .user(let read) = desk.change(user, to: "anna") else {
            Issue.record("refused")
            return
        }
        #expect(read.externalId == "anna")
        #expect(desk.told.compactMap { ($0.base as? InstallStatusChanged)?.cause } == [.relinked])
        #expect(desk.link("new", "anna") == user)
    }

    /// L75: where the external id says whom a verified login finds, a key of support alone may not change it.
    @Test(arguments: [
        (VerificationSettings.Mode.enforce, true, [Scope.support], false),
        (.enforce, true, [.support, .identityVouch], true),
        (.enforce, false, [.support], true), (.report, true, [.support], true), (.off, true, [.support], true),
    ])
    func whoeverSaysWhoAVerifiedLoginIsMustVouch(
        _ mode: VerificationSettings.Mode, _ fromLinks: Bool, _ scopes: [Scope], _ isAllowed: Bool
    ) {
        let app = AppSettings(
            id: "demo", sync: SyncSettings(fromLinks: fromLinks), verification: VerificationSettings(mode: mode))
        let context = DecisionContext(
            command: CommandKey(app: "demo", source: "test", id: "c1"), app: app,
            principal: Principal(kind: .apiKey("k"), scopes: Set(scopes)), now: Timestamp(milliseconds: 0))
        for user in [Self.anna, "5a18fc4b0962209e0000000e"] {
            let command = ChangeExternalID(userId: user, newExternalId: "annette", author: "kim", reason: "typo")
            let state = LinkState(persons: [Fixture.person(Self.anna, "anna")])
            let answer = Fixture.decide(.changeExternalID(command), state, context).answer
            // Who may not learns of nobody whether they exist.
            #expect((answer == .rejected(.verificationRequired)) == !isAllowed)
        }
    }

    /// S118: whoever hears of two changes knows which one counts, whenever they were asked for.
    @Test func theMomentOfANameGrows() throws {
        let desk = Desk()
        let user = try #require(desk.link("phone", "anna"))
        let first = try #require(desk.read(GetLinkedUser(userId: user))?.linkedAt)
        desk.run(
            .changeExternalID(
                ChangeExternalID(userId: user, newExternalId: "annette", author: "kim", reason: "typo")),
            late: 60_000)
        let second = try #require(desk.read(GetLinkedUser(userId: user))?.linkedAt)
        #expect(second > first)
    }

    /// L69.
    @Test func aPersonOnVeryManyInstallsIsNotRepaired() {
        let installs = (0...LinkDecider.mostRepaired).map {
            Fixture.install(InstallID("i\($0)"), of: Self.anna, .deactivated)
        }
        let desk = Desk()
        desk.state = LinkState(installs: installs, persons: [Fixture.person(Self.anna, "anna")])
        #expect(desk.unlink(Self.anna) == .rejected(.limitExceeded))
        desk.state = LinkState(installs: installs.dropLast(), persons: [Fixture.person(Self.anna, "anna")])
        guard case .user = desk.unlink(Self.anna) else {
            Issue.record("refused")
            return
        }
    }

    /// A repair is done as it is written, or not at all.
    @Test func whatNobodyReadsIsRefused() throws {
        let asked: JSONValue = ["installId": "i1", "author": "kim", "reason": "r", "instalId": "i2", "note": .null]
        let wanted = Rejection(.invalidRequest, "data.instalId is not a member of this command. Nothing was done.")
        #expect(throws: wanted) { try LinkService.inputs.read(MakeInstallActive.type, asked) }
        let status: JSONValue = ["installId": "i1", "status": "disabled", "author": "kim", "reson": "r"]
        #expect(throws: Rejection.self) { try LinkService.inputs.read(SetInstallStatus.type, status) }
        let good: JSONValue = ["installId": "i1", "author": "kim", "reason": "r", "note": .null]
        #expect(throws: Never.self) { try LinkService.inputs.read(MakeInstallActive.type, good) }
    }
}
