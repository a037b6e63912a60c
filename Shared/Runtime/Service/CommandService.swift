// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
public import Storage

/// What a service adds to the loop: what it reads, and how that is loaded, decided and saved.
///
/// All calls happen on the loop's thread. `decide` and `ServiceState.apply` must be pure; `load` and `save` run inside
/// the batch's one transaction and may run again after a conflict.
public protocol CommandService: Sendable {
    associatedtype Command: Sendable
    associatedtype State: ServiceState

    /// The `<service>` of topic names, the consumer group and the database's file or schema.
    static var name: String { get }
    /// The service's tables, beside the runtime's own. Numbers start at 100.
    static var migrations: [Migration] { get }

    /// Everything that it reads: one line for each type of command, event and reply.
    static var inputs: [Input<Command>] { get }
    /// Whether it runs only with the internal key, also where Kafka's access rules alone say who writes: to sign what it
    /// sends itself, or to close the secrets that it gives out. What sends itself due commands does, unless it says
    /// otherwise.
    static var needsInternalKey: Bool { get }
    /// Whether ``due(now:limit:in:)`` is to be asked.
    static var hasDueCommands: Bool { get }

    /// Loads what the decider needs for all of these commands, in as few statements as it can.
    func load(_ commands: [(Command, DecisionContext)], in transaction: any SQLTransaction) throws -> State
    /// Decides one command. Changes are applied and saved whatever the outcome.
    func decide(_ command: Command, _ state: State, _ context: DecisionContext) -> Decision<State.Change>
    /// Writes what was changed since `load`.
    func save(_ state: State, in transaction: any SQLTransaction) throws
    /// What has become due, at most `limit`. The loop asks about once a second, in one replica, and sends what it
    /// gets to the service's own commands topic, signed as its own. The transaction should put the next
    /// asking off (``DueCommand/pause(overdue:)``), and what was decided must not come again; what comes twice is decided
    /// once.
    func due(now: Timestamp, limit: Int, in transaction: any SQLTransaction) throws -> [DueCommand]
    /// The same for services whose due commands depend on the apps file.
    /// - Parameter apps: as they are now.
    func due(
        now: Timestamp, limit: Int, apps: AppDirectory, in transaction: any SQLTransaction
    ) throws -> [DueCommand]
}

extension CommandService {
    /// Of the runtime's tables and its own.
    package static var migrator: Migrator { Migrator(StorageSchema.migrations + migrations) }

    public static var needsInternalKey: Bool { hasDueCommands }
    public static var hasDueCommands: Bool { false }

    public func due(now: Timestamp, limit: Int, in transaction: any SQLTransaction) throws -> [DueCommand] { [] }

    public func due(
        now: Timestamp, limit: Int, apps: AppDirectory, in transaction: any SQLTransaction
    ) throws -> [DueCommand] {
        try due(now: now, limit: limit, in: transaction)
    }
}

/// A command that a service sends to itself because its time has come, see ``CommandService/due(now:limit:in:)``.
public struct DueCommand: Sendable {
    public var app: AppID
    /// The same each time the same thing is due: the inbox then decides it once.
    public var id: CommandID
    /// Since when, the same each time too: what has one id is one message, byte for byte.
    public var dueAt: Timestamp
    public var command: any CommandMessage

    /// How long to wait before the same is sent once more: 30 seconds, and twice as long each time, because what is still
    /// not decided then will hardly be decided by haste.
    /// - Parameter overdue: since when its time has come; all in milliseconds.
    public static func pause(overdue: Int64) -> Int64 { max(30_000, overdue) }

    public init(app: AppID, id: CommandID, dueAt: Timestamp, command: any CommandMessage) {
        self.app = app
        self.id = id
        self.dueAt = dueAt
        self.command = command
    }
}

/// The part of a service's state that a batch touches, as a value.
public protocol ServiceState {
    associatedtype Change: Sendable
    /// Makes the change visible to the next command of the batch and remembers it for `save`.
    mutating func apply(_ change: Change)
}
