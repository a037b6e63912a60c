// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

public import Contracts
public import Storage
public import WireJSON

/// What a service adds to the loop: how its commands are read, loaded, decided and saved.
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

    /// The scope that a command of this `type` needs, or `nil` when this service does not know the type.
    static func scope(of type: String) -> Scope?
    /// Reads a command's data.
    /// - Throws: `Rejection`, or a decoding error that the runtime turns into `INVALID_REQUEST`.
    static func decode(type: String, data: JSONValue) throws -> Command
    /// Loads what the decider needs for all of these commands, in as few statements as it can.
    func load(_ commands: [(Command, DecisionContext)], in transaction: any SQLTransaction) throws -> State
    /// Decides one command. Rejections leave `changes` empty.
    func decide(_ command: Command, _ state: State, _ context: DecisionContext) -> Decision<State.Change>
    /// Writes what was changed since `load`.
    func save(_ state: State, in transaction: any SQLTransaction) throws
}

/// The part of a service's state that a batch touches, as a value.
public protocol ServiceState {
    associatedtype Change: Sendable
    /// Makes the change visible to the next command of the batch and remembers it for `save`.
    mutating func apply(_ change: Change)
}
