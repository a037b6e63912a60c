// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing
import WireJSON

@testable import Link
@testable import Runtime

/// Load, decide, save on real databases.
@Suite struct LinkServiceTests {
    @Test(arguments: SQLEngine.allCases) func rowsComeBackAsTheyWereSaved(_ engine: SQLEngine) throws {
        let store = try LinkTestStore(engine)
        var state = LinkState()
        var installs = [
            Install(
                id: "i1", app: "demo", device: Fixture.tablet, status: .disabled, userID: "u1", activity: .standby,
                isUsersFirst: true, version: 1 << 40),
            Install(id: "\u{e9}'\"\\ \u{1F44B}", app: "a'b", device: Fixture.phone, isOpen: true),
            Install(
                id: "i3", app: "demo", device: Fixture.device(.other), status: .deleted, userID: "u1",
                activity: .deactivated),
            Fixture.install("i4", of: "u1", .suspended, status: .disabled),
            Fixture.install("i1", app: "a'b"),
        ]
        installs[0].superseded = [
            .init(installID: "i'3", version: 7, wasSuspended: true),
            .init(installID: "i4", version: 0, wasSuspended: false),
        ]
        installs[1].turn = Moment(milliseconds: 1 << 40, isBrokers: true)
        installs[4].turn = Moment(milliseconds: -5)
        installs[2].erasedAt = 1 << 41
        let persons = [
            Person(userID: "u1", app: "demo", externalID: "Ren\u{e9} %_'"),
            Person(userID: "u2", app: "demo", linkedAt: -7), Person(userID: "u3", app: "demo", isErased: true),
        ]
        var erasure = Erasure(
            app: "demo", userID: "u3", moment: Timestamp(milliseconds: 4), externalID: "Ren\u{e9} %_'",
            installIDs: ["i1", "i'2"],
            certificate: .part(.init(link: .init(persons: 1, installs: 2))))
        erasure.user = .asked(forward: "f1")
        erasure.sync = .asked(forward: "f2")
        erasure.waiting = [
            .init(Fixture.context().command, .erased),
            .init(Fixture.context(id: "c2").command, .forgotten(also: "u4")),
        ]
        state.apply(.erasure(erasure))
        installs.forEach { state.apply(.install($0)) }
        persons.forEach { state.apply(.person($0)) }
        let saved = state
        try store.database.transaction { try LinkStore(transaction: $0).save(saved) }
        try store.database.transaction { (transaction) throws in
            let reader = LinkStore(transaction: transaction)
            #expect(Set(try reader.installs(ids: Set(installs.map { $0.id } + ["no"]))) == Set(installs))
            let keys = Set(installs.map(\.key)).union([Install.Key(app: "other", id: "i1")])
            #expect(Set(try reader.installs(keys)) == Set(installs))
            #expect(Set(try reader.persons(userIDs: ["u1", "u2", "u3", "no"])) == Set(persons))
            let key = Scoped<ExternalID>(app: "demo", id: "Ren\u{e9} %_'")
            #expect(try reader.persons([key]) == [persons[0]])
            #expect(try reader.persons([Scoped(app: "other", id: "Ren\u{e9} %_'")]).isEmpty)
            #expect(try reader.usedInstalls(of: ["u1"]).filter(\.isActive).isEmpty)
            #expect(Set(try reader.allInstalls(of: ["u1"])) == [installs[0], installs[2], installs[3]])
            #expect(try reader.erasures(of: ["u3", "u1"]) == [erasure])
            #expect(try reader.erasures(awaiting: ["f1", "f9"]) == [erasure])
            #expect(try reader.erasures(awaiting: ["f2"]) == [erasure])
        }
    }

    /// The heart of it: however commands are grouped into batches, the answers and the tables are the same.
    @Test(arguments: SQLEngine.allCases) func batchesOfAnySizeEqualOneByOne(_ engine: SQLEngine) throws {
        try runSequences(engine == .sqlite ? 40 : 10) { seed in
            var source = RandomCommands(seed: seed)
            let single = try LinkTestStore(engine)
            let batched = try LinkTestStore(engine)
            var steps: [RandomCommands.Step] = []
            var expected: [LinkDecider.Decision] = []
            for _ in 0..<60 {
                let step = source.next(
                    users: try users(single).map(UserID.init(_:)), forwards: expected.flatMap { $0.forwards.map(\.id) })
                steps.append(step)
                expected += try single.run([step])
            }
            let trace = Comment(rawValue: "seed \(seed)")
            var place = 0
            while place < steps.count {
                let size = min(Int.random(in: 1...25, using: &source.random), steps.count - place)
                let decisions = try batched.run(Array(steps[place..<place + size]))
                for (index, decision) in decisions.enumerated() {
                    let there = Comment(rawValue: "\(trace), step \(place + index): \(steps[place + index].command)")
                    try #require(decision.answer == expected[place + index].answer, there)
                    try #require(decision.told == expected[place + index].told, there)
                    try #require(decision.sent == expected[place + index].sent, there)
                    try #require(decision.settled == expected[place + index].settled, there)
                }
                place += size
            }
            try #require(try batched.rows() == single.rows(), trace)
        }
    }

    /// L50, L53. A tablet waits behind two creations, of which one is active only when the other has failed: both are found.
    @Test(arguments: SQLEngine.allCases) func whoSupersededATabletIsFound(_ engine: SQLEngine) throws {
        let store = try LinkTestStore(engine)
        func run(_ command: LinkCommand, _ id: String) throws -> LinkDecider.Decision? {
            try store.run([.init(command: command, context: Fixture.context(id: CommandID(id)))]).first
        }
        func establish(_ name: InstallID, _ device: Device) -> LinkCommand {
            .establish(EstablishLink(installId: name, device: device, externalId: "anna", mode: .create))
        }
        func failure(of name: InstallID) -> LinkCommand {
            .detachInstall(DetachInstall(installId: name, cause: .creationFailed))
        }
        _ = try run(establish("tablet", Fixture.tablet), "c1")
        _ = try run(establish("one", Fixture.phone), "c2")
        _ = try run(establish("two", Fixture.phone), "c3")
        _ = try run(establish("tablet", Fixture.tablet), "c4")
        _ = try run(failure(of: "two"), "c5")
        let last = try run(failure(of: "one"), "c6")
        let restored = last?.events.compactMap { $0 as? InstallStatusChanged }.map(\.installId)
        #expect(restored == ["tablet"])
    }

    private func users(_ store: LinkTestStore) throws -> [String] {
        try store.database.transaction { transaction in
            try transaction.query("SELECT user_id FROM persons ORDER BY user_id").map { try $0.text(0) }
        }
    }

    /// Erased and linked anew in one batch: the second must not stumble over the first one's row.
    @Test(arguments: SQLEngine.allCases, 0..<8) func anExternalIDMovesWithinABatch(_ engine: SQLEngine, _ number: Int)
        throws
    {
        let store = try LinkTestStore(engine)
        func step(_ command: LinkCommand, _ id: CommandID) -> RandomCommands.Step {
            RandomCommands.Step(command: command, context: Fixture.context(id: id))
        }
        let first = Fixture.context(id: "first").newUserID
        _ = try store.run([
            step(.registerInstall(RegisterInstall(installId: "i1", device: Fixture.phone, user: .none)), "r1"),
            step(.registerInstall(RegisterInstall(installId: "i2", device: Fixture.phone, user: .none)), "r2"),
            step(Fixture.request("i1", "anna"), "first"),
        ])
        let decisions = try store.run([
            step(.eraseUser(EraseUser(userId: first)), "erase"),
            step(Fixture.request("i2", "anna"), CommandID("second\(number)")),
        ])
        let second = Fixture.context(id: CommandID("second\(number)")).newUserID
        #expect(
            decisions[1].answer
                == .link(LinkResult(userId: second, installId: "i2", isActive: true, personCreated: true)))
    }

    /// Nobody else is kept from it any more, and then it is given up again.
    @Test(arguments: SQLEngine.allCases) func anExternalIDIsHeldTwice(_ engine: SQLEngine) throws {
        let store = try LinkTestStore(engine)
        let app = AppSettings(id: Fixture.app.id, linking: .init(hold: 10))
        func run(_ command: LinkCommand, _ now: Int64) throws -> Answer {
            let context = Fixture.context(app, id: CommandID("c\(now)"), moment: Moment(milliseconds: now), now: now)
            return try store.run([RandomCommands.Step(command: command, context: context)])[0].answer
        }
        for (number, name) in ["carol", "bea"].enumerated() {
            let (install, now) = (InstallID("i\(number)"), Int64(number) * 1000 + 1000)
            let register = RegisterInstall(installId: install, device: Fixture.phone, user: .none)
            _ = try run(.registerInstall(register), now)
            _ = try run(Fixture.request(install, "anna"), now + 1)
            let rename = ChangeExternalID(
                externalId: "anna", newExternalId: ExternalID(name), author: "clerk", reason: "test")
            guard case .user = try run(.changeExternalID(rename), now + 2) else {
                Issue.record("refused")
                return
            }
        }
    }

    /// Two persons are renamed in one batch, the second to what the first one was called. Nothing is held.
    @Test(arguments: SQLEngine.allCases, 0..<8) func anExternalIDIsTakenOverWithinABatch(
        _ engine: SQLEngine, _ number: Int
    ) throws {
        let store = try LinkTestStore(engine)
        let app = AppSettings(id: Fixture.app.id, linking: .init(hold: 0))
        var now: Int64 = 0
        func step(_ command: LinkCommand, _ id: CommandID) -> RandomCommands.Step {
            now += 10
            let moment = Moment(milliseconds: now)
            return RandomCommands.Step(
                command: command, context: Fixture.context(app, id: id, moment: moment, now: now))
        }
        func rename(_ old: ExternalID, _ new: ExternalID, _ id: CommandID) -> RandomCommands.Step {
            step(
                .changeExternalID(
                    ChangeExternalID(externalId: old, newExternalId: new, author: "clerk", reason: "test")), id)
        }
        for (install, name) in [("i1", "anna"), ("i2", "bea")] {
            let register = RegisterInstall(installId: InstallID(install), device: Fixture.phone, user: .none)
            _ = try store.run([
                step(.registerInstall(register), CommandID("r-\(install)")),
                step(Fixture.request(InstallID(install), ExternalID(name)), CommandID("l-\(install)-\(number)")),
            ])
        }
        _ = try store.run([rename("anna", "carol", "n1"), rename("bea", "anna", "n2"), rename("carol", "bea", "n3")])
        try store.database.transaction { (transaction) throws in
            let keys = ["anna", "bea", "carol"].map { Scoped<ExternalID>(app: app.id, id: $0) }
            let persons = try LinkStore(transaction: transaction).persons(Set(keys))
            let first = Fixture.context(app, id: CommandID("l-i1-\(number)")).newUserID
            let second = Fixture.context(app, id: CommandID("l-i2-\(number)")).newUserID
            #expect(
                Dictionary(uniqueKeysWithValues: persons.map { ($0.externalID, $0.userID) }) == [
                    "anna": second, "bea": first,
                ])
        }
    }

    /// A forgotten command comes again behind an erasure of its external id's present owner: its own person was erased
    /// before and stays erased.
    @Test(arguments: SQLEngine.allCases) func aTombstoneIsSeenWhenTheExternalIDBecomesFreeInTheBatch(
        _ engine: SQLEngine
    ) throws {
        let store = try LinkTestStore(engine)
        func step(_ command: LinkCommand, _ id: CommandID) -> RandomCommands.Step {
            RandomCommands.Step(command: command, context: Fixture.context(id: id))
        }
        for install in ["i1", "i2", "i3"] {
            let register = RegisterInstall(installId: InstallID(install), device: Fixture.phone, user: .none)
            _ = try store.run([step(.registerInstall(register), CommandID("r-\(install)"))])
        }
        let first = Fixture.context(id: "first").newUserID
        let second = Fixture.context(id: "second").newUserID
        _ = try store.run([step(Fixture.request("i1", "anna"), "first")])
        _ = try store.run([step(.eraseUser(EraseUser(userId: first)), "e1")])
        _ = try store.run([step(Fixture.request("i2", "anna"), "second")])
        let decisions = try store.run([
            step(.eraseUser(EraseUser(userId: second)), "e2"), step(Fixture.request("i3", "anna"), "first"),
        ])
        #expect(decisions[1].answer == .rejected(.userErased))
        try store.database.transaction { (transaction) throws in
            let persons = try LinkStore(transaction: transaction).persons(userIDs: [
                first, second,
            ])
            #expect(persons.map(\.isErased) == [true, true])
        }
    }

    @Test func knowsItsCommandsAndTheirScopes() throws {
        #expect(LinkService.name == "link")
        let scopes: [String: Scope] = [
            "identity.link.request.v1": .userLink, "identity.link.register-install.v1": .internal,
            "identity.link.establish.v1": .internal, "identity.link.query.v1": .internal,
            "identity.link.detach-install.v1": .internal, "identity.link.set-install-status.v1": .admin,
            "identity.link.erase-user.v1": .userDelete, "identity.link.forget.v1": .internal,
            "identity.link.get-erasure.v1": .userDelete, "identity.link.get-user.v1": .support,
            "identity.link.make-active.v1": .support, "identity.link.unlink-user.v1": .support,
            "identity.link.change-external-id.v1": .support, "identity.link.facts.v1": .support,
            "identity.link.import-users.v1": .importing, "identity.link.expire-user.v1": .internal,
        ]
        #expect(LinkService.inputs.scopes() == scopes)
    }

    @Test func readsTheOthersAnswers() throws {
        func read(_ status: JSONValue, _ result: JSONValue = .null) throws -> LinkCommand {
            try LinkService.inputs.read(
                "identity.reply.v1",
                [
                    "commandId": "f", "commandType": .string(ForgetProfiles.type), "commandDigest": "d",
                    "status": status,
                    "reason": "BRAND_NEW", "message": "m", "result": result,
                ])
        }
        let part = ErasureCertificate.part(.init(sync: .init(profiles: 1)))
        let result = try JSONValue(parsing: WireJSONEncoder().encode(part))
        #expect(try read("succeeded", result) == .answered(ForgetAnswer(forward: "f", outcome: .done(part))))
        let silent = "The sync service did not say what it erased."
        #expect(try read("succeeded", [:]) == .answered(ForgetAnswer(forward: "f", outcome: .refused(silent))))
        #expect(try read("pending") == .answered(ForgetAnswer(forward: "f", outcome: .pending)))
        let why = "The sync service answered BRAND_NEW: m"
        for status in ["rejected", "expired", "postponed"] as [JSONValue] {
            #expect(try read(status) == .answered(ForgetAnswer(forward: "f", outcome: .refused(why))))
        }
        #expect(throws: Rejection.self) { try read(nil) }
    }

    @Test func decodesAndValidates() throws {
        let data: JSONValue = ["installId": "i1", "externalId": "anna", "more": 1]
        #expect(
            try LinkService.inputs.read("identity.link.request.v1", data) == Fixture.request("i1", "anna"))
        #expect(throws: Rejection.self) {
            try LinkService.inputs.read("identity.link.request.v1", ["installId": "", "externalId": "anna"])
        }
        #expect(throws: (any Error).self) {
            try LinkService.inputs.read("identity.link.request.v1", ["installId": "i1"])
        }
    }
}
