// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing

@testable import Link
@testable import Runtime
@testable import User

/// The user and the link service in memory, with the topics between them; the sync service does all that it is asked. Records of one partition stay in order; all
/// else is up to the generator: which partition is next, how long what was decided waits to be published, what is
/// delivered twice, and what is decided, lost in a crash and decided again.
struct World {
    enum Body {
        case user(UserCommand)
        case link(LinkCommand)
    }

    struct Message {
        var key: CommandKey
        /// Topic and Kafka key: what shares it stays in order.
        var partition: String
        var app: AppSettings
        var body: Body
        var expiry: Timestamp?
        /// By how much it was made before it is decided.
        var late: Int64 = 0
    }

    var random: SplitMix64
    var now = Fixture.start
    var users = UserState()
    var links = LinkState()
    /// What is decided and not published yet, in order, by the partition it was decided from.
    private var outboxes: [String: [Message]] = [:]
    /// What is published and not consumed yet.
    private var topics: [String: [Message]] = [:]
    private var decided: Set<CommandKey> = []
    private var consumed: [Message] = []
    /// The answers to the commands that were sent from outside.
    private(set) var first: [CommandID: Answer] = [:]
    private(set) var final: [CommandID: Answer] = [:]
    private(set) var problems: [String] = []
    private(set) var events: [any EventMessage] = []
    /// Who was active, and must be still.
    private(set) var holders = Holders()
    private(set) var crashes = 0
    /// How often news of an install came that were older than what was known of it.
    private(set) var overtaken = 0

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    // MARK: From outside

    mutating func send(_ command: UserCommand, _ id: CommandID, _ app: AppSettings, expiry: Timestamp? = nil) {
        let partition = Self.partition(command, app.id)
        publish(
            Message(
                key: CommandKey(app: app.id, source: "test", id: id), partition: partition, app: app,
                body: .user(command), expiry: expiry))
    }

    private static func partition(_ command: UserCommand, _ app: AppID) -> String {
        if case .requestAuthCode(let request) = command { return "user/\(app)/\(request.externalId)" }
        return "user/\(app)/\(command.installID?.text ?? command.userID?.text ?? "")"
    }

    /// Where a command of the user service's own topic stands; nothing for what comes over others.
    static func partition(_ step: (command: UserCommand, context: DecisionContext)) -> String? {
        switch step.command {
        case .answered, .linked, .statusChanged, .detached, .externalIDChanged, .externalIDRemoved: nil
        default: partition(step.command, step.context.app.id)
        }
    }

    mutating func send(_ command: LinkCommand, _ id: CommandID, _ app: AppSettings, late: Int64 = 0) {
        let subject = command.externalID?.text ?? command.installID?.text ?? command.userID?.text ?? ""
        publish(
            Message(
                key: CommandKey(app: app.id, source: "test", id: id), partition: "link/\(app.id)/\(subject)", app: app,
                body: .link(command), expiry: nil, late: late))
    }

    /// Sends what has become due, as the runtime does, some of it twice.
    mutating func sendDue() {
        for install in users.installs.values.sorted(by: { $0.key < $1.key }) {
            guard let (first, deadline) = install.linkersTurn, deadline <= now else { continue }
            let command = ExpireLinker(installId: install.id, commandSource: first.source, commandId: first.id)
            let id = "due \(first.id)"
            publish(
                Message(
                    key: CommandKey(app: install.app, source: "user", id: CommandID(id)),
                    partition: "user/\(install.app)/\(install.id)", app: app(install.app),
                    body: .user(.expireLinker(command))))
        }
    }

    private func app(_ id: AppID) -> AppSettings {
        [Fixture.app, Fixture.otherApp, Fixture.unlinkedApp].first { $0.id == id } ?? Fixture.app
    }

    private mutating func publish(_ message: Message) { topics[message.partition, default: []].append(message) }

    // MARK: Steps

    /// One random step.
    /// - Returns: false when nothing is left to do.
    mutating func step() -> Bool {
        let waiting = outboxes.filter { !$0.value.isEmpty }.keys.sorted()
        let readable = topics.filter { !$0.value.isEmpty }.keys.sorted()
        let count = waiting.count + readable.count
        guard count > 0 else { return false }
        let choice = Int.random(in: 0..<count, using: &random)
        if choice < waiting.count {
            if let message = outboxes[waiting[choice]]?.removeFirst() { publish(message) }
        } else if let message = topics[readable[choice - waiting.count]]?.removeFirst() {
            consume(message)
            // What was consumed before comes again: the consumer had not got round to noting its place.
            if Int.random(in: 0..<8, using: &random) == 0, let old = consumed.randomElement(using: &random) {
                consume(old)
            }
        }
        return true
    }

    mutating func drain() { while step() {} }

    private mutating func consume(_ message: Message) {
        consumed.append(message)
        guard !decided.contains(message.key) else { return }
        if Int.random(in: 0..<6, using: &random) == 0 {
            // Killed before the commit: what was decided is gone, and is decided again a little later.
            crashes += 1
            var lost = self
            lost.decide(message)
            now.milliseconds += 1
        }
        decide(message)
        decided.insert(message.key)
    }

    private mutating func decide(_ message: Message) {
        let context = context(of: message)
        let isLate = message.expiry.map { $0 <= now } ?? false
        switch message.body {
        case .user(let command):
            let version: Int64? =
                switch command {
                case .statusChanged(let event): event.version
                case .linked(let event): event.version
                case .detached(let event): event.version
                default: nil
                }
            if let version, let id = command.installID, let known = users.install(message.app.id, id),
                version < known.facts.version
            {
                overtaken += 1
            }
            let decision = isLate ? .init(.expired) : UserDecider.decide(command, users, context)
            decision.changes.forEach { users.apply($0) }
            holders.note(decision, of: message.app.id)
            take(decision, message)
        case .link(let command):
            let decision = isLate ? .init(.expired) : LinkDecider(links, context).decide(command)
            let before = links
            decision.changes.forEach { links.apply($0) }
            holders.note(command, before, links)
            take(decision, command, message)
        }
    }

    private func context(of message: Message) -> DecisionContext {
        DecisionContext(
            command: message.key, app: message.app,
            principal: Principal(kind: .service, scopes: Set(Scope.allCases)), now: now,
            moment: Moment(milliseconds: now.milliseconds - message.late), expiry: message.expiry)
    }

    /// What the user service may be reading now, each on a partition of its own.
    var next: [(command: UserCommand, context: DecisionContext)] {
        let heads = (Array(topics.values) + Array(outboxes.values)).compactMap(\.first)
        return heads.sorted { ($0.key.source, $0.key.id) < ($1.key.source, $1.key.id) }.compactMap { message in
            guard case .user(let command) = message.body, !decided.contains(message.key) else { return nil }
            return (command, context(of: message))
        }
    }

    private mutating func take(_ decision: UserDecider.Decision, _ message: Message) {
        #expect((try? decision.writtenOtherwise()) == [])
        events += decision.events
        for forward in decision.forwards {
            guard let command = Self.linkCommand(forward.command) else {
                problems.append("a forward that is no link command")
                continue
            }
            outboxes[message.partition, default: []].append(
                Message(
                    key: CommandKey(app: message.app.id, source: "user", id: forward.id),
                    partition: "link/\(message.app.id)/\(forward.command.partitionSubject)", app: message.app,
                    body: .link(command), expiry: forward.expiry))
        }
        for settlement in decision.settlements { settle(settlement.command.id, Answer(settlement.outcome)) }
        if case .user(.forget) = message.body {
            if case .forgotten = Answer(decision.outcome) {
            } else {
                problems.append("\(message.key.id): not forgotten")
            }
            reply(to: message.key.id, from: "user", message)
        } else {
            answer(message, Answer(decision.outcome))
        }
    }

    private static let part = ErasureCertificate(
        requestId: "part", erasedAt: Timestamp(milliseconds: 0), done: .init())

    /// The answer to what the link service asked.
    private mutating func reply(to forward: CommandID, from service: String, _ message: Message) {
        outboxes[message.partition, default: []].append(
            Message(
                key: CommandKey(app: message.app.id, source: SourceID("\(service)'s answer"), id: forward),
                partition: "link replies/\(forward)", app: message.app,
                body: .link(.answered(ForgetAnswer(forward: forward, outcome: .done(Self.part))))))
    }

    private mutating func take(_ decision: LinkDecider.Decision, _ command: LinkCommand, _ message: Message) {
        func out(_ command: UserCommand, _ id: CommandID, _ partition: String) {
            outboxes[message.partition, default: []].append(
                Message(
                    key: CommandKey(
                        app: message.app.id, source: "link",
                        id: CommandID("\(message.key.source) \(message.key.id) \(id)")),
                    partition: partition, app: message.app, body: .user(command)))
        }
        for (index, event) in decision.events.enumerated() {
            let partition = "events/\(message.app.id)/\(event.subject)"
            switch event {
            case let event as Linked: out(.linked(event), CommandID("\(index)"), partition)
            case let event as InstallStatusChanged: out(.statusChanged(event), CommandID("\(index)"), partition)
            case let event as InstallDetached: out(.detached(event), CommandID("\(index)"), partition)
            case let event as ExternalIDChanged: out(.externalIDChanged(event), CommandID("\(index)"), partition)
            case let event as ExternalIDRemoved: out(.externalIDRemoved(event), CommandID("\(index)"), partition)
            default: break
            }
        }
        for forward in decision.forwards {
            if let command = forward.command as? ForgetUser {
                outboxes[message.partition, default: []].append(
                    Message(
                        key: CommandKey(app: message.app.id, source: "link", id: forward.id),
                        partition: "user/\(message.app.id)/\(command.userId)", app: message.app,
                        body: .user(.forget(command))))
            } else {
                reply(to: forward.id, from: "sync", message)
            }
        }
        for settlement in decision.settlements { settle(settlement.command.id, Answer(settlement.outcome)) }
        guard message.key.source == "user" else { return answer(message, Answer(decision.outcome)) }
        let outcome: LinkAnswer.Outcome =
            switch decision.outcome {
            case .succeeded(let result as LinkResult): .facts(LinkFacts(result))
            case .succeeded(let result as InstallResult): .facts(LinkFacts(result))
            case .rejected(let rejection): .rejected(rejection)
            default: .expired
            }
        var externalID: ExternalID?
        if case .succeeded(let result as InstallResult) = decision.outcome { externalID = result.externalId }
        out(
            .answered(LinkAnswer(forward: message.key.id, outcome: outcome, externalID: externalID)), "reply",
            "replies/\(message.partition)")
    }

    private mutating func answer(_ message: Message, _ answer: Answer) {
        guard message.key.source == "test" else {
            if answer != .noted { problems.append("\(message.key.id) was answered \(answer)") }
            return
        }
        if first.updateValue(answer, forKey: CommandID(message.key.id.text)) != nil {
            problems.append("\(message.key.id) twice")
        }
        switch answer {
        case .begun, .pending: return
        default: settle(message.key.id, answer)
        }
    }

    private mutating func settle(_ id: CommandID, _ answer: Answer) {
        if case .pending = answer {
            if final[id] != nil { problems.append("\(id) is pending behind its end") }
            if first.updateValue(answer, forKey: id) != .begun { problems.append("\(id) was pending before") }
            return
        }
        if let old = final.updateValue(answer, forKey: id) { problems.append("\(id) ended \(old), then \(answer)") }
    }

    static func linkCommand(_ command: any CommandMessage) -> LinkCommand? {
        switch command {
        case let command as EstablishLink: .establish(command)
        case let command as RegisterInstall: .registerInstall(command)
        case let command as QueryInstall: .query(command)
        case let command as DetachInstall: .detachInstall(command)
        default: nil
        }
    }
}
