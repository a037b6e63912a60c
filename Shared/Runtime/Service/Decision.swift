// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Storage

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
    public var id: String
    public var command: any CommandMessage
    /// Past this instant the other service answers `expired` and changes nothing.
    public var expiry: Timestamp?

    public init(id: String, command: any CommandMessage, expiry: Timestamp? = nil) {
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
