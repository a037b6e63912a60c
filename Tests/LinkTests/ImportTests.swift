// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Storage
import TestKit
import Testing
import WireJSON

@testable import Link
@testable import Runtime

/// Users of another system (docs/link.md "Import").
@Suite struct ImportTests {
    private static let (anna, bert): (UserID, UserID) = ("0000000000000000000000aa", "0000000000000000000000bb")
    private static let hour: Int64 = 3_600_000

    private static func on(
        _ id: InstallID, _ kind: Device.Kind = .phone, isActive: Bool? = nil, _ status: InstallStatus? = nil
    ) -> ImportedUser.Install {
        .init(installId: id, device: Fixture.device(kind), isActive: isActive, status: status)
    }

    /// A link service to which one command comes after the other.
    private final class Desk {
        var state = LinkState()
        var count = 0
        var now: Int64 = 1_000_000
        var app = Fixture.app
        var last: LinkDecider.Decision?

        @discardableResult func run(_ command: LinkCommand) -> Answer {
            count += 1
            now += 1000
            let context = Fixture.context(
                app, id: CommandID("c\(count)"), moment: Moment(milliseconds: now), now: now)
            let decision = Fixture.decide(command, state, context)
            state = state.after(decision)
            last = decision
            return decision.answer
        }

        @discardableResult func bring(
            _ users: [ImportedUser], upsert: Bool? = nil, events: Bool? = nil
        ) -> [ImportResult.Element] {
            let command = ImportUsers(users: users.map { .read($0) }, upsert: upsert, events: events)
            guard case .imported(let results) = run(.importUsers(command)) else { return [] }
            return results
        }

        @discardableResult func bring(_ user: ImportedUser, upsert: Bool? = nil) -> ImportResult.Element? {
            bring([user], upsert: upsert).first
        }

        func told<Event: EventMessage>(_: Event.Type) -> [Event] { (last?.events ?? []).compactMap { $0 as? Event } }

        func register(_ install: InstallID, _ user: RegisterInstall.User = .new) -> Answer {
            run(.registerInstall(RegisterInstall(installId: install, device: Fixture.phone, user: user)))
        }

        func create(_ install: InstallID, _ externalID: ExternalID) -> Answer {
            run(
                .establish(
                    EstablishLink(
                        installId: install, device: Fixture.phone, externalId: externalID, mode: .create)))
        }

        func activity(_ install: InstallID) -> Install.Activity? { state.install(install)?.activity }
    }

    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var user: ImportedUser
        var upsert: Bool?
        var expected: ImportResult.Element

        init(
            _ name: String, _ user: ImportedUser, upsert: Bool? = nil, _ outcome: ImportOutcome,
            _ reason: ImportConflict? = nil
        ) {
            testDescription = name
            self.user = user
            self.upsert = upsert
            expected = .init(index: 0, outcome: outcome, reason: reason)
        }
    }

    /// Anna is here on a phone, u1 was erased, app other has u2, bert's name is held, i9 is known and nobody's.
    private static func given() -> Desk {
        let desk = Desk()
        var person = Fixture.person(anna, "anna")
        person.linkedAt = 1
        desk.state = LinkState(
            installs: [
                Fixture.install("i1", of: anna), Fixture.install("i9"),
                Fixture.install("i8", of: "00000000000000000000000f"),
            ],
            persons: [
                person, Fixture.person("000000000000000000000001").tombstone,
                Fixture.person("000000000000000000000002", "zoe", app: "other"),
                Fixture.person("00000000000000000000000f"),
            ],
            holds: [Hold(app: "demo", externalID: "held", userID: anna, since: 0, until: .max)])
        return desk
    }

    /// L150 to L154.
    @Test(arguments: [
        Case("new", .init(userId: bert, externalId: "bert", installs: [on("i2")]), .created),
        Case("new, without installs", .init(userId: bert, externalId: "bert"), .created),
        Case("new, unlinked", .init(userId: bert, installs: [on("i2")]), .created),
        Case("not hex", .init(userId: "bert"), .invalid),
        Case("capitals", .init(userId: "0000000000000000000000AA"), .invalid),
        Case("an install twice", .init(userId: bert, externalId: "bert", installs: [on("i2"), on("i2")]), .invalid),
        Case("unlinked on two", .init(userId: bert, installs: [on("i2"), on("i3")]), .invalid),
        Case("unlinked and not active", .init(userId: bert, installs: [on("i2", isActive: false)]), .invalid),
        Case("white space", .init(userId: bert, externalId: " bert"), .invalid),
        Case("no external id", .init(userId: bert, externalId: ""), .invalid),
        Case("names nobody", .init(userId: bert, externalId: "null"), .conflict, .valueNamesNobody),
        Case("taken", .init(userId: bert, externalId: "anna"), .conflict, .externalIDTaken),
        Case("held", .init(userId: bert, externalId: "held"), .conflict, .externalIDTaken),
        Case("erased", .init(userId: "000000000000000000000001", externalId: "new"), .conflict, .userErased),
        Case("erased, added to", .init(userId: "000000000000000000000001"), upsert: true, .conflict, .userErased),
        Case("another app's", .init(userId: "000000000000000000000002"), .conflict, .userIDTaken),
        Case(
            "in the future", .init(userId: bert, createdAt: .init(milliseconds: 1_001_001 + hour)), .conflict, .badTime),
        Case("an hour ahead", .init(userId: bert, createdAt: .init(milliseconds: 1_001_000 + hour)), .created),
        Case(
            "two active",
            .init(userId: bert, externalId: "bert", installs: [on("i2", isActive: true), on("i3", isActive: true)]),
            .conflict, .twoActiveInstalls),
        Case(
            "on a known install", .init(userId: bert, externalId: "bert", installs: [on("i2"), on("i9")]), .conflict,
            .installTaken),
        Case(
            "on anna's install", .init(userId: bert, externalId: "bert", installs: [on("i1")]), .conflict, .installTaken
        ),
        Case(
            "on a known install, upsert", .init(userId: bert, externalId: "bert", installs: [on("i2"), on("i9")]),
            upsert: true, .created),
        Case("known as it is", .init(userId: anna, externalId: "anna", installs: [on("i1")]), .same),
        Case("known, one install less", .init(userId: anna, externalId: "anna"), .same),
        Case(
            "known, another install", .init(userId: anna, externalId: "anna", installs: [on("i2")]), .conflict, .differs
        ),
        Case("known, no name", .init(userId: anna), .conflict, .differs),
        Case("added an install", .init(userId: anna, externalId: "anna", installs: [on("i2")]), upsert: true, .changed),
        Case("added nothing", .init(userId: anna, externalId: "anna", installs: [on("i9")]), upsert: true, .same),
        Case("another name", .init(userId: anna, externalId: "anne"), upsert: true, .conflict, .immutable),
        Case(
            "a second install, unlinked", .init(userId: "00000000000000000000000f", installs: [on("i2")]), upsert: true,
            .conflict, .limitExceeded),
    ]) func whatBecomesOfAnElement(_ one: Case) {
        let desk = Self.given()
        let before = desk.state
        #expect(desk.bring(one.user, upsert: one.upsert) == one.expected)
        if one.expected.outcome == .conflict || one.expected.outcome == .invalid || one.expected.outcome == .same {
            #expect(desk.last?.changes == [] && desk.last?.told == [])
            return
        }
        let person = desk.state.person(userID: one.user.userId)
        #expect(person?.externalID == one.user.externalId)
        for install in one.user.brought where before.install(install.installId) == nil {
            #expect(desk.state.install(install.installId)?.userID == one.user.userId)
            #expect(desk.state.install(install.installId)?.isUsersFirst == false)
        }
        // Nobody who was here is elsewhere.
        for install in before.installs.values { #expect(desk.state.installs[install.key] == install) }
    }

    /// L151.
    @Test func oneThatFailsDoesNotFailTheOthers() throws {
        let desk = Self.given()
        let text = """
            {"users":[{"userId":"\(Self.bert)","externalId":"bert"},{"userId":7},{"userId":"\(Self.bert)","externalID":"x"},
            {"userId":"0000000000000000000000cc","externalId":"bert"},[],{"userId":"0000000000000000000000dd","installs":
            [{"installId":"i2","device":{"kind":"watch","platform":"p"}}]},{"userId":"0000000000000000000000ee"}]}
            """
        let command = try WireJSONDecoder().decode(ImportUsers.self, from: Array(text.utf8))
        try command.validate()
        guard case .imported(let results) = desk.run(.importUsers(command)) else { return }
        #expect(
            results.map(\.outcome) == [.created, .invalid, .invalid, .conflict, .invalid, .invalid, .created])
        #expect(results[3].reason == .externalIDTaken)
        guard case .succeeded(let told as ImportResult) = desk.last?.outcome else { return }
        let words = told.results.map { $0.message ?? "" }
        #expect(words[2].contains("externalID") && words[5].contains("phone, tablet, other"), "\(words)")
        #expect(command.partitionSubject == Self.bert.text)
    }

    /// L150.
    @Test(arguments: [(0, false), (1, true), (500, true), (501, false)])
    func aListIsNotEmptyAndNotTooLong(_ count: Int, _ isTaken: Bool) {
        let list = ImportUsers(users: (0..<count).map { .unreadable(.number(JSONNumber($0)), "no") })
        if isTaken {
            #expect(throws: Never.self) { try list.validate() }
        } else {
            #expect(throws: Rejection.self) { try list.validate() }
        }
        #expect(list.partitionSubject == "import")
    }

    /// L152.
    @Test func theSameElementIsTheSameWhateverBecameOfTheUser() throws {
        let desk = Desk()
        let user = ImportedUser(
            userId: Self.anna, externalId: "anna", installs: [Self.on("i1"), Self.on("i2", isActive: true)])
        #expect(desk.bring(user)?.outcome == .created)
        #expect(desk.bring(user)?.outcome == .same)
        // She moved, and support gave her another name.
        _ = desk.create("i3", "anna")
        #expect(desk.activity("i2") == .deactivated)
        desk.run(.detachInstall(DetachInstall(installId: "i1", cause: .reset)))
        desk.run(
            .changeExternalID(ChangeExternalID(userId: Self.anna, newExternalId: "anne", author: "kim", reason: "typo"))
        )
        for upsert in [nil, true] {
            #expect(desk.bring(user, upsert: upsert)?.outcome == .same)
            #expect(desk.last?.changes == [])
        }
        #expect(desk.activity("i3") == .active && desk.state.person(userID: Self.anna)?.externalID == "anne")
        // Erased she stays.
        desk.run(.eraseUser(EraseUser(userId: Self.anna)))
        for upsert in [nil, true] { #expect(desk.bring(user, upsert: upsert)?.reason == .userErased) }
        #expect(desk.state.person(userID: Self.anna)?.isErased == true)
    }

    /// L152. In one list too.
    @Test func anElementTwiceInOneList() {
        let desk = Desk()
        let user = ImportedUser(userId: Self.anna, externalId: "anna", installs: [Self.on("i1")])
        let other = ImportedUser(userId: Self.bert, externalId: "anna")
        let third = ImportedUser(userId: Self.bert, externalId: "bert", installs: [Self.on("i1")])
        let more = ImportedUser(userId: Self.anna, externalId: "anna", installs: [Self.on("i2")])
        let results = desk.bring([user, user, other, third, more])
        #expect(results.map(\.outcome) == [.created, .same, .conflict, .conflict, .conflict])
        #expect(results.map(\.reason) == [nil, nil, .externalIDTaken, .installTaken, .differs])
        #expect(desk.state.installs.count == 1 && desk.state.persons.count == 1)
        #expect(desk.bring([more, more], upsert: true).map(\.outcome) == [.changed, .same])
    }

    /// L153, L154.
    @Test func whoIsActive() {
        let desk = Desk()
        func activities(_ number: Int, _ installs: [ImportedUser.Install]) -> [Install.Activity?] {
            let id = UserID("00000000000000000000000\(number)")
            desk.bring(ImportedUser(userId: id, externalId: ExternalID("x\(number)"), installs: installs))
            return installs.map { desk.activity($0.installId) }
        }
        #expect(activities(1, [Self.on("a1")]) == [.active])
        #expect(activities(2, [Self.on("a2", isActive: false)]) == [.deactivated])
        #expect(activities(3, [Self.on("a3"), Self.on("b3")]) == [.deactivated, .deactivated])
        #expect(
            activities(4, [Self.on("a4"), Self.on("b4", isActive: true), Self.on("c4", .tablet)]) == [
                .deactivated, .active, .standby,
            ])
        #expect(activities(5, [Self.on("a5", .tablet, isActive: true), Self.on("b5")]) == [.active, .deactivated])
        #expect(
            activities(6, [Self.on("a6", isActive: true, .disabled), Self.on("b6", .tablet)]) == [
                .suspended, .deactivated,
            ])
        #expect(activities(7, [Self.on("a7", .phone, isActive: nil, .deleted)]) == [.deactivated])
        // It comes back as L25 says.
        desk.run(.setInstallStatus(SetInstallStatus(installId: "a6", status: .enabled)))
        #expect(desk.activity("a6") == .active)
        // Nobody takes over who was not there.
        let more = ImportedUser(
            userId: "000000000000000000000001", externalId: "x1",
            installs: [Self.on("d1", isActive: true), Self.on("e1", .tablet)])
        #expect(desk.bring(more, upsert: true)?.outcome == .changed)
        #expect(["a1", "d1", "e1"].map { desk.activity($0) } == [.active, .deactivated, .standby])
    }

    /// L155.
    @Test func whereVerificationIsEnforcedExternalIDsAreVouchedFor() {
        let desk = Desk()
        var sync = SyncSettings()
        sync.fromLinks = true
        desk.app = AppSettings(id: "demo", sync: sync, verification: VerificationSettings(mode: .enforce))
        let list = ImportUsers(users: [.read(.init(userId: Self.anna, externalId: "anna"))])
        func answer(_ scopes: Set<Scope>) -> Answer {
            let context = DecisionContext(
                command: CommandKey(app: "demo", source: "test", id: "c"), app: desk.app,
                principal: Principal(kind: .apiKey("k"), scopes: scopes), now: Timestamp(milliseconds: 1))
            return Fixture.decide(.importUsers(list), desk.state, context).answer
        }
        #expect(answer([.importing]) == .rejected(.verificationRequired))
        #expect(answer([.importing, .identityVouch]) == .imported([.init(index: 0, outcome: .created)]))
        // What nobody is told the sync service does not hear.
        #expect(
            desk.run(.importUsers(ImportUsers(users: list.users, events: false))) == .rejected(.invalidRequest))
        desk.app = Fixture.unlinkedApp
        #expect(desk.run(.importUsers(list)) == .rejected(.userLinkingNotConfigured))
        #expect(desk.bring(ImportedUser(userId: Self.bert))?.outcome == .created)
    }

    /// L156.
    @Test(arguments: SQLEngine.allCases) func anIDThatFollowsAndIsTakenIsPassedOver(_ engine: SQLEngine) throws {
        let store = try LinkTestStore(engine)
        func step(_ id: CommandID, _ command: LinkCommand) -> RandomCommands.Step {
            RandomCommands.Step(command: command, context: Fixture.context(id: id))
        }
        let creation = step("c2", .registerInstall(.init(installId: "i2", device: Fixture.phone, user: .new)))
        let ids = [creation.context.newUserID(0), creation.context.newUserID(1), creation.context.newUserID(2)]
        #expect(Set(ids).count == 3)
        let list = ImportUsers(users: ids.prefix(2).map { .read(ImportedUser(userId: $0)) })
        let answers = try store.run([step("c1", .importUsers(list))]) + store.run([creation])
        guard case .install(let result) = answers[1].answer else {
            Issue.record("\(answers[1].answer)")
            return
        }
        #expect(result.userId == ids[2])
        // Of its own command it stays known: L20.
        #expect(try store.run([creation])[0].answer == answers[1].answer)
    }

    /// L157.
    @Test func anUnlinkedUserIsGivenToOneCreation() throws {
        let desk = Desk()
        desk.bring(ImportedUser(userId: Self.anna, installs: [Self.on("i1")]))
        #expect(desk.told(InstallRegistered.self).map(\.cause) == [.importing])
        guard case .install(let result) = desk.register("i1") else { return }
        #expect(result.userId == Self.anna && result.isActive && !result.isUsersFirst)
        #expect(desk.register("i1") == .rejected(.userAlreadyExists))
    }

    /// L157, L54. Who says who is there means somebody else.
    @Test func toAnyOtherCreationItIsALeftover() {
        let desk = Desk()
        desk.bring([
            ImportedUser(userId: Self.anna, installs: [Self.on("i1")]),
            ImportedUser(userId: Self.bert, externalId: "bert", installs: [Self.on("i2")]),
        ])
        #expect(desk.create("i1", "carl") == .rejected(.cannotLinkExistingPersonToOtherPerson))
        #expect(desk.register("i2") == .rejected(.userAlreadyExists))
        #expect(desk.create("i2", "carl") == .rejected(.installLinkedToOtherUser))
        // L14: the backend says who it is.
        guard case .link(let result) = desk.run(Fixture.request("i1", "anna")) else { return }
        #expect(result.userId == Self.anna && !result.personCreated)
        #expect(desk.register("i1") == .rejected(.userAlreadyExists))
    }

    /// L9: a code on the install on which the user is imported changes nothing, and one on another takes over.
    @Test func aLinkedUserComesBackByACode() {
        let desk = Desk()
        desk.bring(
            ImportedUser(
                userId: Self.anna, externalId: "anna", installs: [Self.on("i1", isActive: true), Self.on("i2")]))
        #expect(desk.told(Linked.self).map(\.cause) == [.importing, .importing])
        #expect(desk.told(Linked.self).map(\.personCreated) == [true, false])
        guard case .link(let same) = desk.create("i1", "anna"), case .link(let other) = desk.create("i2", "anna") else {
            return
        }
        #expect(same.userId == Self.anna && same.isActive && !same.personCreated)
        #expect(other.userId == Self.anna && other.isActive)
        #expect(desk.activity("i1") == .deactivated)
        #expect(desk.told(InstallStatusChanged.self).map(\.installId) == ["i1"])
    }

    /// L159.
    @Test func nothingIsToldWhereNobodyWantsToHear() {
        let desk = Desk()
        let users = [
            ImportedUser(
                userId: Self.anna, externalId: "anna", installs: [Self.on("i1"), Self.on("i2", isActive: true)]),
            ImportedUser(userId: Self.bert, installs: [Self.on("i3")]),
        ]
        #expect(desk.bring(users, events: false).map(\.outcome) == [.created, .created])
        #expect(desk.last?.told == [])
        let loud = Desk()
        loud.bring(users)
        #expect(loud.state.installs.rows == desk.state.installs.rows)
        #expect(loud.told(Linked.self).map(\.activeInstallId) == ["i2", "i2"])
    }

    /// L69: nobody is on more installs than support could repair, also not by several lists.
    @Test func nobodyIsOnTooManyInstalls() {
        let most = LinkDecider.mostRepaired
        func anna(_ numbers: Range<Int>) -> ImportedUser {
            ImportedUser(
                userId: Self.anna, externalId: "anna", installs: numbers.map { Self.on(InstallID("i\($0)")) })
        }
        let desk = Desk()
        #expect(desk.bring(anna(0..<most + 1))?.reason == .limitExceeded)
        #expect(desk.bring(anna(0..<most))?.outcome == .created)
        #expect(desk.bring(anna(most..<most + 1), upsert: true)?.reason == .limitExceeded)
        let other = Desk()
        other.bring(anna(1..<most))
        #expect(other.bring(anna(0..<1), upsert: true)?.outcome == .changed)
    }

    /// L158: two lists of the same people meet in a row, whatever the second finds of them.
    @Test func twoListsMeet() throws {
        let desk = Desk()
        desk.bring([
            ImportedUser(userId: Self.anna, externalId: "anna"), ImportedUser(userId: Self.bert, externalId: "bert"),
        ])
        func list(_ changed: UserID, _ name: ExternalID, _ same: UserID, _ other: ExternalID) -> LinkCommand {
            .importUsers(
                ImportUsers(
                    users: [
                        .read(
                            ImportedUser(
                                userId: changed, externalId: name, installs: [Self.on(InstallID("of-\(name)"))])),
                        .read(
                            ImportedUser(userId: same, externalId: other, installs: [Self.on(InstallID("of-\(other)"))])
                        ),
                    ], upsert: true))
        }
        var skew = WriteSkew(LinkService()) { state in
            LinkState(installs: Array(state.installs.values), persons: Array(state.persons.values))
        }
        let one = list(Self.anna, "anna", Self.bert, "bert")
        let other = ImportUsers(
            users: [
                .read(ImportedUser(userId: Self.bert, externalId: "bert", installs: [Self.on("of-bert")])),
                .read(ImportedUser(userId: Self.anna, externalId: "anna")),
            ], upsert: true)
        try skew.pair(
            [(one, Fixture.context(id: "a")), (.importUsers(other), Fixture.context(id: "b"))], on: desk.state,
            "by hand")
        #expect(skew.changing == 1 && skew.meeting == 1)
    }
}
