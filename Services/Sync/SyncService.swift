// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

public import Contracts
public import Runtime
public import Storage
public import WireJSON

/// Identity sync.
public struct SyncService: CommandService {
    public static let name = "sync"
    public static let migrations: [Migration] = []

    public init() {}

    public static func scope(of type: String) -> Scope? { nil }

    public static func decode(type: String, data: JSONValue) throws -> SyncCommand { throw Rejection(.unknownType) }

    public func load(
        _ commands: [(SyncCommand, DecisionContext)], in transaction: any SQLTransaction
    ) throws -> SyncState { SyncState() }

    public func decide(
        _ command: SyncCommand, _ state: SyncState, _ context: DecisionContext
    ) -> Decision<SyncState.Change> { Decision(.noted) }

    public func save(_ state: SyncState, in transaction: any SQLTransaction) throws {}
}

public enum SyncCommand: Sendable {
    case placeholder
}

public struct SyncState: ServiceState {
    public enum Change: Sendable {
        case placeholder
    }

    public mutating func apply(_ change: Change) {}
}
