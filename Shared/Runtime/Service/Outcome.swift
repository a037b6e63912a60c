// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

public import Contracts

/// How a command ended. Closed: a decider that forgets a case does not compile, and there is no way to acknowledge
/// a command without saying one of these.
public enum Outcome: Sendable {
    case succeeded(any CommandResult)
    case rejected(Rejection)
    /// Too late by the command's `expirytime`; nothing changed.
    case expired
}
