// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime
import Storage
import Synchronization
import WireJSON

/// The smallest service there is: a table of keys and values. `put` answers what stood there before.
struct FakeService: CommandService {
    static let put = Put.type
    static let name = "fake"
    static let migrations = [
        Migration(
            number: 100, name: "values",
            statements: ["CREATE TABLE items (id TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)"])
    ]

    struct Put: CommandMessage {
        static let type = "identity.fake.put.v1"
        static let scope = Scope.userLink
        var key: String
        var value: String
        var partitionSubject: String { key }

        func validate() throws(Rejection) {
            if key.isEmpty { throw Rejection(.invalidRequest, "data.key is empty.") }
        }
    }

    static let inputs: [Input<Put>] = [.command(Put.self) { $0 }]

    struct Before: CommandResult {
        var before: String?
    }

    struct Changed: EventMessage {
        static let type = "identity.fake.changed.v1"
        var key: String
        var value: String
        var subject: String { key }
    }

    struct Poison: Error, CustomStringConvertible {
        var description: String { "poison" }
    }

    struct State: ServiceState {
        var values: [String: String] = [:]
        var changed: Set<String> = []

        mutating func apply(_ change: Put) {
            values[change.key] = change.value
            changed.insert(change.key)
        }
    }

    /// What `load` is asked to do when it meets the value `poison`, and how often it was called with it.
    final class Log: Sendable {
        let loads = Mutex<[[String]]>([])
    }

    let log = Log()
    /// How many of the first loads do not get a lock.
    var lockTimeouts = 0
    /// How many of the first loads find the database away.
    var unavailable = 0

    func load(_ commands: [(Put, DecisionContext)], in transaction: any SQLTransaction) throws -> State {
        let count = log.loads.withLock { loads in
            loads.append(commands.map(\.0.value))
            return loads.count
        }
        if count <= lockTimeouts { throw StorageError(kind: .conflict, message: "locked", sqlState: "55P03") }
        if count <= unavailable { throw StorageError(kind: .unavailable, message: "away") }
        if commands.contains(where: { $0.0.value == "poison" }) { throw Poison() }
        var state = State()
        for (command, _) in commands {
            if let row = try transaction.query("SELECT value FROM items WHERE id = $1", [.text(command.key)]).first {
                state.values[command.key] = try row.text(0)
            }
        }
        return state
    }

    func decide(_ command: Put, _ state: State, _ context: DecisionContext) -> Decision<Put> {
        if command.value == "refuse" {
            return .rejected(.installNotFound, events: [Changed(key: command.key, value: "refused")])
        }
        return Decision(
            .succeeded(Before(before: state.values[command.key])), changes: [command],
            events: [Changed(key: command.key, value: command.value), Changed(key: command.key, value: "again")])
    }

    func save(_ state: State, in transaction: any SQLTransaction) throws {
        for key in state.changed.sorted() {
            try transaction.execute(
                "INSERT INTO items (id, value) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET value = excluded.value",
                [.text(key), .text(state.values[key] ?? "")])
        }
    }
}
