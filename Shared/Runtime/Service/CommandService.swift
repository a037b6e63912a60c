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
    /// Whether it comes to the same in whatever order, and however often, others' events are decided. Then they are gathered
    /// for a moment, many to a batch, and one that changes and tells nothing leaves no row in the inbox.
    static var eventsCommute: Bool { get }
    /// Why the service must not work with this version of the apps file on this store; `nil` when it may, and the store
    /// holds every replica to it from then on. Asked at start, and before a changed file comes into force.
    static func refusal(of apps: AppDirectory, on database: any SQLDatabase) throws -> AppsFile.Problem?
    /// The same of the version in force, inside the transaction that claims partitions: another replica may have changed
    /// what the store says, or the store may be an earlier copy. Whoever changes it ends all claims
    /// (``Storage/Progress/endClaims(in:)``), so a batch need not ask.
    static func refusal(of apps: AppDirectory, in transaction: any SQLTransaction) throws -> AppsFile.Problem?

    /// Loads what the decider needs for all of these commands, in as few statements as it can.
    func load(_ commands: [(Command, DecisionContext)], in transaction: any SQLTransaction) throws -> State
    /// Decides one command. Changes are applied and saved whatever the outcome.
    func decide(_ command: Command, _ state: State, _ context: DecisionContext) -> Decision<State.Change>
    /// What a command names: installs, people, devices, identity values, and whom it names by something that tells
    /// nothing, such as a code. A refusal is found by them (docs/loop.md "The chain").
    func ids(in command: Command, of app: AppID, _ state: State) -> [String]
    /// The services to which this event is news that they tell others of: a dry run has them try it. Few events are.
    static func listeners(to event: any EventMessage) -> [String]
    /// What the command asks about an id, when it is the service's ``Contracts/ReadFacts``.
    static func question(_ command: Command) -> FactsQuery?
    /// The rows about an id of whatever kind, for `question`. Only reads.
    func facts(about id: String, of app: AppSettings, in transaction: any SQLTransaction) throws -> FactsSubject
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
    public static var eventsCommute: Bool { false }

    public static func refusal(of apps: AppDirectory, on database: any SQLDatabase) throws -> AppsFile.Problem? { nil }
    public static func refusal(of apps: AppDirectory, in transaction: any SQLTransaction) throws -> AppsFile.Problem? {
        nil
    }

    public func ids(in command: Command, of app: AppID, _ state: State) -> [String] { [] }
    public static func listeners(to event: any EventMessage) -> [String] { [] }
    public static func question(_ command: Command) -> FactsQuery? { nil }
    public func facts(
        about id: String, of app: AppSettings, in transaction: any SQLTransaction
    ) throws -> FactsSubject { FactsSubject() }

    public func due(now: Timestamp, limit: Int, in transaction: any SQLTransaction) throws -> [DueCommand] { [] }

    public func due(
        now: Timestamp, limit: Int, apps: AppDirectory, in transaction: any SQLTransaction
    ) throws -> [DueCommand] {
        try due(now: now, limit: limit, in: transaction)
    }
}

/// A command that a service sends to itself because its time has come: see ``CommandService/due(now:limit:in:)``, and
/// ``Decision/due``.
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
    /// Notes a decision with what it is about to change: with the row, or by mentioning its id, where the row has no
    /// chain, or is gone. Called before ``apply(_:)``.
    mutating func chain(_ change: Change, _ chain: inout DecisionChain)
}

extension ServiceState {
    public mutating func chain(_ change: Change, _ chain: inout DecisionChain) {}
}

/// What a decider answers: the outcome, the changes to the service's state, and what to tell others.
/// Published in this order: `events`, `forwards`, `due`, `settlements`, the reply.
public struct Decision<Change: Sendable>: Sendable {
    public var outcome: Outcome
    public var changes: [Change]
    public var events: [any EventMessage]
    public var forwards: [Forward]
    /// What the service tells itself at once, without an answer. A dry run tells itself nothing.
    public var due: [DueCommand] = []
    public var settlements: [Settlement]

    public init(
        _ outcome: Outcome, changes: [Change] = [], events: [any EventMessage] = [], forwards: [Forward] = [],
        settlements: [Settlement] = []
    ) {
        self.outcome = outcome
        self.changes = changes
        self.events = events
        self.forwards = forwards
        self.settlements = settlements
    }

    /// Nothing is changed and nobody told.
    var isEmpty: Bool {
        guard case .noted = outcome else { return false }
        return changes.isEmpty && events.isEmpty && forwards.isEmpty && due.isEmpty && settlements.isEmpty
    }

    public static func rejected(
        _ reason: ReasonCode, _ message: String? = nil, events: [any EventMessage] = []
    ) -> Decision {
        Decision(.rejected(Rejection(reason, message)), events: events)
    }
}

/// A command for another service, signed as a service's own. Its reply comes back to the sending service, which
/// reads it when its ``CommandService/inputs`` have an ``Input/reply(from:_:)``; the reply's `commandId` is `id`.
public struct Forward: Sendable {
    /// From ``DecisionContext/forwardID(_:)``, so that deciding twice sends the same command.
    public var id: CommandID
    public var command: any CommandMessage
    /// Past this instant the other service answers `expired` and changes nothing.
    public var expiry: Timestamp?

    public init(id: CommandID, command: any CommandMessage, expiry: Timestamp? = nil) {
        self.id = id
        self.command = command
        self.expiry = expiry
    }
}

/// An answer to a command whose outcome was ``Outcome/pending(_:)`` or ``Outcome/begun``. Sent to that command's `replyto`,
/// and from then on the answer to its repetitions.
public struct Settlement: Sendable {
    /// The command that began the saga.
    public var command: CommandKey
    /// Succeeded, rejected or expired; or pending, when what the sender waits for has changed and the end is yet to
    /// come.
    public var outcome: Outcome

    public init(_ command: CommandKey, _ outcome: Outcome) {
        self.command = command
        self.outcome = outcome
    }
}

/// How a command ended. Closed: a decider that forgets a case does not compile, and there is no way to acknowledge
/// a command without saying one of these.
public enum Outcome: Sendable {
    case succeeded(any CommandResult)
    case rejected(Rejection)
    /// Too late by the command's `expirytime`; nothing changed.
    case expired
    /// A saga has begun: the final answer follows as a ``Settlement``, to the same `replyto`.
    case pending((any CommandResult)?)
    /// A saga has begun, and there is nothing to tell yet: the first answer follows as a ``Settlement``, which may be
    /// `pending` itself.
    case begun
    /// Nobody waits for an answer: an event or a reply was taken in, or a command that the service sent to itself.
    case noted
}

extension Outcome {
    /// As it stands in the inbox and in metrics.
    var verdict: Verdict {
        switch self {
        case .succeeded: .succeeded
        case .rejected: .rejected
        case .expired: .expired
        case .pending, .begun: .pending
        case .noted: .noted
        }
    }

    /// What a reply says. Nobody is told of `noted`, but who tries such a command without effect.
    var status: ReplyStatus {
        switch self {
        case .succeeded, .noted: .succeeded
        case .rejected: .rejected
        case .expired: .expired
        case .pending, .begun: .pending
        }
    }

    var isFinal: Bool {
        switch self {
        case .succeeded, .rejected, .expired: true
        case .pending, .begun, .noted: false
        }
    }

    /// It did nothing, and says so.
    var isRefusal: Bool {
        switch self {
        case .rejected, .expired: true
        case .succeeded, .pending, .begun, .noted: false
        }
    }

    /// Why it was rejected.
    var reason: String? {
        if case .rejected(let rejection) = self { rejection.reason.rawValue } else { nil }
    }
}

/// Everything a decider may know that is not in the command or the state: no clock, randomness or I/O is reachable
/// from it, so deciding twice gives the same answer.
public struct DecisionContext: Sendable {
    /// The command's identity within its app, from which new ids are derived.
    public var command: CommandKey
    public var app: AppSettings
    public var principal: Principal
    /// The instant of the decision; one for a whole batch.
    public var now: Timestamp
    /// When the command was given, by its record: never later than `now`, so that it can be remembered.
    public var moment: Moment
    /// As the record tells it, to be compared with what is remembered: the service's clock may have gone back.
    public var told: Moment
    /// When the record was logged, and by whose clock; `nil` where nothing tells.
    public var logged: Moment?
    /// The command's `expirytime`, later than `now`.
    public var expiry: Timestamp?
    /// Where new ids, and secrets that a decider gives out, come from.
    public var secrets: DerivedSecrets
    /// How long the inbox remembers at least.
    public var retention: Duration
    /// The answer to ``CommandService/question(_:)``: as things stand before the batch.
    public var facts: Result<FactsResult, Rejection>?

    public init(
        command: CommandKey, app: AppSettings, principal: Principal, now: Timestamp, moment: Moment? = nil,
        told: Moment? = nil, expiry: Timestamp? = nil, secrets: DerivedSecrets = .none, retention: Duration = .zero
    ) {
        self.command = command
        self.app = app
        self.principal = principal
        self.now = now
        self.moment = moment ?? Moment(milliseconds: now.milliseconds)
        self.told = told ?? self.moment
        self.expiry = expiry
        (self.secrets, self.retention) = (secrets, retention)
    }

    /// Until when the inbox has what is decided now: its generations go once they are between one and one and a half
    /// times as old as it remembers.
    public var inboxForgets: Timestamp {
        Timestamp(milliseconds: now.milliseconds + (retention * 3 / 2).inMilliseconds)
    }

    /// The id of the person that this command would create.
    public var newUserID: UserID { newUserID(0) }

    /// - Parameter counter: numbers the attempts, see `DerivedID.user`.
    public func newUserID(_ counter: Int) -> UserID {
        DerivedID.user(salt: secrets.ids, of: command, counter: counter)
    }

    /// The MPID of a profile that this command would create. `counter` numbers the attempts, see `DerivedID.mpid`.
    public func newMPID(_ counter: Int) -> MPID {
        DerivedID.mpid(salt: secrets.ids, of: command, counter: counter)
    }

    /// The id of the alias that this command asks for.
    public var newAliasID: AliasID {
        DerivedID.alias(salt: secrets.ids, of: command)
    }

    /// The id of the command's forward number `number`, counted by the decider.
    public func forwardID(_ number: Int) -> CommandID {
        DerivedID.forward(of: command, number: number)
    }

    /// 64 bytes that nobody without the store's salt can guess, and the same when the command is decided again.
    public func secret(_ purpose: String) -> [UInt8] {
        secrets.bytes(purpose, [command.app.text, command.source.text, command.id.text])
    }
}
