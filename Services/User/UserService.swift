// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

public import Contracts
public import Runtime
public import Storage
public import WireJSON

/// User creation and restoration.
public struct UserService: CommandService {
    public static let name = "user"
    public static let migrations: [Migration] = []

    public init() {}

    public static func scope(of type: String) -> Scope? { nil }

    public static func decode(type: String, data: JSONValue) throws -> UserCommand { throw Rejection(.unknownType) }

    public func load(
        _ commands: [(UserCommand, DecisionContext)], in transaction: any SQLTransaction
    ) throws -> UserState { UserState() }

    public func decide(
        _ command: UserCommand, _ state: UserState, _ context: DecisionContext
    ) -> Decision<UserState.Change> { Decision(.noted) }

    public func save(_ state: UserState, in transaction: any SQLTransaction) throws {}
}

public enum UserCommand: Sendable {
    case placeholder
}

public struct UserState: ServiceState {
    public enum Change: Sendable {
        case placeholder
    }

    public mutating func apply(_ change: Change) {}
}
