// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage
import WireJSON

/// Items with a chain. A command puts or removes one, or is refused; `facts` reads.
struct ChainService: CommandService {
    static let name = "chain"
    static let migrations = [
        Migration(
            number: 100, name: "items",
            statements: [
                """
                CREATE TABLE items (
                  id TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL, last_decision BIGINT NOT NULL)
                """
            ])
    ]

    struct Change: CommandMessage {
        static let type = "identity.chain.change.v1"
        static let scope = Scope.userLink
        var keys: [String]
        /// `refuse` and `remove` are words.
        var value: String
        var partitionSubject: String { keys.first ?? "" }

        func validate() throws(Rejection) {}
    }

    enum Owner: FactsOwner { static let service = "chain" }

    enum Command: Sendable {
        case change(Change)
        case facts(FactsQuery)
    }

    static let inputs: [Input<Command>] = [
        .command(Change.self, Command.change), .command(ReadFacts<Owner>.self) { .facts($0.query) },
    ]

    struct Item: SQLKeyedRecord, Equatable {
        static let table = SQLTable<Item>("items")
        static let blank = Item(key: "", value: "")

        var key: InstallID
        var value: String
        var lastDecision = LastDecision()

        mutating func columns(_ columns: SQLColumns) throws(StorageError) {
            try columns.column("id", &key, .key)
            try columns.column("value", &value)
            try columns.lastDecision(&lastDecision)
        }
    }

    struct Told: EventMessage {
        static let type = "identity.chain.told.v1"
        var value: String
        var subject: String { value }
    }

    struct Secret: CommandResult {
        static let isConfidential = true
        var authCode: String
    }

    struct State: ServiceState {
        var items = Table<Item>()

        enum Change: Sendable {
            case put(Item)
            case remove(InstallID)
        }

        mutating func chain(_ change: Change, _ chain: inout DecisionChain) {
            switch change {
            case .put(let item): items.chain(item.key, &chain)
            case .remove(let key): chain.mention(key.text, after: items.last(key))
            }
        }

        mutating func apply(_ change: Change) {
            switch change {
            case .put(let item): items.put(item)
            case .remove(let key): items.remove(key)
            }
        }
    }

    static func question(_ command: Command) -> FactsQuery? {
        if case .facts(let query) = command { query } else { nil }
    }

    func ids(in command: Command, of app: AppID, _ state: State) -> [String] { Self.keys(of: command) }

    private static func keys(of command: Command) -> [String] {
        if case .change(let change) = command { change.keys } else { [] }
    }

    func facts(about id: String, of app: AppSettings, in transaction: any SQLTransaction) throws -> FactsSubject {
        var subject = FactsSubject()
        for item in try Item.table.find([InstallID(id)], in: transaction) {
            subject.add("item", ["id": .string(item.key.text), "value": .string(item.value)], item.lastDecision)
        }
        return subject
    }

    func load(_ commands: [(Command, DecisionContext)], in transaction: any SQLTransaction) throws -> State {
        var state = State()
        let keys = Set(commands.flatMap { Self.keys(of: $0.0) }.map { InstallID($0) })
        try Item.table.find(keys, in: transaction).forEach { state.items.load($0) }
        return state
    }

    func decide(_ command: Command, _ state: State, _ context: DecisionContext) -> Decision<State.Change> {
        switch command {
        case .facts: return .facts(context)
        case .change(let change):
            let keys = change.keys.map { InstallID($0) }
            switch change.value {
            case "refuse": return .rejected(.installNotFound)
            case "remove": return Decision(.noted, changes: keys.map { .remove($0) })
            case "secret":
                return Decision(
                    .succeeded(Secret(authCode: "hush")), changes: keys.map { .put(Item(key: $0, value: "secret")) })
            default:
                return Decision(
                    .noted, changes: keys.map { .put(Item(key: $0, value: change.value)) },
                    events: [Told(value: change.value)])
            }
        }
    }

    func save(_ state: State, in transaction: any SQLTransaction) throws {
        try Item.table.save(state.items, in: transaction)
    }
}
