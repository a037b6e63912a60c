// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Storage
import TestKit
import Testing
import WireJSON

@testable import Runtime
@testable import User

/// Load, decide, save on real databases.
@Suite struct UserServiceTests {
    private func create(_ install: InstallID, code: String) -> UserCommand {
        .create(CreateUser(installId: install, device: Fixture.phone, authCode: code))
    }

    @Test(arguments: SQLEngine.allCases) func rowsComeBackAsTheyWereSaved(_ engine: SQLEngine) throws {
        let store = try UserTestStore(engine)
        var account = Fixture.account(1 << 40, redeemed: ("d", .create))
        account.registration.device = Fixture.tablet
        account.registration.sdkVersion = "6"
        account.registration.appVersion = "1"
        let code = HeldCode(
            externalID: "Ren\u{e9} '\"\\", digest: CodeDigest(of: "c"), moment: Timestamp(milliseconds: 0))
        var link = PendingLink(commands: Beginners(Waiting(Fixture.key("a"))), step: .asking(code, forward: "f1"))
        link.commands.repeats = [Waiting(Fixture.key("b"))]
        let full = Installation(app: "demo", id: "\u{e9}'\"\\ \u{1F44B}", .linking(account, link))
        let bare = Fixture.present(Fixture.account(user: "other"), app: "other", id: "i2")
        let codes = [
            Fixture.code("c", "Ren\u{e9} %_'"), Fixture.code("d", use: .reserved(installID: "i1")),
            Fixture.code("e", use: .used(installID: "i2")),
        ]
        try store.write(
            [full, bare].map { .install($0) } + codes.map { .code($0) } + [.user(id: "u9", isErased: true)])
        try store.read { (reader) throws in
            #expect(
                try reader.installs([full.key, bare.key, InstallKey(app: "demo", id: "i2")]).sorted { $0.app < $1.app }
                    == [full, bare])
            #expect(try reader.installs(awaiting: ["f1", "f2"]) == [full])
            #expect(try reader.installs(of: [Fixture.userID]) == [full])
            #expect(Set(try reader.codes(Set((codes.map(\.digest)) + [CodeDigest(of: "no")]))) == Set(codes))
            #expect(try reader.codes(of: [Scoped(app: "demo", id: "Ren\u{e9} %_'")]) == [codes[0]])
            #expect(try reader.codes(of: [Scoped(app: "other", id: "anna")]).isEmpty)
            #expect(try reader.erased(among: ["u9", "u8"]) == ["u9"])
        }
        // An erased user stays erased, whoever writes it; others are forgotten with their last install.
        try store.write([.user(id: "u9", isErased: false), .user(id: "u8", isErased: false)])
        try store.read { (reader) throws in #expect(try reader.erased(among: ["u9", "u8"]) == ["u9"]) }
        #expect(try store.count("users") == 2)
    }

    @Test(arguments: State.allCases) func everyStateComesBack(_ state: State) throws {
        let store = try UserTestStore(.sqlite)
        for install in state.installs.compactMap(\.self) {
            try store.write([.install(install)])
            try store.read { (reader) throws in #expect(try reader.installs([install.key]) == [install]) }
            try store.write([.remove(install.key)])
        }
    }

    /// Everything that may wait, be named or have gone wrong, in the states that have it.
    @Test func whatGoesOnComesBackWhole() throws {
        func waits(_ ids: CommandID...) -> [Waiting] { ids.map { Waiting(Fixture.key($0)) } }
        var commands = Beginners(Waiting(Fixture.key("c1")))
        commands.repeats = waits("c2", "c3")
        let confirmation = Confirmation(
            commands: waits("c4", "c5"), externalIDs: ["bert", "anna"], resets: waits("c6"), forward: "f1")
        let question = Creation.Question(
            want: .user(by: .unlinked, resets: waits("c7")), attempt: .second, forward: "f1", expiry: Fixture.start)
        func creating(_ step: Creation.Step) -> Installation.State {
            .creating(
                Creation(
                    registration: Fixture.registration, moment: Timestamp(milliseconds: -1), facts: Fixture.facts(7),
                    commands: commands, step: step))
        }
        func failed(_ failure: Failure) -> Installation.State {
            let failed = FailedCreation(
                registration: Fixture.registration, commands: commands, confirmations: waits("c8"), failure: failure)
            return .resetting(
                Reset(cause: .failure(failed), facts: Fixture.facts(waitsForPhone: true), resets: [], forward: "f1"))
        }
        let states = [
            creating(.confirming(confirmation)), creating(.asking(question)), failed(.expired),
            failed(.appSideLinkingFailed),
            .linking(Fixture.account(), PendingLink(commands: commands, step: .confirming(confirmation))),
        ]
        let store = try UserTestStore(.sqlite)
        for (number, state) in states.enumerated() {
            let install = Installation(app: "demo", id: InstallID("i\(number)"), state)
            try store.write([.install(install)])
            try store.read { (reader) throws in #expect(try reader.installs([install.key]) == [install]) }
        }
    }

    @Test(arguments: SQLEngine.allCases) func aCycleOfCreationAndResetLeavesNothing(_ engine: SQLEngine) throws {
        let store = try UserTestStore(engine)
        for cycle in 0..<3 {
            let create = CreateUser(
                installId: "i1", device: Fixture.phone, appSecret: Fixture.secret, linking: Linking.none)
            let begun = try store.run([.create(create)], id: CommandID("create\(cycle)"))
            let forward = try #require(begun[0].forwards.first?.id)
            let facts = Fixture.facts(Int64(2 * cycle + 1), user: UserID("u\(cycle)"), isLinked: false)
            _ = try store.run(
                [.answered(LinkAnswer(forward: forward, outcome: .facts(facts)))], id: CommandID("answer\(cycle)"))
            #expect(try store.count("users") == 1)
            let reset = try store.run([.reset(ResetUser(installId: "i1"))], id: CommandID("reset\(cycle)"))
            let detach = try #require(reset[0].forwards.first?.id)
            let gone = LinkFacts.nothing
            _ = try store.run(
                [.answered(LinkAnswer(forward: detach, outcome: .facts(gone)))], id: CommandID("gone\(cycle)"))
            #expect(try store.count("installations") == 0)
            #expect(try store.count("users") == 0)
        }
    }

    @Test(arguments: SQLEngine.allCases) func oneCodeServesOneInstallOfABatch(_ engine: SQLEngine) throws {
        let store = try UserTestStore(engine)
        try store.write([.code(Fixture.code("c"))])
        let decisions = try store.run([create("i1", code: "c"), create("i2", code: "c")], id: "x")
        #expect(decisions.map(\.answer) == [.pending(.platform), .rejected(.authCodeUsed)])
        let later = try store.run([create("i3", code: "c")], id: "y")
        #expect(later.map(\.answer) == [.rejected(.authCodeUsed)])
    }

    /// Two replicas decide about one code at once: the second to commit is told to decide again.
    @Test func twoReplicasMeetInTheCodesRow() throws {
        let store = try UserTestStore(.postgresql)
        try store.write([.code(Fixture.code("c"))])
        let service = UserService()
        let (first, second) = (Fixture.context(id: "a"), Fixture.context(id: "b"))
        #expect(throws: (any Error).self) {
            try store.database.transaction { transaction in
                var state = try service.load([(create("i1", code: "c"), first)], in: transaction)
                _ = try store.run([create("i2", code: "c")], id: second.command.id)
                service.decide(create("i1", code: "c"), state, first).changes.forEach { state.apply($0) }
                try service.save(state, in: transaction)
            }
        }
        #expect(try store.run([create("i1", code: "c")], id: "again").map(\.answer) == [.rejected(.authCodeUsed)])
    }

    /// A creation ends while its user is erased elsewhere.
    @Test func anErasureMeetsTheCreationInTheUsersRow() throws {
        let store = try UserTestStore(.postgresql)
        let begun = try store.run(
            [
                .create(
                    CreateUser(installId: "i1", device: Fixture.phone, appSecret: Fixture.secret, linking: Linking.none)
                )
            ],
            id: "create")
        let answer = UserCommand.answered(
            LinkAnswer(
                forward: try #require(begun[0].forwards.first?.id), outcome: .facts(Fixture.facts(isLinked: false))))
        let service = UserService()
        let context = Fixture.context(id: "answer")
        #expect(throws: (any Error).self) {
            try store.database.transaction { transaction in
                var state = try service.load([(answer, context)], in: transaction)
                _ = try store.run([.forget(ForgetUser(userId: Fixture.userID))], id: "erase")
                service.decide(answer, state, context).changes.forEach { state.apply($0) }
                try service.save(state, in: transaction)
            }
        }
        let again = try store.run([answer], id: "answer")
        #expect(again[0].settled == ["create 0": .rejected(.userErased)])
        #expect(try store.count("installations") == 0)
    }

    /// Of an erased user nothing stays in any table but its id.
    @Test(arguments: SQLEngine.allCases) func anErasedUserLeavesItsIDOnly(_ engine: SQLEngine) throws {
        let store = try UserTestStore(engine)
        let hers = Fixture.present(Fixture.account(redeemed: ("c", .create)))
        let foreign = Fixture.present(Fixture.account(user: "other"), id: "i2")
        try store.write(
            [hers, foreign].map { .install($0) }
                + [
                    .code(Fixture.code("c", use: .used(installID: "i1"))), .code(Fixture.code("d")),
                    .code(Fixture.code("e", "bert")), .user(id: Fixture.userID, isErased: false),
                ])
        let command = UserCommand.forget(
            ForgetUser(userId: Fixture.userID, externalId: "anna", installIds: ["i1", "i9"]))
        #expect(try store.run([command], id: "forget").map(\.answer) == [.forgotten(1)])
        try store.read { (reader) throws in
            #expect(try reader.installs([hers.key, foreign.key]) == [foreign])
            #expect(try reader.codes(of: [Scoped(app: "demo", id: "anna")]).isEmpty)
            #expect(try reader.codes(of: [Scoped(app: "demo", id: "bert")]).count == 1)
            #expect(try reader.erased(among: [Fixture.userID]) == [Fixture.userID])
        }
        #expect(try store.run([command], id: "again").map(\.answer) == [.forgotten(0)])
    }

    @Test(arguments: SQLEngine.allCases) func linkersBecomeDueAndCodesAreForgotten(_ engine: SQLEngine) throws {
        let store = try UserTestStore(engine)
        let create = CreateUser(installId: "i1", device: Fixture.phone, appSecret: Fixture.secret, linking: .linker)
        _ = try store.run([.create(create)], id: "c")
        try store.write([
            .code(Fixture.code("old")), .code(Fixture.code("used", use: .used(installID: "i1"))),
            .code(Fixture.code("held", use: .reserved(installID: "i1"))),
        ])
        func due(_ minutes: Int64) throws -> [DueCommand] {
            try store.database.transaction {
                let now = Timestamp(milliseconds: Fixture.start.milliseconds + minutes * Fixture.minute)
                return try UserService().due(now: now, limit: 10, in: $0)
            }
        }
        #expect(try due(9).isEmpty)
        let found = try due(10)
        #expect(found.map(\.app) == ["demo"])
        #expect(
            found.first?.command as? ExpireLinker
                == ExpireLinker(installId: "i1", commandSource: "test", commandId: "c 0"))
        #expect(
            found.first?.id
                == DerivedID.forward(of: CommandKey(app: "demo", source: "test", id: "c 0"), number: 1_000_000),
            "the same whoever asks")
        #expect(try due(10).isEmpty, "put off")
        let again = try due(11)
        #expect(again.map(\.id) == found.map(\.id) && again.map(\.dueAt) == found.map(\.dueAt))
        #expect(found.map(\.dueAt.milliseconds) == [Fixture.start.milliseconds + 10 * Fixture.minute])
        #expect(try store.count("auth_codes") == 3)
        _ = try due(71)
        #expect(try store.count("auth_codes") == 1, "a creation goes on with it")
    }

    @Test func knowsItsCommandsAndTheirScopes() throws {
        let scopes: [String: Scope] = [
            "identity.user.request-auth-code.v1": .userLink, "identity.user.create.v1": .sdk,
            "identity.user.link.v1": .sdk, "identity.user.confirm-link.v1": .sdk, "identity.user.reset.v1": .sdk,
            "identity.user.get.v1": .sdk, "identity.user.facts.v1": .support,
            "identity.user.expire-linker.v1": .internal,
            "identity.user.forget.v1": .internal, "identity.user.expire-user.v1": .internal,
        ]
        #expect(UserService.inputs.scopes() == scopes)
    }

    /// A later version of the link service may have reasons that this one does not know: the saga ends all the same.
    @Test func readsAnyAnswer() throws {
        func read(_ data: JSONValue) throws -> UserCommand {
            try UserService.inputs.read("identity.reply.v1", data)
        }
        let base: [(String, JSONValue)] = [
            ("commandId", "f"), ("commandType", .string(EstablishLink.type)), ("commandDigest", "d"),
        ]
        func reply(_ more: (String, JSONValue)...) -> JSONValue {
            var object = JSONObject()
            for (name, value) in base + more { object[name] = value }
            return .object(object)
        }
        #expect(
            try read(reply(("status", "rejected"), ("reason", "BRAND_NEW"), ("message", "m")))
                == .answered(LinkAnswer(forward: "f", outcome: .rejected(Rejection(.serverError, "m")))))
        #expect(try read(reply(("status", "expired"))) == .answered(LinkAnswer(forward: "f", outcome: .expired)))
        let result: JSONValue = [
            "userId": "u1", "installId": "i1", "isActive": false, "personCreated": false, "version": 4,
        ]
        #expect(
            try read(reply(("status", "succeeded"), ("result", result)))
                == .answered(
                    LinkAnswer(
                        forward: "f",
                        outcome: .facts(
                            Fixture.facts(4, user: "u1", isActive: false, isUsersFirst: false, waitsForPhone: true)))))
        // What it succeeded with cannot be read, or how it ended is not known.
        let unread = UserCommand.answered(LinkAnswer(forward: "f", outcome: .rejected(Rejection(.serverError))))
        #expect(try read(reply(("status", "succeeded"))) == unread)
        #expect(try read(reply(("status", "succeeded"), ("result", ["userId": 1]))) == unread)
        #expect(try read(reply(("status", "postponed"))) == unread)
    }
}

typealias UserTestStore = ServiceStore<UserService>

extension ServiceStore where Service == UserService {
    func write(_ changes: [UserState.Change]) throws {
        var state = UserState()
        changes.forEach { state.apply($0) }
        let changed = state
        try database.transaction { try UserStore(transaction: $0).save(changed) }
    }

    func read(_ body: (UserStore) throws -> Void) throws {
        try database.transaction { try body(UserStore(transaction: $0)) }
    }

    /// On PostgreSQL on a connection of its own, beside what ``database`` is busy with.
    func run(_ commands: [UserCommand], id: CommandID) throws -> [UserDecider.Decision] {
        let steps = commands.enumerated().map { ($1, Fixture.context(id: CommandID("\(id) \($0)"))) }
        return try run(UserService(), steps, on: database.engine == .postgresql ? another() : nil)
    }
}
