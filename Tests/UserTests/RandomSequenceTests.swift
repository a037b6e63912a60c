// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing

@testable import Link
@testable import Runtime
@testable import User

/// Random sequences through both deciders, with topics that reorder, duplicate and delay, and with crashes.
@Suite struct RandomSequenceTests {
    // MARK: One command at a time: the same answers, events and state as a naive model

    @Test func serviceAndModelAgree() throws {
        var reached: [String: Int] = [:]
        let reasons: [ReasonCode] = [
            .noUser, .userAlreadyExists, .userAlreadyLinked, .userCreationInProgress, .userLinkingInProgress,
            .noLinkingInProgress, .userDisabledRemotely, .appSideLinkingFailed, .authCodeInvalid, .authCodeExpired,
            .authCodeUsed, .authCodeLimitReached, .appSecretInvalid, .userLinkingNotConfigured, .invalidRequest,
            .installDeleted, .installDisabled, .cannotLinkExistingPersonToOtherPerson,
            .sdkResetInProgress, .userErased,
        ]
        let events: [any EventMessage.Type] = [
            AuthCodeIssued.self, UserCreated.self, UserRestored.self, UserLinked.self, UserUnlinked.self,
            UserCreationFailed.self,
            UserActivated.self, UserReset.self, UserForgotten.self,
        ]
        let causes: [UserDeactivated.Cause] = [.superseded, .disabled, .deleted, .erased]
        let kinds = ["expired", "reset"] + events.map { $0.type } + causes.map(\.rawValue)
        func missing() -> [String] { (reasons.map(\.rawValue) + kinds).filter { reached[$0] == nil } }
        try runSequences(300, until: { missing().isEmpty }) { try runInTurn(seed: $0, &reached) }
        // A test that never reaches an answer proves nothing about it.
        #expect(missing() == [], "\(reached)")
    }

    private func runInTurn(seed: UInt64, _ reached: inout [String: Int]) throws {
        var world = World(seed: seed)
        var model = NaiveUserModel()
        var commands = RandomCommands(seed: seed)
        let names = Names()
        var sent: Set<CommandID> = []
        var ended: Set<CommandID> = []
        for place in 0..<40 {
            let (command, app) = commands.next()
            let id = CommandID("c\(place)")
            let trace = Comment(rawValue: "seed \(seed), step \(place): \(app.id) \(command)")
            let before = (model: model, events: world.events.count)
            var asked: LinkCommand?
            var expected: [CommandID: Answer] = [:]
            // Of two changes of one person's external id the second is later (L76), and the model does not know by how much.
            if command.isAboutLinks { world.now.milliseconds += 1 }
            switch command {
            case .wait:
                world.now.milliseconds += RandomCommands.wait
                world.sendDue()
                world.drain()
                expected = model.expire(now: world.now.milliseconds, Self.app)
            case .user(let command):
                world.send(command, id, app)
                sent.insert(id)
                world.drain()
                var code: String?
                if case .code(let text)? = world.final[id] {
                    code = text
                    commands.codes.append(text)
                }
                // A crash moves the clock: a code is given out where it stands behind it.
                let told = model.run(command, id, app, now: world.now.milliseconds, code: code)
                expected = told.settled
                try #require(
                    names.same(world.first[id], told.answer) || names.same(world.final[id], told.answer),
                    "\(trace): \(String(describing: world.final[id])), not \(told.answer)")
                if case .pending = told.answer {} else { expected[id] = told.answer }
                reached[name(told.answer), default: 0] += 1
            case .link(let command, let late):
                world.send(command, id, app, late: late)
                world.drain()
                model.now = world.now.milliseconds
                model.made = model.now - late
                if case .changeExternalID(let change) = command {
                    model.rename(change, app)
                } else {
                    model.ask(command, app)
                }
                asked = command
            case .unlink(let place):
                let users = model.platform.persons.keys.sorted()
                guard !users.isEmpty else { continue }
                let user = users[place % users.count]
                let command = UnlinkUser(userId: user, author: "a", reason: "r")
                world.send(
                    .unlink(UnlinkUser(userId: UserID(names.real(user.text)), author: "a", reason: "r")), id, app)
                world.drain()
                (model.now, model.made) = (world.now.milliseconds, world.now.milliseconds)
                model.unlink(command, app)
                asked = .unlink(command)
            case .erase(let place):
                let users = model.platform.persons.keys.sorted()
                guard !users.isEmpty else { continue }
                let user = users[place % users.count]
                world.send(.eraseUser(EraseUser(userId: UserID(names.real(user.text)))), id, app)
                world.drain()
                (model.now, model.made) = (world.now.milliseconds, world.now.milliseconds)
                expected = model.erase(user, app)
            }
            for (id, answer) in expected {
                try #require(
                    names.same(world.final[id], answer),
                    "\(trace): \(id) is \(String(describing: world.final[id])), not \(answer)")
                reached[name(answer), default: 0] += 1
            }
            // Nobody else was told that it is over.
            ended.formUnion(expected.keys)
            try #require(sent.intersection(world.final.keys) == ended, trace)
            try #require(world.problems == [], trace)
            try compare(world, model, names, trace)
            let events = world.events.dropFirst(before.events).map { names.renamed($0) }
            try #require(bySubject(events) == bySubject(model.events(since: before.model, by: asked)), trace)
        }
        try Invariants.check(world, "seed \(seed)")
        for event in world.events {
            let name = (event as? UserDeactivated)?.cause.rawValue ?? type(of: event).type
            reached[name, default: 0] += 1
        }
    }

    /// Events of one subject are told in order; of two, in any.
    private func bySubject(_ events: [any EventMessage]) -> [String: [AnyHashable]] {
        Dictionary(grouping: events, by: \.subject).mapValues { $0.map { AnyHashable($0) } }
    }

    private func name(_ answer: Answer) -> String {
        switch answer {
        case .rejected(let reason): reason.rawValue
        case .user: "user"
        case .code: "code"
        default: "\(answer)"
        }
    }

    static func app(_ id: AppID) -> AppSettings {
        [Fixture.app, Fixture.otherApp, Fixture.unlinkedApp].first { $0.id == id } ?? Fixture.app
    }

    /// The platform is the same, and the devices are where the model has them.
    private func compare(_ world: World, _ model: NaiveUserModel, _ names: Names, _ trace: Comment) throws {
        for app in [Fixture.app, Fixture.otherApp, Fixture.unlinkedApp] {
            for install in (1...4).map({ "i\($0)" }) {
                let real = world.links.install(app.id, InstallID(install))
                let expected = model.platform.apps[app.id]?[InstallID(install)]
                try #require(real?.status == expected?.status, trace)
                try #require(real?.activity == expected?.activity, trace)
                if let user = real?.userID { try #require(names.same(user.text, expected?.user?.text), trace) }
                let row = world.users.install(app.id, InstallID(install))
                var state = model.devices["\(app.id)/\(install)"] ?? .none
                if state == .present, expected?.user == nil { state = .none }
                switch state {
                case .none: try #require(row == nil, trace)
                case .present: try #require(row?.phase == .present, trace)
                case .awaiting: try #require(row?.phase == .awaitingLink, trace)
                }
            }
        }
    }

    /// Both sides give new users ids of their own.
    private final class Names {
        private var real: [String: String] = [:]
        private var model: [String: String] = [:]

        func real(_ name: String) -> String { real[name] ?? name }

        func same(_ one: String?, _ other: String?) -> Bool {
            guard let one, let other else { return one == nil && other == nil }
            if model[one] == nil, real[other] == nil {
                model[one] = other
                real[other] = one
            }
            return model[one] == other && real[other] == one
        }

        func same(_ one: Answer?, _ other: Answer) -> Bool {
            if case .user(let oneID, let isLinked, let isEnabled)? = one,
                case .user(let id, let linked, let enabled) = other
            {
                return same(oneID, id) && isLinked == linked && isEnabled == enabled
            }
            return one == other
        }

        /// The event, of the model's users.
        func renamed(_ event: any EventMessage) -> any EventMessage {
            func name(_ user: UserID) -> UserID { UserID(model[user.text] ?? user.text) }
            func renamed<Event>(_ event: Event, _ user: WritableKeyPath<Event, UserID>) -> Event {
                var event = event
                event[keyPath: user] = name(event[keyPath: user])
                return event
            }
            func renamed<Event>(_ event: Event, _ user: WritableKeyPath<Event, UserID?>) -> Event {
                var event = event
                event[keyPath: user] = event[keyPath: user].map(name)
                return event
            }
            switch event {
            case let event as UserCreated: return renamed(event, \.userId)
            case let event as UserRestored: return renamed(event, \.userId)
            case let event as UserLinked: return renamed(event, \.userId)
            case let event as UserUnlinked: return renamed(event, \.userId)
            case let event as UserActivated: return renamed(event, \.userId)
            case let event as UserDeactivated: return renamed(event, \.userId)
            case let event as UserReset: return renamed(event, \.userId)
            case let event as UserForgotten: return renamed(event, \.userId)
            default: return event
            }
        }
    }

    // MARK: All at once: whatever the order, nothing is lost, doubled or half done

    /// U32.
    @Test func nothingIsHalfDone() throws {
        var crashes = 0
        var present = 0
        var overtaken = 0
        var failures = 0
        try runSequences(400) { seed in
            var world = World(seed: seed)
            var commands = RandomCommands(seed: seed)
            var sent: [String] = []
            for place in 0..<70 {
                let (command, app) = commands.next()
                let id = CommandID("c\(place)")
                switch command {
                case .wait:
                    world.now.milliseconds += RandomCommands.wait
                    world.sendDue()
                case .user(let command):
                    let expires = Int.random(in: 0..<4, using: &commands.random) == 0
                    let expiry = Timestamp(milliseconds: world.now.milliseconds + 5 * Fixture.minute)
                    world.send(command, id, app, expiry: expires ? expiry : nil)
                    sent.append(id.text)
                case .link(let command, let late): world.send(command, id, app, late: late)
                case .erase(let place):
                    let users = world.links.persons.keys.sorted()
                    guard !users.isEmpty else { continue }
                    world.send(.eraseUser(EraseUser(userId: users[place % users.count])), id, app)
                    sent.append(id.text)
                case .unlink(let place):
                    let users = world.links.persons.keys.sorted()
                    guard !users.isEmpty else { continue }
                    let user = users[place % users.count]
                    world.send(.unlink(UnlinkUser(userId: user, author: "a", reason: "r")), id, app)
                }
                for _ in 0..<Int.random(in: 0..<12, using: &commands.random) where !world.step() { break }
                commands.codes = world.final.values.compactMap { if case .code(let text) = $0 { text } else { nil } }
                    .sorted()
            }
            world.drain()
            for _ in 0..<2 {
                world.now.milliseconds += 60 * Fixture.minute
                world.sendDue()
                world.drain()
            }
            let trace = "seed \(seed)"
            let unanswered = sent.filter { world.final[CommandID($0)] == nil }
            try #require(unanswered == [], "\(trace)")
            try #require(world.problems == [], "\(trace)")
            try Invariants.check(world, trace)
            crashes += world.crashes
            present += world.users.installs.values.count { $0.phase == .present }
            overtaken += world.overtaken
            failures += world.holders.failures
        }
        // A test that reaches nothing proves nothing.
        #expect(crashes > 400)
        #expect(present > 200)
        #expect(failures > 4, "creations that failed behind somebody active: \(failures)")
        print("news that came behind newer ones: \(overtaken)")
    }
}

/// What must hold when all is quiet.
enum Invariants {
    static func check(_ world: World, _ trace: String) throws {
        let trace = Comment(rawValue: trace)
        for row in world.users.installs.values where row.phase == .present {
            // What the user service believes of an install is what the link service knows.
            let install = try #require(world.links.install(row.app, row.id), trace)
            let person = install.userID.flatMap { world.links.person(userID: $0) }
            try #require(row.facts.userID == install.userID, trace)
            try #require(row.facts.version == install.version, trace)
            try #require(row.facts.isActive == install.isActive, trace)
            try #require(row.facts.status == install.status, trace)
            try #require(row.facts.isLinked == (person?.externalID != nil), trace)
        }
        for row in world.users.installs.values { try #require([.present, .awaitingLink].contains(row.phase), trace) }
        // All that was begun has ended, and of the erased nothing is left but their ids.
        try #require(world.links.erasures.values.allSatisfy { $0.isOver && $0.waiting.isEmpty }, trace)
        for row in world.users.installs.values {
            try #require(row.facts.userID.map { !world.users.isErased($0) } ?? true, trace)
        }
        for person in world.links.persons.values where person.isErased {
            try #require(person.externalID == nil && world.users.isErased(person.userID), trace)
        }
        let held = world.users.codes.values.filter { if case .reserved = $0.use { true } else { false } }
        try #require(held.isEmpty, trace)
        let open = world.users.installs.values.filter { $0.phase == .awaitingLink }
        try world.holders.check(
            world.links, open: Set(open.map { Install.Key(app: $0.app, id: $0.id) }), trace)
        let active = Dictionary(grouping: world.links.installs.values.filter(\.isActive), by: \.userID)
        try #require(active.values.allSatisfy { $0.count == 1 }, trace)
        // Rows of users are kept for those on an install, and for the erased.
        let here = Set(world.users.installs.values.compactMap { $0.facts.userID.map { $0 } })
        let kept = Set(world.users.changedUsers.filter(\.value).keys)
        try #require(kept.subtracting(here).subtracting(world.users.erased).isEmpty, trace)
    }
}
