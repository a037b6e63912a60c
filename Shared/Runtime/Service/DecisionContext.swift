// SPDX-License-Identifier: Apache-2.0

public import Apps
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
    public var newUserID: String {
        DerivedID.user(salt: secrets.salt, app: command.app, source: command.source, commandID: command.id)
    }

    /// The MPID of a profile that this command would create. `counter` numbers the attempts, see `DerivedID.mpid`.
    public func newMPID(_ counter: Int) -> MPID {
        DerivedID.mpid(
            salt: secrets.salt, app: command.app, source: command.source, commandID: command.id, counter: counter)
    }

    /// The id of the alias that this command asks for.
    public var newAliasID: String {
        DerivedID.alias(salt: secrets.salt, app: command.app, source: command.source, commandID: command.id)
    }

    /// The id of the command's forward number `number`, counted by the decider.
    public func forwardID(_ number: Int) -> String {
        DerivedID.forward(app: command.app, source: command.source, commandID: command.id, number: number)
    }

    /// 64 bytes that nobody without the store's salt can guess, and the same when the command is decided again.
    public func secret(_ purpose: String) -> [UInt8] {
        secrets.bytes(purpose, [command.app, command.source, command.id])
    }
}
