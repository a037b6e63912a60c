// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

public import Contracts
public import Storage

/// Everything a decider may know that is not in the command or the state: no clock, randomness or I/O is reachable
/// from it, so deciding twice gives the same answer.
public struct DecisionContext: Sendable {
    /// The command's identity within its app, from which new ids are derived.
    public var command: CommandKey
    public var app: AppSettings
    public var principal: Principal
    /// The instant of the decision; one for a whole batch.
    public var now: Timestamp

    public init(command: CommandKey, app: AppSettings, principal: Principal, now: Timestamp) {
        self.command = command
        self.app = app
        self.principal = principal
        self.now = now
    }

    /// The id of the person that this command would create.
    public var newUserID: String {
        DerivedID.user(app: command.app, source: command.source, commandID: command.id)
    }
}
