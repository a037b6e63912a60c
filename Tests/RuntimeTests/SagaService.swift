// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage
import WireJSON

/// The smallest service with a saga: `begin` asks the service `peer` and is answered when `peer` has answered. A begun
/// saga whose command is not answered becomes due. Of a command whose id begins with `again-peer` or `again-other` that
/// service is asked, too, once `peer` has answered; the question `both` goes to the two at once.
struct SagaService: CommandService {
    static let begin = Begin.type
    static let name = "saga"
    static let inputs: [Input<Command>] = [
        .command(Begin.self) { .begin($0.question) },
        .command(Remind.self) { .remind($0.id) },
        .reply(from: ["peer", "other"], Command.answer),
        .event(Happened.self, of: "peer") { _ in .happened },
    ]
    static let hasDueCommands = true
    static let migrations = [
        Migration(
            number: 100, name: "open sagas",
            statements: [
                "CREATE TABLE open (id TEXT NOT NULL PRIMARY KEY, app TEXT NOT NULL, source TEXT NOT NULL, "
                    + "command TEXT NOT NULL, asked BIGINT NOT NULL)"
            ])
    ]

    enum Command: Sendable {
        case begin(String)
        case answer(ReceivedReply)
        case happened
        case remind(String)
    }

    struct Begin: CommandMessage {
        static let type = "identity.saga.begin.v1"
        static let scope = Scope.userLink
        var question: String
        var partitionSubject: String { question }
        func validate() throws(Rejection) {}
    }

    struct Happened: EventMessage {
        static let type = "identity.peer.happened.v1"
        var subject: String { "" }
    }

    /// The service `peer` tells others what it makes of the first two, and `other` of the third.
    struct News: EventMessage {
        static let type = "identity.saga.news.v1"
        var number: Int
        var subject: String { "\(number)" }
    }

    static func listeners(to event: any EventMessage) -> [String] {
        (event as? News).map { [$0.number < 3 ? "peer" : "other"] } ?? []
    }

    struct Ask: CommandMessage {
        static let type = "identity.peer.ask.v1"
        static let scope = Scope.internal
        var question: String
        var partitionSubject: String { question }
        func validate() throws(Rejection) {}
    }

    /// The same, of another service.
    struct AskOther: CommandMessage {
        static let type = "identity.other.ask.v1"
        static let scope = Scope.internal
        var question: String
        var partitionSubject: String { question }
        func validate() throws(Rejection) {}
    }

    struct Answered: EventMessage {
        static let type = "identity.saga.answered.v1"
        var status: String
        var subject: String { status }
    }

    struct Remind: CommandMessage {
        static let type = "identity.saga.remind.v1"
        static let scope = Scope.internal
        var id: String
        var partitionSubject: String { id }
        func validate() throws(Rejection) {}
    }

    struct Secret: CommandResult {
        static let isConfidential = true
        var secret: String
    }

    struct State: ServiceState {
        var open: [String: CommandKey] = [:]
        var begun: [String: CommandKey] = [:]
        var ended: Set<String> = []

        mutating func apply(_ change: Change) {
            switch change {
            case .begun(let id, let key):
                open[id] = key
                begun[id] = key
            case .ended(let id):
                open[id] = nil
                ended.insert(id)
            }
        }

        enum Change: Sendable {
            case begun(String, CommandKey)
            case ended(String)
        }
    }

    func load(_ commands: [(Command, DecisionContext)], in transaction: any SQLTransaction) throws -> State {
        var state = State()
        for row in try transaction.query("SELECT id, app, source, command FROM open") {
            state.open[try row.text(0)] = CommandKey(
                app: try AppID(row.text(1)), source: try SourceID(row.text(2)), id: try CommandID(row.text(3)))
        }
        return state
    }

    func decide(_ command: Command, _ state: State, _ context: DecisionContext) -> Decision<State.Change> {
        switch command {
        case .begin("twice"):
            let settled = state.open.values.map { Settlement($0, .expired) }
            return Decision(.succeeded(Secret(secret: "own")), settlements: settled)
        case .begin("both"):
            let forwards = [
                Forward(id: context.forwardID(0), command: Ask(question: "both")),
                Forward(id: context.forwardID(1), command: AskOther(question: "both")),
            ]
            let begun = forwards.map { State.Change.begun($0.id.text, context.command) }
            return Decision(.pending(nil), changes: begun, forwards: forwards)
        case .begin("news"): return Decision(.succeeded(Secret(secret: "own")), events: [News(number: 1)])
        case .begin("news and more"):
            return Decision(.succeeded(Secret(secret: "own")), events: [News(number: 1), News(number: 2)])
        case .begin("news for all"):
            return Decision(.succeeded(Secret(secret: "own")), events: (1...3).map { News(number: $0) })
        case .begin("remind me"):
            var decision = Decision<State.Change>(.succeeded(Secret(secret: "own")))
            decision.due = [
                DueCommand(
                    app: context.app.id, id: context.forwardID(-1), dueAt: context.now, command: Remind(id: "nobody"))
            ]
            return decision
        case .begin(let question):
            let id = context.forwardID(0)
            return Decision(
                question == "silent" ? .begun : .pending(Secret(secret: "first of \(question)")),
                changes: [.begun(id.text, context.command)],
                forwards: [Forward(id: id, command: Ask(question: question), expiry: context.expiry)])
        case .answer(let reply):
            guard let key = state.open[reply.commandId.text] else { return Decision(.noted) }
            if reply.status == .pending {
                return Decision(.noted, settlements: [Settlement(key, .pending(Secret(secret: "interim")))])
            }
            if let next = next(reply, key, context) { return next }
            let outcome: Outcome =
                reply.status == .succeeded
                ? .succeeded(Secret(secret: "final")) : .rejected(reply.rejection)
            let isLast = !state.open.contains { $0.key != reply.commandId.text && $0.value == key }
            return Decision(
                .noted, changes: [.ended(reply.commandId.text)], events: [Answered(status: reply.status.rawValue)],
                settlements: isLast ? [Settlement(key, outcome)] : [])
        case .happened: return Decision(.noted)
        case .remind(let id):
            guard let key = state.open[id] else { return Decision(.noted) }
            return Decision(.noted, changes: [.ended(id)], settlements: [Settlement(key, .expired)])
        }
    }

    /// The second question of a command that has one.
    private func next(
        _ reply: ReceivedReply, _ key: CommandKey, _ context: DecisionContext
    ) -> Decision<State.Change>? {
        guard reply.status == .succeeded, reply.commandType == Ask.type,
            reply.commandId == DerivedID.forward(of: key, number: 0)
        else { return nil }
        let commands: [String: any CommandMessage] = [
            "again-peer": Ask(question: "more"), "again-other": AskOther(question: "more"),
        ]
        guard let command = commands.first(where: { key.id.text.hasPrefix($0.key) })?.value else { return nil }
        let id = context.forwardID(0)
        return Decision(
            .noted, changes: [.ended(reply.commandId.text), .begun(id.text, key)],
            events: [Answered(status: "again")], forwards: [Forward(id: id, command: command)])
    }

    func save(_ state: State, in transaction: any SQLTransaction) throws {
        for (id, key) in state.begun where state.open[id] != nil {
            try transaction.execute(
                "INSERT INTO open (id, app, source, command, asked) VALUES ($1, $2, $3, $4, 0) ON CONFLICT (id) DO NOTHING",
                [.text(id), .text(key.app.text), .text(key.source.text), .text(key.id.text)])
        }
        for id in state.ended.sorted() { try transaction.execute("DELETE FROM open WHERE id = $1", [.text(id)]) }
    }

    func due(now: Timestamp, limit: Int, in transaction: any SQLTransaction) throws -> [DueCommand] {
        let rows = try transaction.query(
            "UPDATE open SET asked = $1 WHERE asked = 0 AND command LIKE 'due%' RETURNING id, app",
            [.integer(now.milliseconds)])
        return try rows.map { row in
            let id = try row.text(0)
            return DueCommand(
                app: try AppID(row.text(1)), id: CommandID("remind-\(id)"), dueAt: Fixture.now, command: Remind(id: id))
        }
    }
}
