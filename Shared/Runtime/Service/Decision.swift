// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
import Storage

/// What a decider answers: the outcome, the changes to the service's state, and what to tell others.
/// Published in this order: `events`, `forwards`, `settlements`, the reply.
public struct Decision<Change: Sendable>: Sendable {
    public var outcome: Outcome
    public var changes: [Change]
    public var events: [any EventMessage]
    public var forwards: [Forward]
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
    /// The command's `expirytime`, later than `now`.
    public var expiry: Timestamp?
    /// Where new ids, and secrets that a decider gives out, come from.
    public var secrets: DerivedSecrets

    public init(
        command: CommandKey, app: AppSettings, principal: Principal, now: Timestamp, expiry: Timestamp? = nil,
        secrets: DerivedSecrets = .none
    ) {
        self.command = command
        self.app = app
        self.principal = principal
        self.now = now
        self.expiry = expiry
        self.secrets = secrets
    }

    /// The id of the person that this command would create.
    public var newUserID: UserID {
        DerivedID.user(salt: secrets.salt, of: command)
    }

    /// The MPID of a profile that this command would create. `counter` numbers the attempts, see `DerivedID.mpid`.
    public func newMPID(_ counter: Int) -> MPID {
        DerivedID.mpid(salt: secrets.salt, of: command, counter: counter)
    }

    /// The id of the alias that this command asks for.
    public var newAliasID: AliasID {
        DerivedID.alias(salt: secrets.salt, of: command)
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
