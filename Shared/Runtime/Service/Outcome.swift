// SPDX-License-Identifier: Apache-2.0

public import Contracts

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
